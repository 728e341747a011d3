// Command bench measures what we cost and prints one table.
//
//	go run ./e2e/bench          the table
//	go run ./e2e/bench --json   the same for programs
//
// It builds and runs the benchmarks that stand beside the code they measure, in
// bench_test.go, several times in short rounds, and shows of each the round
// least disturbed. The column "× raw" is the one to compare between machines and
// days: the median beside that of one ES256 signature, one verification, one
// round trip to PostgreSQL or one empty HTTP exchange, measured in the same run
// from as many callers. "CPU µs/op" is the other one: it hardly moves when
// neighbours take the cores. It judges nothing; no number makes it fail. Goals
// that compare rows of one run stand below the table.
//
// Signing through Vault is measured with a real server that was built before, as
// the package signingtest says; without one its rows are missing, said loudly.
//
//	main.go    what was asked for
//	run.go     benchmarks built and run, within six minutes
//	vault.go   whether there is a Vault
//	parse.go   what they said
//	goals.go   what rows are to each other
//	table.go   what is shown
package main
