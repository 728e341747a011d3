package pages

import "countersign.dev/web/ui"

// BriefView is the question where nothing new is asked: no boxes, but what is
// allowed, where it is changed and ended, and one act.
type BriefView struct {
	Page ui.Page
	Opening

	Holds   ui.Phrase // a heading
	Nothing ui.Phrase // that nothing is added
	May     []string
	Until   ui.Phrase
	Change  ui.Link // to the question in full
	End     ui.Link

	Action   string
	Hidden   []ui.Hidden
	Next     ui.Phrase
	Continue ui.Phrase
	Deny     ui.Phrase
}
