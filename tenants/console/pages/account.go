package pages

import "countersign.dev/web/ui"

// AccountView is somebody's own account.
type AccountView struct {
	Frame     Frame
	Heading   ui.Phrase
	Lead      []ui.Phrase
	Notices   []ui.Notice
	Keys      OwnTable
	More      ui.Link // to make another passkey, or codes
	Open      OwnTable
	Elsewhere ui.Post // sign out everywhere else; none: there is no elsewhere
	Brands    OwnTable
	Back      ui.Link
}

// OwnTable lists what is somebody's own.
type OwnTable struct {
	Heading string
	Text    ui.Phrase
	Head    []string
	Rows    []OwnRow
}

// OwnRow is one of it: a name, as many facts as there are columns for, and what
// can be done where there is a column for that.
type OwnRow struct {
	Name  string
	Mark  string
	Facts []string
	Post  ui.Post
	Link  ui.Link
}
