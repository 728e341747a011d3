// Package shell words what a person at a shell reads in order to type it:
// command lines of this program, and lists of flags.
//
// What it promises: a printed line runs when it is pasted into a POSIX shell in
// the folder where it was printed, however this program was started and
// whatever stands in its arguments.
//
// Start at [Line].
package shell
