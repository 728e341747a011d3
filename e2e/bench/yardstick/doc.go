// Package yardstick lets a benchmark tell its cost in a unit that travels: one
// ES256 signature, one ES256 verification, one round trip to PostgreSQL, one
// signature among many in a batch of Vault's. A
// machine that is busy or slow moves both sides of such a ratio; microseconds
// alone say more about the machine than about us. Medians are compared, since a
// neighbour's work on the same cores shows in the mean first.
//
// The raw cost is measured in the same process, right after the benchmark and
// from as many callers at once. It is reported as a metric of the benchmark, in
// one of the units below, which the command e2e/bench reads. Only benchmarks
// import this package.
package yardstick
