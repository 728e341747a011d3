// Package api is the admin API of a Brand: JSON over HTTPS under
// /api/v1/brands/{brand}, authenticated with an API key that has the right
// "admin". What it offers stands in routes.go, one line a call, and the OpenAPI
// document at /api/v1/openapi.json is made from that list.
//
// It promises:
//
//   - Errors are RFC 9457 problem documents. Mistakes in a body are told all at
//     once, each with the way to mend it, and nothing has changed.
//   - A call that bears an Idempotency-Key is done once within a day; the same
//     call again gets the same answer.
//   - What moves where people log in, where tokens are good, or who may act as
//     the Brand, is only asked for here (202): an owner decides.
//   - Every change stands in the Brand's audit trail under the API key's id.
package api
