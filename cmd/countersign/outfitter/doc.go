// Package outfitter is Fern & Fell's own program: the demo's fronted Brand. It
// shows what a Brand writes that keeps its interface at an address of its own and
// is written in Go; nothing of it reaches into the service but by HTTP.
//
//	server.go   one address: what is the authority's goes to the service, the rest
//	            through the verification kit to the shop's agent
//	send.go     a message: heard, answered or asked back, countersigned at once or later
//	talks.go    conversations, whose they are, and what was answered
//	shop.go     what the shop's agent understands
package outfitter
