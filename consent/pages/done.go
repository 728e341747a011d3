package pages

import "countersign.dev/web/ui"

// DoneView closes the journey: what was decided, and what comes now.
type DoneView struct {
	Page    ui.Page
	Allowed bool // a tick beside the heading; never the only sign
	Heading ui.Phrase
	Lead    ui.Phrase // go back to the agent

	Lists []List
	Until ui.Phrase
	More  ui.Phrase // where to end it
}

// A List is some permissions in the Brand's own words, under a line of ours.
type List struct {
	Heading string
	Items   []string
}
