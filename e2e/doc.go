// Package e2e walks the real product from door to door: the binary as it is
// shipped, the database that it starts, a personal agent as a process of its own,
// and people in a real browser. Nothing in it is a stand-in.
//
//	product_test.go   countersign dev, built and started once, and what is in its database
//	agent_test.go     the personal agent: pa login as a process, and the bare wire
//	person_test.go    somebody with a browser of their own
//
// The other files are journeys, named by what happens in them. It starts in
// TestMain; the product itself starts with the first test that asks for it.
package e2e
