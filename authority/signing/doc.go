// Package signing makes and publishes signatures: JWS in compact form, key ids,
// the JWKS.
//
// Each Brand has keys of its own. Keys keeps the public halves, for ever, and
// knows which key signs now; a Backend holds the private halves and may be
// another machine. Nothing signed leaves this package before it has been
// checked against the key that verifiers will find in the JWKS.
package signing
