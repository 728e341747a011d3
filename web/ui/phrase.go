package ui

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// A Phrase is a finished sentence whose parts know where they come from, so
// that a Brand's Arabic name does not turn the question mark of an English
// sentence round (B114). It is a templ.Component.
type Phrase []Span

// A Span is one part of a Phrase.
type Span struct {
	Text   string
	Origin Origin
	Href   string // set: the part is a link
}

// Origin says whose words a Span holds.
type Origin int

// Whose words they are.
const (
	Ours    Origin = iota // from the catalogue
	Foreign               // a name, an account: isolated
	Proven                // a fact we verified, such as a host: isolated and bold
)

// Plain is a Phrase of our own words alone.
func Plain(text string) Phrase { return Phrase{{Text: text}} }

// String is the sentence without marks, for a title.
func (p Phrase) String() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Render writes the sentence. It is written by hand because a template adds
// space between the parts of a sentence.
func (p Phrase) Render(_ context.Context, w io.Writer) error {
	var b strings.Builder
	for _, s := range p {
		s.render(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Span) render(b *strings.Builder) {
	text := templ.EscapeString(s.Text)
	switch s.Origin {
	case Foreign:
		text = "<bdi>" + text + "</bdi>"
	case Proven:
		text = "<strong><bdi>" + text + "</bdi></strong>"
	case Ours:
	}
	if s.Href != "" {
		// templ.URL refuses javascript: and its kin.
		text = `<a href="` + templ.EscapeString(string(templ.URL(s.Href))) + `">` + text + "</a>"
	}
	b.WriteString(text)
}
