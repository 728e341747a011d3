// Package conformance asks any PACT server, over HTTP alone, whether it keeps
// the rules M1 to M24, serves the A2A operations as it must (§9), and keeps what it
// promises beyond PACT where it does (§10): each rule as named checks, good cases and
// bad ones.
//
// What it promises: it knows no more of a server than a personal agent, a person
// and a Brand's engineer know; answers are compared byte for byte where the wire
// says what they are; and no check passes because what it asks for is not there.
// A check that could not be made says so, and why.
//
// Start at [Run]. The command line is "countersign conformance".
package conformance
