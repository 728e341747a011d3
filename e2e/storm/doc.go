// Package storm puts two instances of the service behind a bad line to PostgreSQL:
// one that is slow, and one that breaks at any point. Its tests say what must hold
// all the same. They have no part in the race detector's run, since real time is
// their subject.
//
//	line_test.go     the line, slow
//	cut_test.go      the line, cut between or inside statements
//	door_test.go     an instance's door, and an agent's program that calls it
//	refresh_test.go  one refresh token, many callers; and a database that dies
//	receipts_test.go ten thousand messages, and whatever else can go wrong around them
//	                 (receiptworld_test.go)
package storm
