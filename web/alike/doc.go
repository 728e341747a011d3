// Package alike tells names and addresses that people can take for one another.
//
// It is not meant to catch everything: wherever it is used, the verified host is
// there to be read. alike.go is all of it.
package alike
