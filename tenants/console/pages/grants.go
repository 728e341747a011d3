package pages

import "countersign.dev/web/ui"

// A Filter is asked for in the address, so that what it shows can be sent to
// somebody else.
type Filter struct {
	Label  string // of the whole, for those who do not see it
	Action string
	Fields []ui.Field
	Button string
	Clear  ui.Link // empty: nothing is filtered
}

// Otherwise is how a program or a shell does what the page does.
type Otherwise struct {
	Summary         string
	API, Shell      string // headings
	Calls, Commands []string
}

// Paging leads to the page before and the page after. A link may be empty.
type Paging struct {
	Label        string
	First, Older ui.Link
}

// An Empty list says what to do next.
type Empty struct {
	Text     ui.Phrase
	Next     string
	Commands []string
	Clear    ui.Link // where a filter hides everything
}

// GrantsView lists what agents may do, and for whom.
type GrantsView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      ui.Phrase
	Problem   string // above the fields
	Filter    Filter
	About     About
	Head      [6]string // box, agent, user, permissions, since, state
	Rows      []GrantRow
	Tick      Tick
	Empty     Empty
	Paging    Paging
	Otherwise Otherwise
}

// About is what the list is filtered to, and what can be done about all of it.
type About struct {
	Heading ui.Phrase // empty: it is filtered to nobody
	Text    ui.Phrase
	Ways    []ui.Link
}

// Tick ends those rows that are ticked. Without a Button the reader may not.
type Tick struct {
	Action string
	Button string
}

// A GrantRow is one grant.
type GrantRow struct {
	ID       string
	Box      string // what the box is for; empty: nothing can be ended
	Link     ui.Link
	Host     string
	User     ui.Link
	May      string
	Since    string
	State    string
	Until    string
	IsQuiet  bool // it has ended
	IsHalted bool // its user is suspended
}

// StoryView tells a grant's life.
type StoryView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      []ui.Phrase
	Facts     []NamedFact
	May       Rights
	Ways      []ui.Link
	Done      Life // what was done under it, the latest first
	Nothing   ui.Phrase
	Life      Life
	Otherwise Otherwise
	Back      ui.Link
}

// A NamedFact is one line of a grant's present state.
type NamedFact struct {
	Name string
	Text ui.Phrase
}

// Rights are the grant's permissions.
type Rights struct {
	Heading string
	Rows    []RightRow
}

// A RightRow is one permission, and the way to take it away.
type RightRow struct {
	Text, ID string
	End      ui.Link // empty: it cannot be taken away, or not by the reader
}

// Life is a grant's timeline, the first moment first.
type Life struct {
	Heading string
	Moments []Moment
	More    ui.Link // where there are more than fit
}

// A Moment is one thing that happened, who did it, and perhaps what was shown.
type Moment struct {
	When, What string
	Who        ui.Phrase
	Lines      []ui.Phrase
	IsCare     bool // an alarm
	Shown      *Shown
}

// Shown is a page that a person read and answered, word for word.
type Shown struct {
	Summary string
	Lang    string // of the words
	Lines   []ui.Phrase
	Rows    []ShownRow
}

// A ShownRow is one permission as it stood there.
type ShownRow struct {
	Answer            string // ticked or not
	Description, Undo string
}

// EndView says exactly what will end, or how it went.
type EndView struct {
	Frame     Frame
	Heading   ui.Phrase
	Notices   []ui.Notice
	Lead      []ui.Phrase
	Items     []EndItem
	Form      Form
	GoOn      ui.Link
	Back      ui.Link
	Otherwise Otherwise
}

// An EndItem is one of the grants that will end.
type EndItem struct{ Agent, User, May string }
