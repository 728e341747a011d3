package pages

import "countersign.dev/web/ui"

// EndView says exactly what will end, and asks once.
type EndView struct {
	Page       ui.Page
	Account    Account
	Heading    ui.Phrase
	Lead       ui.Phrase // the host
	Notice     []ui.Notice
	Lists      []List        // what ends, and what stays
	AgentsHead string        // heading of Agents
	Agents     []EndingAgent // where everything ends
	After      string        // what ending does not undo
	End        ui.Post
	Keep       ui.Link
}

// An EndingAgent is one of several that end together.
type EndingAgent struct {
	Name string
	Host ui.Phrase // empty: it stands as the name
	May  string    // how much it may do
}
