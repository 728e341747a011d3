// Package authority holds the rules of delegation: how an agent's request
// becomes a grant, what the grant pays out, and how it ends. No HTTP, no HTML.
//
// The life of one delegation, in the order of the files:
//
//	request.go   Begin: an agent asks.  Find: the person brings the code.
//	stepup.go    StepUp: or its Brand asks, in the middle of a conversation.
//	poll.go      Poll: the agent waits, and is paid out once.
//	ask.go       Ask: what the consent page must show.
//	decide.go    Approve, Deny: the person decides; the first decision is final.
//	proceed.go   Proceed: one Continue, where nothing new is asked.
//	grant.go     what a person allows an agent, while it lives
//	token.go     what is paid out: sign outside any transaction, then one
//	             compare-and-set; nothing signed leaves unless it won
//	refresh.go   Refresh: the agent comes again; forget.go, or it does not
//	revoke.go    it ends
//	publish.go   and whoever verifies offline can read it in a signed list
//	receipt.go   Countersign: what was done gets its receipt; turn.go what is looked
//	             at, append.go the one transaction, RECEIPTS.md for those outside
//	checkpoint.go  the log of receipts is signed; proof.go proves what is in it
//	task.go      a conversation's receipts are bound together
//	list.go      what admins and the operator see of all that
//	trail.go     the audit trail proves itself; AUDIT.md for those outside
//	erase.go     one person's data goes
//	brand.go     a Brand closes, and is emptied; LEAVING.md says what stays
//
// Every state change is one statement or one transaction whose WHERE clause is
// the state machine, so any number of instances may run. Device codes and
// refresh tokens are stored as hashes, user codes as MACs under a key outside
// the database. What happened is written to the audit trail in the transaction
// that makes it true.
package authority
