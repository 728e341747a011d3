package pages

import "countersign.dev/web/ui"

// PermissionsView lists what agents may be allowed.
type PermissionsView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      ui.Phrase
	Notices   []ui.Notice
	Add       ui.Link   // empty: the reader may not
	Preview   []ui.Link // of the page on which people decide
	Head      [5]string // place, permission, what it does, how much is at stake, actions
	Rows      []PermissionRow
	Empty     EmptyState
	Types     DetailTypes
	Retired   RetiredPermissions
	Otherwise Otherwise
}

// DetailTypes are the types in which agents may ask for a permission more exactly.
type DetailTypes struct {
	Heading string
	Text    ui.Phrase
	Head    [2]string // what a person reads, the permission it belongs to
	Rows    []DetailTypeRow
}

// A DetailTypeRow is one of them.
type DetailTypeRow struct{ Words, Type, Scope string }

// A PermissionRow is one permission on the card.
type PermissionRow struct {
	Place, Text, ID string
	Effect          string
	Impact          string
	Sensitive       bool
	Edit            ui.Link
	Up, Down        ui.Post // without a label: it cannot go there
}

// RetiredPermissions are off the card.
type RetiredPermissions struct {
	Heading string
	Text    ui.Phrase
	Head    [3]string // permission, since, actions
	Rows    []RetiredRow
}

// A RetiredRow is one of them.
type RetiredRow struct {
	Text, ID, Since string
	Edit            ui.Link
}

// An EmptyState teaches the next step.
type EmptyState struct {
	Text    ui.Phrase
	Command string // to be copied
}

// PermissionView is one permission, or one that is not there yet.
type PermissionView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	ProblemHeading string
	Notices        []ui.Notice
	Form           PartedForm
	Ends           []Way // retire or restore, and what that means
	Back           ui.Link
	Otherwise      Otherwise
}
