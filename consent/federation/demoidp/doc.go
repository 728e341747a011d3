// Package demoidp is a small but real OpenID provider: the sign-in of the demo
// Brands in `countersign dev`, and the other side in tests of the federation. The
// protocol is zitadel/oidc's, code that is not ours, so that our client is not merely
// tested against our own reading of the specification.
//
// What it promises: authorization code with PKCE, honest auth_time and prompt, a
// session of its own so that a second login is silent unless a fresh one is asked
// for, and a page that works without scripts. It listens on loopback only, keeps
// everything in memory and knows its users' passwords in clear: it must never stand
// on a network.
//
// Start at New; demoidp.go lists the routes, login.go is the person's part, storage.go
// what zitadel/oidc asks of us. faults.go makes it misbehave on purpose.
package demoidp
