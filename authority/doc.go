// Package authority holds the rules of delegation: how an agent's request
// becomes a grant, what the grant pays out, and how it ends. No HTTP, no HTML.
//
// The life of one delegation, in the order of the files:
//
//	request.go   Begin: an agent asks.  Find: the person brings the code.
//	poll.go      Poll: the agent waits, and is paid out once.
//	ask.go       Ask: what the consent page must show.
//	decide.go    Approve, Deny: the person decides; the first decision is final.
//	grant.go     what a person allows an agent, while it lives
//	token.go     what is paid out: sign outside any transaction, then one
//	             compare-and-set; nothing signed leaves unless it won
//	refresh.go   Refresh: the agent comes again
//	revoke.go    it ends
//
// Every state change is one statement or one transaction whose WHERE clause is
// the state machine, so any number of instances may run. Device codes and
// refresh tokens are stored as hashes, user codes as MACs under a key outside
// the database. What happened is written to the audit trail in the transaction
// that makes it true.
package authority
