package pages

import "countersign.dev/web/ui"

// HomeView is a plain page of the service itself.
type HomeView struct {
	Page     ui.Page
	Heading  string
	Lead     []string
	Sections []Section
}

// A Section is a heading with things to open.
type Section struct {
	Heading string // may be empty
	Text    string
	Links   []NotedLink
}

// A NotedLink says beside the link what it opens.
type NotedLink struct {
	ui.Link
	Note string
}
