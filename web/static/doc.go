// Package static serves the few files our pages need, from our own origin and
// nowhere else: one stylesheet, one display face, one icon.
//
// What it promises: the name of a file carries the hash of its content, so an
// answer may be kept for ever and a new release is seen at once; nothing but
// the listed files is served. The face is Newsreader under the SIL Open Font
// License; its licence lies beside it and is served with it.
//
// Start at URL, which pages use, and Handler, which belongs at Prefix.
package static
