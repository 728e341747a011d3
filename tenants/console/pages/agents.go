package pages

import "countersign.dev/web/ui"

// AgentsView is which agents may ask the Brand's users.
type AgentsView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      ui.Phrase
	Notices   []ui.Notice
	Rule      Rule
	Search    Search
	Head      [4]string // agent, may it ask, the Brand's word, actions
	Rows      []AgentRow
	Empty     EmptyState
	Pages     []ui.Link // first, next
	Otherwise Otherwise
}

// A Rule holds for every agent of which the Brand has said nothing.
type Rule struct {
	Heading string
	Text    ui.Phrase
	Care    []ui.Phrase // what a choice means
	Form    Form        // without a button: the reader may not
}

// A Search asks by the address, so that what was found can be linked to.
type Search struct {
	Action string
	Field  ui.Field
	Button ui.Phrase
}

// An AgentRow is one registered agent.
type AgentRow struct {
	Name, Host string
	Logo       string    // of its own choice; empty: none
	Drawn      ui.Phrase // how browsers may draw the host; empty: no otherwise
	Marks      []string  // test, disabled
	Warnings   []ui.Phrase
	May        string
	Word       string
	Open       ui.Link
}

// OneAgentView is one agent, and what the Brand says to it.
type OneAgentView struct {
	Frame     Frame
	Heading   ui.Phrase
	Logo      string // of its own choice; empty: none
	Lead      []ui.Phrase
	Notices   []ui.Notice
	Facts     []ui.Field
	Sections  []Way
	Back      ui.Link
	Otherwise Otherwise
}

// PauseView is the kill switch.
type PauseView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      []ui.Phrase
	Notices   []ui.Notice
	What      WhatHappens
	Form      Form // without a button: the reader may not
	Otherwise Otherwise
}

// WhatHappens is said before somebody does it.
type WhatHappens struct {
	Heading string
	Points  []ui.Phrase
}

// shownValue is a field's value for somebody who may only look.
func shownValue(f ui.Field) string {
	for _, o := range f.Options {
		if o.Chosen {
			return o.Label
		}
	}
	if f.Value == "" {
		return "–"
	}
	return f.Value
}
