package pages

import "countersign.dev/web/ui"

// AgentsView is My agents: who may act here, since when, and how to end it.
type AgentsView struct {
	Page    ui.Page
	Notice  []ui.Notice
	Account Account
	Heading string
	Lead    ui.Phrase
	Agents  []AgentCard

	Empty   EmptyState // shown when there are no agents
	EndAll  ui.Link    // empty: there is not more than one
	Past    Past
	SignOut ui.Post // of this Brand, in this browser
}

// An AgentCard is one agent and everything it may do.
type AgentCard struct {
	Name    string
	Picture string    // the agent's own, on our origin; empty: none
	Host    ui.Phrase // empty: it stands as the name
	Notice  []ui.Notice
	May     List
	Nothing ui.Phrase // in place of an empty May
	Facts   []Fact    // since, last used, until
	Look    ui.Link   // all about this one
	End     ui.Link   // the page that asks once more
}

// A Fact is a word and its answer.
type Fact struct{ Term, Answer string }

// Past is what ended a short while ago, and why.
type Past struct {
	Heading string
	Agents  []PastAgent
}

// A PastAgent is one that may not act any more.
type PastAgent struct {
	Name   string
	Host   ui.Phrase // empty: it stands as the name
	What   ui.Phrase // when, and why
	Marked bool      // nobody meant it to end
}

// An EmptyState teaches what will be here one day, and how.
type EmptyState struct {
	Heading string
	Text    ui.Phrase
	GoOn    ui.Link
}
