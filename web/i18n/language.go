package i18n

import (
	"strings"

	"golang.org/x/text/language"
)

// A Language says every sentence of the catalogue in one language.
type Language struct {
	Tag  string // BCP 47, for the lang attribute
	Dir  string // "ltr" or "rtl", for the dir attribute
	Name string // what its speakers call it

	messages map[string]message
	calendar calendar
}

// A Piece is a part of a sentence: our own words, or the value of a
// placeholder, then Arg is the name of the placeholder.
type Piece struct {
	Text string
	Arg  string
}

// Text says the sentence of a key. args are name and value by turns, as in
// slog: Text("done.back", "agent", name). An int named count picks the plural
// form. A key that does not exist says nothing, rather than its own name; Load
// and the test of used keys see to it that this does not happen.
func (l Language) Text(key string, args ...any) string {
	var b strings.Builder
	for _, p := range l.Pieces(key, args...) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Pieces is Text before it is put together, so that a page can isolate the
// direction of a foreign name, or set it in bold.
func (l Language) Pieces(key string, args ...any) []Piece {
	return l.messages[key].fill(args)
}

// rightToLeft are the scripts in use that run from right to left.
var rightToLeft = map[string]bool{
	"Adlm": true, "Arab": true, "Hebr": true, "Mand": true, "Nkoo": true,
	"Rohg": true, "Samr": true, "Syrc": true, "Thaa": true,
}

// direction is derived from the script the language is written in, never from
// a list of languages, where Arabic is forgotten first and English added later.
func direction(tag language.Tag) string {
	script, _ := tag.Script()
	if rightToLeft[script.String()] {
		return "rtl"
	}
	return "ltr"
}
