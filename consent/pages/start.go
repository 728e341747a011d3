package pages

import "countersign.dev/web/ui"

// StartView meets a visitor who is not signed in. It has no place for what is
// asked: before the Brand has said who this is, no permission and no decision
// may be seen (M19).
type StartView struct {
	Page    ui.Page
	Notice  []ui.Notice
	Heading ui.Phrase
	Lead    ui.Phrase
	Steps   []ui.Phrase
	GoOn    ui.Link // to the Brand's sign-in
	Care    ui.Phrase
}
