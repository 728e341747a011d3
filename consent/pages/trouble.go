package pages

import "countersign.dev/web/ui"

// TroubleView is every dead end: what happened, that nothing was shared, and
// the next step.
type TroubleView struct {
	Page    ui.Page
	Heading ui.Phrase
	What    ui.Phrase
	Safe    string // that nothing was shared, or changed
	Next    ui.Phrase

	GoOn   ui.Link // empty Href: there is no way on from here
	Aside  ui.Link
	Decide []ui.Post
}
