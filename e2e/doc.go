// Package e2e walks the real product from door to door: the binary as it is
// shipped, the database that it starts, a personal agent as a process of its own,
// and people in a real browser. Nothing in it is a stand-in.
//
//	product_test.go   countersign dev, built and started once, and what is in its database
//	agent_test.go     the personal agent: pa login as a process, and the bare wire
//	person_test.go    somebody with a browser of their own
//	statuslist.mjs    a Brand's server in another language, with code of others
//	interop/          an agent and a verifier in another language, with code of others
//	conformance/      what any PACT server must keep, asked over HTTP alone
//	mutants*_test.go  where each rule is enforced, so that it can be switched off
//
// Every page is examined on a phone and at a desk, in light and dark, and at 200 %.
// Pictures of it go to e2e/screenshots; COUNTERSIGN_PICTURES=all takes one of every
// look, COUNTERSIGN_PICTURES=none takes none.
//
// The other files are journeys, named by what happens in them. It starts in
// TestMain; the product itself starts with the first test that asks for it.
package e2e
