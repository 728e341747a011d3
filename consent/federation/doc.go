// Package federation logs people in at their Brand's own OpenID provider, as its
// client: authorization code with PKCE, state and nonce.
//
// The provider is chosen by the Brand's admin and is not trusted further than that.
// What the package promises:
//
//   - A provider that is dead, slow, huge or wrong costs its own Brand one page that
//     says so within five seconds, and no other Brand anything: everything is fetched
//     lazily, once for all who wait, and bounded in time, size and number.
//   - An Identity comes only from an ID token which that provider, and no other,
//     issued to us for this very login (R67, R68). The person's id is the claim that
//     the Brand's settings name, never an e-mail address.
//   - Every error is one of four kinds, each with one thing to do about it, and its
//     text holds no token, code, claim or word of the provider's, so it may be logged.
//
// A Brand without a provider signs people's names on its own login page: page.go
// verifies that under the same promises, and LOGINPAGE.md tells its engineers how.
//
// Begin sends the browser away and Finish reads what comes back; between them the
// caller keeps the state. finish.go tells the second half in order.
//
// demoidp is a real provider of other people's making, for tests and for development.
package federation
