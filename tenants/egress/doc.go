// Package egress is the one way out to addresses that somebody else named: an
// agent's key set, a Brand's identity provider, a webhook receiver.
//
// Whoever may name a URL can try to make us fetch from inside our own network,
// wait for ever or swallow a gigabyte. A Client therefore promises, for every
// exchange and whatever the other side does:
//
//   - only https to port 443 of public addresses, checked when the connection
//     is made, so that no answer of DNS can slip past the check;
//   - no redirects, no proxy, no decompression, no HTTP/2;
//   - one deadline over everything, the last byte of the body included;
//   - no more than Config.MaxBytes of body and 16 KiB of headers;
//   - errors that do not tell what a name means inside our network.
//
// For development, Config.AllowLoopback opens loopback addresses, on any port
// and without TLS, and nothing else.
//
// It starts in client.go; what may be named is in url.go, where a connection
// may go in address.go, how an exchange is bounded in transport.go.
package egress
