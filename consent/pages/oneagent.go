package pages

import "countersign.dev/web/ui"

// AgentView is all about one agent.
type AgentView struct {
	Page    ui.Page
	Notice  []ui.Notice
	Account Account
	Heading ui.Phrase
	Lead    ui.Phrase // the host
	Picture string    // the agent's own, on our origin; empty: none
	Facts   []Fact
	Rights  string // heading of May
	May     []Right
	Nothing ui.Phrase // in place of an empty May
	Done    Deeds
	History History
	End     ui.Link // the page that asks before all of it ends
	Back    ui.Link
}

// A Right is one permission, and the way to its end.
type Right struct {
	Text            string
	Icon            ui.IconName
	Effect, Meaning string
	Details         []ui.Phrase // what exactly was allowed
	End             ui.Link
}

// Deeds is what the agent did, as the Brand recorded it; empty where it did nothing.
type Deeds struct {
	Heading string
	Lead    ui.Phrase
	Open    bool
	All     []Deed
	Older   ui.Link // empty: there are no earlier ones
}

// A Deed is one thing that was done.
type Deed struct {
	When  ui.Phrase
	Badge string   // set: something is special about it
	Tools []string // as the Brand calls them
}

// History is what was allowed, and when; folded up until it is asked for.
type History struct {
	Heading   string
	Occasions []Occasion
}

// An Occasion is one answer, in the words that were shown then.
type Occasion struct {
	When    ui.Phrase
	Lang    string // of the words, where it differs from the page
	Allowed []Once
}

// A Once is a permission that was allowed once.
type Once struct {
	Text  string
	Badge string // set: it is over
}
