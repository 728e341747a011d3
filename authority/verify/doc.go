// Package verify is a Brand's own check of what a personal agent shows it: the
// delegation token of PACT §5.4, and the pa-jwt beside it (PACT §3).
//
// It works offline. Everything it needs is handed in – the published keys, the
// token, what to expect, the time – so that a verdict can be repeated by an
// auditor years later with nothing but a saved key set. It knows nothing of the
// rest of Countersign, no database and no OAuth library: whoever distrusts the
// authority can still read this package and trust its verdict.
//
// What it promises:
//
//   - a token is accepted only when every rule holds; the first broken rule is
//     the error, a named value that callers test with errors.Is;
//   - nothing inside a token is believed before its signature is;
//   - the Report lists what was looked at, in order, and never holds the token;
//   - a token's identity is its jti, never its text: ES256 signatures can be
//     rewritten by anyone without becoming invalid.
//
// What it cannot know offline is whether the grant was revoked since. A Brand
// that must know asks the introspection endpoint.
//
// Start at [Token]. The keys come from [ParseKeys]; a pa-jwt is read by [PAJWT].
package verify
