package pages

import "countersign.dev/web/ui"

// AskView is a page with one form: sign-up, sign-in, an invitation, a new Brand.
type AskView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	ProblemHeading string
	Form           Form
	More           []Way // other ways to the same end
	Asides         []ui.Link
}

// A Form is fields and one button, and perhaps a passkey.
type Form struct {
	Action  string
	Hidden  []ui.Hidden
	Fields  []ui.Field
	Passkey *PasskeyAsk // nil: none is needed
	Boxes   *Boxes      // nil: nothing to choose several of
	Check   *Check      // nil: nothing to agree to
	Button  ui.Phrase   // empty: there is no form
}

// A PasskeyAsk is what the page's script hands to the browser, and what it says
// when that leads to nothing.
type PasskeyAsk struct {
	Kind        string // create or get
	Options     string // JSON
	NoScript    ui.Phrase
	Unsupported string
	Cancelled   string
	Known       string // the authenticator is registered already
}

// A Check is a box to tick.
type Check struct {
	Name, Value, Label string
	Checked            bool
}

// TellView is a page that says something and shows the way on.
type TellView struct {
	Frame   Frame
	Heading ui.Phrase
	Text    []ui.Phrase
	GoOn    ui.Link   // may be empty
	Asides  []ui.Link // quieter ways
	Forms   []Form    // what can be done about it
}

// CodesView shows recovery codes, once.
type CodesView struct {
	Frame   Frame
	Heading ui.Phrase
	Lead    []ui.Phrase
	Codes   []string
	Form    Form
}

// SecureView is the choice of how a lost device will not lock its owner out.
type SecureView struct {
	Frame   Frame
	Heading ui.Phrase
	Lead    []ui.Phrase
	Ways    []Way
	GoOn    ui.Link // empty: one of the ways comes first
}

// A Way is one of several equal choices.
type Way struct {
	Heading string
	Text    ui.Phrase
	Publish []Publication // what goes before the form, if anything
	Form    Form
	Found   string // what a look outside found wrong; empty: nothing
	Lang    string // of Found
	FoundAs string // what Found is called
}
