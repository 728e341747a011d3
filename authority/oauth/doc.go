// Package oauth is the wire of PACT §5: device authorization (RFC 8628), the
// token endpoint, revocation (RFC 7009), metadata (RFC 8414) and the JWKS, per
// Brand.
//
// Every request takes the same way: the route names the Brand (unknown: 404),
// then the pa-jwt says who calls (otherwise a bare 401), then the body is read
// (otherwise 400), then one rule of package authority is asked, and its refusal
// becomes an OAuth error in one switch (errors.go). The routes stand in one
// list (routes.go).
//
// fosite parses requests, chooses the grant and renders answers and errors; it
// is imported nowhere else. Its own device and refresh handlers read, sign and
// then mark as used, which pays one code out many times under parallel polls,
// so the handlers here are ours.
package oauth
