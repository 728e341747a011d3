// Package localpg runs a private PostgreSQL server on loopback, for
// `countersign dev` and for tests. It is never part of `countersign serve`.
//
// What it promises:
//
//   - Only somebody who can read the data folder can log in: the machine's other
//     users reach the same loopback, so there is no "trust" and no socket.
//   - Nothing that it did not make is changed or deleted. A folder it does not
//     understand is refused with the way out.
//   - The server never outlives the process that started it (on Linux, even when
//     that process is killed), and a folder left by a crash opens again.
//
// It uses the PostgreSQL that the machine has and fetches one only where none is
// found. Start is the door; folder.go, binaries.go and cluster.go are its steps in
// order, process_*.go is what each operating system needs. EnsureLogin makes the
// role with which the service itself logs in.
package localpg
