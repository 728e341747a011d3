// Package discovery is how a strict personal agent finds a Brand: the Agent
// Card, the authorization server metadata behind it (RFC 8414), and the keys.
//
// Everything comes from strangers, so every answer is bounded, no redirect is
// followed, and the card and the metadata must tell the same story: the issuer
// is the interface URL + "/oauth", on the interface's own origin, with the same
// endpoints byte for byte. Otherwise a card could send an agent – and the
// person who trusts it – to somebody else's sign-in.
//
// Start at [Client.Find].
package discovery
