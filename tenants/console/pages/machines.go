package pages

import (
	"context"
	"io"
	"strings"

	"countersign.dev/web/ui"
	"github.com/a-h/templ"
)

// code is an id or an address. It may break behind its marks, so that no word in
// it is cut, and is copied as it is.
type code string

// Render implements templ.Component. It is written by hand because a template
// adds space between the parts.
func (c code) Render(_ context.Context, w io.Writer) error {
	var b strings.Builder
	b.WriteString(`<code dir="ltr" translate="no">`)
	rest := string(c)
	for rest != "" {
		i := strings.IndexAny(rest, "/-_.:?&=") + 1
		if i == 0 {
			i = len(rest)
		}
		b.WriteString(templ.EscapeString(rest[:i]))
		if rest = rest[i:]; rest != "" {
			b.WriteString("<wbr>")
		}
	}
	b.WriteString(`</code>`)
	_, err := io.WriteString(w, b.String())
	return err
}

// Boxes are things of which several may be chosen. Each has a name of its own: no
// field comes twice.
type Boxes struct {
	Name    string // of the group, for the way to it
	Legend  string
	Hint    string
	Problem string
	All     []Box
}

// A Box is one of them.
type Box struct {
	Name, Label string
	Chosen      bool
}

// A Sample is something to copy.
type Sample struct{ Label, Text string }

// A Table is dense facts. Cells of a row are as many as of Head.
type Table struct {
	Head  []string
	Rows  []Row
	Empty []ui.Phrase // said instead of a table without rows
	// Command is what fills an empty table from a shell; may be empty.
	Command string
}

// A Row is one line of a table.
type Row []Cell

// A Cell is one fact: text, and what can be done about it.
type Cell struct {
	Text   ui.Phrase
	Code   string // an id or an address
	Note   string
	Link   ui.Link
	Button ui.Post
}

// TableView is a page around one table.
type TableView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	ProblemHeading string
	Notices        []ui.Notice
	Table          Table
	Sections       []Section
	Otherwise      Otherwise
}

// A Section is one more thing that can be done on a page.
type Section struct {
	Heading string
	Text    []ui.Phrase
	Form    Form
}

// ThingView is one key or endpoint, and what can be done with it.
type ThingView struct {
	Frame          Frame
	Heading        ui.Phrase
	ProblemHeading string
	Notices        []ui.Notice
	Facts          []Fact
	Ways           []Section
	More           More
	Otherwise      Otherwise
	Back           ui.Link
}

// A Fact is one thing that is so.
type Fact struct {
	Name string
	Text ui.Phrase
	Code string
}

// More is a table below the thing, with ways to see less of it. Without a heading
// there is none.
type More struct {
	Heading string
	Label   string // names the filters
	Filters []ui.Link
	Table   Table
	Older   ui.Link // empty: there is nothing older
}

// ShownView shows a secret for the only time.
type ShownView struct {
	Frame   Frame
	Heading ui.Phrase
	Lead    []ui.Phrase
	Label   string
	Secret  string
	Next    []ui.Phrase
	Samples []Sample
	GoOn    ui.Link
}

// ConnectView is where everything of the Brand stands, and what leads there.
type ConnectView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      []ui.Phrase
	Card      ui.Link
	Places    Table
	Proxies   Section
	Snippets  []Sample
	Guard     Section // who calls the agent, asked at every call
	Guards    []Sample
	Otherwise Otherwise
}

// TryView is a delegation that is tried.
type TryView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      []ui.Phrase
	Notices   []ui.Notice
	Steps     Todo
	Ask       TryAsk
	Token     TryToken
	Begin     Form
	End       Section
	Otherwise Otherwise
}

// TryAsk is what the person is shown by their agent. Without a code nothing waits.
type TryAsk struct {
	Heading string
	Text    ui.Phrase
	Code    string
	Link    ui.Link
	Until   string
	Look    ui.Link // looks again
}

// TryToken is the token that came. Without a heading none did.
type TryToken struct {
	Heading string
	Claims  []Fact
	Checks  string
	Made    []TryCheck
}

// A TryCheck is one rule that was looked at.
type TryCheck struct {
	Passed      bool
	State, What string
	Detail      string
}
