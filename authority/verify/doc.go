// Package verify is a Brand's own check of what a personal agent shows it: the
// delegation token of PACT §5.4, and the pa-jwt beside it (PACT §3).
//
// It knows nothing of the rest of Countersign, no database and no OAuth library:
// whoever distrusts the authority can still read this package and trust its verdict.
// It has two layers.
//
// The core works offline: [Token], [PAJWT], [ParseStatusList]. Everything it needs is
// handed in – the published keys, the token, what to expect, the time – so that a
// verdict can be repeated by an auditor years later with nothing but a saved key set.
//
// The kit is for a server that agents call: [New] makes a [Verifier], whose Protect
// stands before a handler. It finds and keeps what the core needs (README.md says how
// fresh), and asks the authority for what only that can give:
//
//	bearer.go      one header value, one bearer token
//	agents.go      which agents may call, their keys (keyring.go, discover.go)
//	verifier.go    the call as a whole
//	revoked.go     what ended, from the status list; ended.go, follow.go: from the stream
//	protect.go     the door of a handler
//	stepup.go      more is needed; countersign.go: something was done (ask.go)
//	pending.go     turns whose receipts were not to be had at once
//	offer.go       how they are offered again, and what settles them
//	kept.go        how a document of somebody else's is kept fresh (fetch.go)
//
// What both promise:
//
//   - a token is accepted only when every rule holds; the first broken rule is
//     the error, a named value that callers test with errors.Is;
//   - nothing inside a token is believed before its signature is;
//   - the Report lists what was looked at, in order, and never holds the token;
//   - a token's identity is its jti, never its text: ES256 signatures can be
//     rewritten by anyone without becoming invalid;
//   - where nobody can tell, nobody is let in.
//
// Whether the grant was revoked since, the token cannot say. The Brand's signed
// status list does, as of a few seconds ago ([ParseStatusList]); a Brand that must
// know at this very moment asks the introspection endpoint.
//
// What a Brand signed of its own doings is checked in the same way: a receipt
// ([Receipt]), a conversation's ([TaskReceipt]), the log in which all of them stand
// ([Checkpoint], [Inclusion], [Consistency], [WholeLog]). A receipt of a key that was
// revoked counts only where the log shows it to be older ([ParseArchive]).
package verify
