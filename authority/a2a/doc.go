// Package a2a serves what a Brand is under A2A 1.0: its Agent Card, from which a
// personal agent learns how to ask for delegation, and, for a hosted Brand, the
// interface itself (PACT §2, §4, §6).
//
// Interface promises, for every operation: the path and method first, then the
// pa-jwt, then the delegation token, then what was sent, and for each failure the
// bytes that wire.md names. A turn is forwarded to the Brand's own agent as one
// signed HTTPS call that never carries the pa-jwt or the token. It is made once:
// once a byte may have been sent, nothing is tried again, and a repeated message
// gets the stored reply. What the agent answers becomes a reply with its receipt,
// or a task that waits for the person's permission. It may end the conversation, which
// then has a receipt over all of its own.
//
// Start with routes.go for the operations and send.go for a turn. README.md is
// for the engineer whose agent is called.
package a2a
