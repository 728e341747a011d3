// Package export writes everything that is kept for a Brand as one archive, for
// the Brand to take along: what it set, who worked on it, what people allowed and
// were shown, what happened, and the public keys with which it can be proved.
//
// It promises:
//
//   - No secret is in it, of nobody.
//   - It is written as it is read, some hundred rows at a time, so that a Brand
//     with a million grants costs no more memory than one with ten.
//   - Half an archive cannot pass for a whole one: its table of contents comes
//     last, and so does manifest.json with the digest of every file.
//   - audit.ndjson is verified anywhere with countersign audit verify --file.
//
// Start at parts.go, where each file is one line; Archive.Write runs over them.
package export
