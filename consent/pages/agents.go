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
	SignOut ui.Post    // of this Brand, in this browser
}

// An AgentCard is one agent and everything it may do.
type AgentCard struct {
	Name    string
	Host    ui.Phrase // empty: it stands as the name
	Warning []ui.Notice
	May     List
	Facts   []Fact // since, last used, until
	End     ui.Post
	EndURL  ui.Link // a page that asks once more, in place of End
}

// A Fact is a word and its answer.
type Fact struct{ Term, Answer string }

// An EmptyState teaches what will be here one day, and how.
type EmptyState struct {
	Heading string
	Text    ui.Phrase
	GoOn    ui.Link
}

// EndAgentView says exactly what will end, and asks once.
type EndAgentView struct {
	Page    ui.Page
	Account Account
	Heading ui.Phrase
	Lead    ui.Phrase // the host
	Ends    List
	Stays   string // what ending does not undo
	End     ui.Post
	Keep    ui.Link
}
