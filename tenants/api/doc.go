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
//   - Whatever needs a fresh touch on the dashboard is only asked for here (202),
//     and every owner gets a letter of it: where people log in, where tokens are
//     good, who may act as the Brand, domains, webhooks, signing keys, and what
//     gives back that was taken: resuming, restoring a scope, letting more agents
//     ask. An owner decides, with a passkey.
//   - What only stops something waits for nobody: pausing, ending grants, revoking
//     a key, turning a webhook off. The emergency of signing keys is one of them:
//     a key that is in other hands is revoked in that minute, for a false alarm
//     costs each agent one refresh and a late one whatever the thief signs. So that
//     nobody does it unseen, every owner hears of it by mail.
//   - Every change stands in the Brand's audit trail under the API key's id.
package api
