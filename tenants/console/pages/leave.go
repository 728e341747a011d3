package pages

import "countersign.dev/web/ui"

// LeaveView is where a Brand takes its data along, closes, and reads how far its
// end has come.
type LeaveView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	ProblemHeading string
	Parts          []LeavePart
}

// A LeavePart is one thing to do, with all that it comes to.
type LeavePart struct {
	Heading   string
	Text      []ui.Phrase
	Points    []ui.Phrase // what exactly happens
	Form      Form
	Otherwise Otherwise
}

// EraseView is the erasure of one person: whom, what there is of them, and that it
// is done.
type EraseView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	Notices        []ui.Notice
	ProblemHeading string
	Part           LeavePart
	Back           []ui.Link
}
