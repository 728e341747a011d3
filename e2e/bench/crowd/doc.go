// Package crowd fills the Hotel of a World with what a busy Brand has: people
// whose agents wait, people who have just allowed, and grants of months past.
// Rows are copied into the tables, since walking everybody through the rules
// would take longer than the benchmark. Only benchmarks import this package.
package crowd
