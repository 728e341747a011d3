// Package api is the admin API of a Brand: JSON over HTTPS under
// /api/v1/brands/{brand}, authenticated with an API key that has the right
// "admin". Errors are RFC 9457 problem documents.
//
// Today it speaks of keys:
//
//	GET  keys               every key: next, current, retired, revoked
//	POST keys               publish a next key; it takes its turn by itself
//	POST keys/{kid}/retire  take a next key back
//	POST keys/{kid}/revoke  {"reason": …} the key may be in other hands
package api
