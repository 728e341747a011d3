// Package i18n holds the words of every page, one JSON file per language.
//
// What it promises: every language has every key and every placeholder (Load
// refuses a catalogue that has not), so a page never shows a raw key and never
// half a sentence; a count picks its own plural form; and what a visitor sends
// as language wishes is bounded before it is parsed.
//
// Start at Load, then Catalogue.Match, then Language.Text. Language.Pieces is
// the same sentence in parts, for pages that must set other people's words
// apart from ours.
package i18n
