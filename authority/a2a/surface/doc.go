// Package surface is what personal agents see of A2A 1.0 at any Brand (PACT §2, §4,
// §6): the operations by path and method, messages as they are read, replies and
// problems as they are written, byte for byte as wire.md §9 has them.
//
// It knows no Brand, no token and no database, so that a Brand that serves its own
// interface in Go stands on the same code as the interface that we serve: Find
// first, then whoever tells who calls (verify.Verifier.Protect), then the
// Operation, and WriteProblem for what it returns. Serve is all of that in one.
package surface
