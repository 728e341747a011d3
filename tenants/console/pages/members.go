package pages

import "countersign.dev/web/ui"

// MembersView lists who works on the Brand.
type MembersView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           ui.Phrase
	ProblemHeading string
	Notices        []ui.Notice
	Waits          []Wait
	Head           [4]string // who, role, since, what can be done
	Members        []MemberRow
	Open           OpenInvitations
	Invite         Invite
	Otherwise      Otherwise
}

// A Wait is a recovery under way, which anybody may end.
type Wait struct {
	Text   ui.Notice
	Cancel ui.Post
}

// A MemberRow is one member. Without Edit there is nothing that the reader may do.
type MemberRow struct {
	Name, Email, Role, Since string
	Note                     string // the membership rests
	Edit                     ui.Link
}

// OpenInvitations are those nobody has answered.
type OpenInvitations struct {
	Heading string
	Head    [4]string
	Rows    []InvitationRow
}

// An InvitationRow is one of them.
type InvitationRow struct {
	Email, Role, Until string
	Withdraw           ui.Post // empty: the reader may not
}

// Invite asks for one more member; without a Form the reader may not.
type Invite struct {
	Heading string
	Lead    ui.Phrase
	Form    Form
}

// MemberView is one member, and what can be done.
type MemberView struct {
	Frame    Frame
	Heading  ui.Phrase
	Lead     []ui.Phrase
	Problem  []ui.Notice
	Sections []Way
	Back     ui.Link
}

// MailsView is the outbox of development.
type MailsView struct {
	Frame   Frame
	Heading ui.Phrase
	Lead    []ui.Phrase
	Mails   []Mail
	Empty   string
}

// A Mail is one that would have been sent. Links are the addresses in it, which do
// not stand in Text.
type Mail struct {
	To, Subject, Text string
	Links             []ui.Link
}
