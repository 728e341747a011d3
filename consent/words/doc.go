// Package words turns what the journey knows into what the person reads: plain
// data and a language in, a finished view of package pages out.
//
// What it promises: every sentence comes from the catalogue; names, accounts
// and a Brand's wording come from outside and are set apart in every sentence;
// what an agent says about itself is quoted and never becomes a heading; an
// address that can be mistaken for another is shown in both its forms with a
// warning, without the caller having to think of it.
//
// Start at Common, which every page needs, then Ask.
package words
