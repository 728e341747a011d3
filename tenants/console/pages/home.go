package pages

import "countersign.dev/web/ui"

// LandingView is the dashboard's door for whoever is not signed in.
type LandingView struct {
	Frame    Frame
	Heading  ui.Phrase
	Lead     []ui.Phrase
	SignUp   ui.Link
	SignIn   ui.Link
	Commands CommandList
}

// A CommandList is what does the same from a shell.
type CommandList struct {
	Heading, Lead string
	Commands      []string
}

// BrandsView lists the person's Brands.
type BrandsView struct {
	Frame   Frame
	Heading ui.Phrase
	Brands  []BrandRow
	Empty   string
	New     ui.Link
}

// A BrandRow is one Brand and what the person is to it.
type BrandRow struct {
	Link ui.Link
	Note string
}

// HomeView is the first screen of a Brand: is anything wrong, who acts now, what
// changed.
type HomeView struct {
	Frame   Frame
	Heading ui.Phrase
	Wrong   Wrong
	Now     Figure
	Trend   Trend
	Todo    Todo
	Changes Changes
}

// Wrong says what needs somebody; without notices, AllWell is said.
type Wrong struct {
	Heading string
	Notices []ui.Notice
	AllWell string
}

// A Figure is one number and what it counts.
type Figure struct {
	Heading, Number string
	Text            ui.Phrase
	All, Stop       ui.Link // who they are, and how all of it stops
}

// A Trend is a figure over time, and the way to the others.
type Trend struct {
	Plot Plot
	More ui.Link
}

// A Todo is the way from a new Brand to its first agent.
type Todo struct {
	Heading string
	Steps   []Step
}

// A Step is done or still to do. Without a link its page is not there yet.
type Step struct {
	Done       bool
	State      string // done or still to do, for those who see no icon
	What, Help string
	Href       string
}

// Changes are the newest lines of the trail.
type Changes struct {
	Heading string
	Head    [3]string
	Rows    []ChangeRow
	Empty   string
}

// A ChangeRow is one thing that happened.
type ChangeRow struct{ When, What, Who string }
