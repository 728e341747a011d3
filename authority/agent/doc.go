// Package agent answers one question: who is calling? A personal agent proves
// it with a pa-jwt, a short-lived JWT signed with a key that it publishes.
//
//	token, err := agent.Bearer(r.Header["Authorization"])
//	caller, err := verifier.Verify(ctx, token, audience)
//
// A Registry holds the agents we know (table agents). A Verifier takes a token
// through these steps, cheap ones first, and no step that reaches out – to the
// database, to the agent's server – is taken for a token that an earlier one
// refuses:
//
//	bearer.go   one Authorization value, one bearer token
//	parse.go    the token taken apart strictly (object.go, claims.go)
//	claims.go   audience and times
//	registry.go the issuer is registered and enabled
//	keyring.go  the agent's published keys, cached (jwk.go)
//	verify.go   the signature, and the memory of tokens already proven
//
// Where a Brand is open, Meet stands in for Verify: an unknown issuer is looked up
// (discover.go), as often as search.go lets strangers make us, and forgotten when it
// stays away (away.go).
//
// Every refusal is a Refusal and satisfies errors.Is(err, ErrRefused): the door
// answers all of them alike (401, empty body). Any other error is ours, such as
// a database that does not answer, and no verdict about the caller (503).
//
// A pa-jwt may be used any number of times within its life: an agent polls with
// one token. Nothing here keeps track of jti.
//
// An agent disabled in this process is refused at once; disabled elsewhere,
// within two seconds. The rules ask the view agent_standing inside their own SQL,
// so that nothing is granted in between.
package agent
