package pages

import "countersign.dev/web/ui"

// SettingsView is what a Brand says of itself and how long its agents may act.
type SettingsView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           ui.Phrase
	ProblemHeading string
	Notices        []ui.Notice
	Form           PartedForm
	Logo           Logo
	Otherwise      Otherwise
}

// A PartedForm is one form whose fields stand in parts. Without a Button the
// reader may only look, and the values stand there as text.
type PartedForm struct {
	Action   string
	Hidden   []ui.Hidden
	Parts    []Part
	Button   ui.Phrase
	Previews Previews
}

// Fields are all fields of the form.
func (f PartedForm) Fields() []ui.Field {
	var all []ui.Field
	for _, p := range f.Parts {
		all = append(all, p.Fields...)
	}
	return all
}

// A Part is some fields that belong together.
type Part struct {
	Heading string
	Text    ui.Phrase // may be empty
	Fields  []ui.Field
	Shades  []Shade // of the colour among them
}

// A Shade shows a colour beside what is said of it.
type Shade struct {
	Hex  string
	Text ui.Phrase
}

// Previews show what the form's values would look like, each in another language
// and in a window of its own, so that nothing typed here is lost.
type Previews struct {
	Action  string
	Text    ui.Phrase
	Buttons []ui.Button
}

// Logo is the picture of the Brand, and how another one is given.
type Logo struct {
	Heading string
	Text    ui.Phrase
	Current string // URL; empty: there is none
	Alt     string
	Upload  Upload
	Remove  ui.Post // without a label: there is none, or the reader may not
}

// An Upload is a form with one file. Without a Button the reader may not.
type Upload struct {
	Action string
	Field  ui.Field
	Accept string
	Button ui.Phrase
}

// An AlsoWay is one of them, to be copied. Without a Label it is of the same kind
// as the one before.
type AlsoWay struct{ Label, Code string }
