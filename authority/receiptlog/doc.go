// Package receiptlog is the form of a receipt and of the log in which every
// receipt of a Brand stands: what is signed, what is hashed, and in which order.
// Who writes the log and who verifies it offline both go by it; it holds no state.
//
// The log is a Merkle tree of RFC 6962 with the hashes of
// golang.org/x/mod/sumdb/tlog. A leaf is an [Entry], canonical JSON without any
// personal data: what was served stands in it as salted hashes, and what was said too.
// Whoever has the receipt and the salt can show that the entry is its own; where a person's data
// was erased, the salt is gone, the entry says nothing about them any more, and the
// tree is as sound as before.
package receiptlog
