package pages

import "countersign.dev/web/ui"

// UsageView shows how the Brand is used, day by day.
type UsageView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      ui.Phrase
	Ranges    []ui.Link
	RangeName string
	Plots     []Plot
	Otherwise Otherwise
}

// A Plot is one figure over time as bars, with the same in a table. Coordinates
// are those of a sheet of 320 by 140.
type Plot struct {
	ID          string // within the page
	Heading     string
	Total       string
	Unit        ui.Phrase
	Title, Desc string // for those who do not see it
	Lines       []PlotLine
	Bars        []PlotBar
	From, To    string // the first and the last day
	IsCare      bool   // alarms
	Figures     string // names the table
	Head        [2]string
	Rows        [][2]string
}

// A PlotLine is a level of the figure.
type PlotLine struct{ Y, LabelY, Label string }

// A PlotBar is one day.
type PlotBar struct{ X, Y, Width, Height string }

// TrailView is what happened, the newest first.
type TrailView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      ui.Phrase
	Problem   string
	Filter    Filter
	Head      [5]string // number, when, what, who, grant
	Rows      []TrailRow
	Empty     Empty
	Paging    Paging
	Chain     Chain
	Otherwise Otherwise
}

// A TrailRow is one event in words, with what was written word for word.
type TrailRow struct {
	Seq, When, What string
	Lines           []ui.Phrase
	Who             ui.Link
	Grant           ui.Link // empty: it is about none
	Summary         string  // of the details
	Details         [][2]string
}

// Chain is the head to note down, and how to take the trail along.
type Chain struct {
	Heading  string
	Text     []ui.Phrase
	Head     string // empty: nothing has happened yet
	Commands []string
	Exports  []ui.Link
	Note     string
}
