// Package statuslist is the list inside a Status List Token (IETF draft
// draft-ietf-oauth-status-list): two bits for each index, compressed with zlib,
// written in base64url. Who publishes a list and who verifies one share it, and
// it knows neither of them: no JWT, no clock, no key.
//
// A list that comes from outside is decoded within bounds: whatever it is, it
// costs [MaxSize] bytes of memory at most.
//
// Start at [New] to write one, at [Decode] to read one.
package statuslist
