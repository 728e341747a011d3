package pages

import "countersign.dev/web/ui"

// CodeView asks for the code by hand.
type CodeView struct {
	Page    ui.Page
	Heading string
	Lead    ui.Phrase
	Care    ui.Phrase // who should not go on

	Action string
	Hidden []ui.Hidden
	Label  string
	Hint   string
	Code   string // what was typed before, kept as it was
	Button ui.Phrase

	ProblemHeading string
	Problem        string // empty: nothing is wrong yet
}

// described names what a screen reader reads out with the field.
func (v CodeView) described() string {
	if v.Problem == "" {
		return "code-hint"
	}
	return "code-hint code-problem"
}

func (v CodeView) invalid() string {
	if v.Problem == "" {
		return "false"
	}
	return "true"
}
