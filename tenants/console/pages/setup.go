package pages

import "countersign.dev/web/ui"

// A Pair is one thing and what it is. Code is to be copied letter by letter.
type Pair struct {
	Label, Value string
	Code         bool
}

// A Verdict is how something stands: the word says it, the colour helps.
type Verdict struct {
	Word string
	Kind string // good, care, bad or open
}

func (v Verdict) icon() ui.IconName {
	switch v.Kind {
	case "good":
		return ui.IconDone
	case "open":
		return ui.IconInfo
	}
	return ui.IconCare
}

// Checks are what was looked at somewhere else, line by line. Nothing was, where
// there are no Lines.
type Checks struct {
	Heading string
	Lead    ui.Phrase
	Head    [3]string // what, what stands there, how it is
	Lines   []CheckLine
}

// A CheckLine is one of them.
type CheckLine struct {
	What, At, Say string
	Lang          string // of Say; empty: the page's
	Verdict       Verdict
	Offer         ui.Post // a correction, made by one button; may be empty
}

// A Drop is something that ends, behind one more click that says what.
type Drop struct {
	Label string // empty: the reader may not
	Text  ui.Phrase
	Form  Form
}

// A DiffRow is one thing before and after a change.
type DiffRow struct {
	Field, Before, After string
	Worded               bool // in words, and not as it is typed
}

// A Diff is a change as somebody reads it.
type Diff struct {
	Head          [3]string
	Before, After bool // which of the two is shown
	Rows          []DiffRow
}

func (d Diff) heads() []string {
	out := d.Head[:1:1]
	if d.Before {
		out = append(out, d.Head[1])
	}
	if d.After {
		out = append(out, d.Head[2])
	}
	return out
}

// DomainsView lists the Brand's domains.
type DomainsView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	Notices        []ui.Notice
	ProblemHeading string
	Domains        []DomainCard
	Empty          string
	Add            Invite
	Otherwise      Otherwise
}

// A DomainCard is one domain: how it stands, what to publish, what was found.
type DomainCard struct {
	Host    string
	Verdict Verdict
	Since   ui.Phrase
	Found   string // what the last look found wrong; empty: nothing
	Lang    string // of Found
	FoundAs string // what Found is called
	Publish []Publication
	Check   ui.Post
	Remove  Drop
}

// A Publication is what others are to be told, to be copied.
type Publication struct {
	Heading string
	Pairs   []Pair
}

// InterfaceView says where the Brand's agent answers.
type InterfaceView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	Notices        []ui.Notice
	ProblemHeading string
	NowHeading     string
	Now            []Pair
	Audience       Publication
	AudienceText   ui.Phrase
	CheckHeading   string
	CheckLead      ui.Phrase
	Check          ui.Post
	Checks         Checks
	Ways           []LifeWay
	WaysHeading    string
	// Providers are the one that the Brand belongs to, and the one that it made.
	ProvidersHeading string
	ProvidersLead    ui.Phrase
	Providers        []Publication
	Name             Invite // of the one that it made
	Move             Invite // its form asks by GET
	Otherwise        Otherwise
}

// A LifeWay is one of the three ways to live.
type LifeWay struct {
	Heading string
	Current string // said of the one that is now; empty: it is another
	Text    ui.Phrase
	Needs   ui.Phrase
	Care    []ui.Notice
}

// MoveView shows a move of the interface before it is made.
type MoveView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	Notices        []ui.Notice
	ProblemHeading string
	Diff           Diff
	Form           Form
	Back           ui.Link
}

// ConnectionsView is how the Brand's people log in.
type ConnectionsView struct {
	Frame          Frame
	Heading        ui.Phrase
	Lead           []ui.Phrase
	Notices        []ui.Notice
	ProblemHeading string
	Cards          []ConnectionCard
	Checks         Checks
	Look           Invite
	Register       Publication // what to tell the provider
	RegisterText   ui.Phrase
	Set, Own       Invite // for a provider; for the Brand's own page
	Otherwise      Otherwise
}

// A ConnectionCard is the live connection or the candidate.
type ConnectionCard struct {
	Heading string
	Note    ui.Phrase
	Pairs   []Pair
	Check   ui.Post
	Try     ui.Link
	Live    Form
	Remove  Drop
}

// TriedView is what a test login came to.
type TriedView struct {
	Frame   Frame
	Heading ui.Phrase
	Notices []ui.Notice
	Lead    []ui.Phrase
	Who     []Pair
	Claims  Claims
	Live    Form
	Back    ui.Link
}

// Claims are what the provider said.
type Claims struct {
	Heading string
	Head    [2]string
	Rows    []ClaimRow
}

// A ClaimRow is one claim; the note is at the one that is the person's id.
type ClaimRow struct{ Name, Value, Note string }

// PendingView lists what waits for an owner, and what was decided.
type PendingView struct {
	Frame       Frame
	Heading     ui.Phrase
	Lead        []ui.Phrase
	Notices     []ui.Notice
	Waiting     []ChangeCard
	Empty       string
	PastHeading string
	PastHead    [4]string // what, who asked, how it ended, when
	Past        []PastChange
	Older       ui.Link
	Otherwise   Otherwise
}

// A ChangeCard is a change that waits.
type ChangeCard struct {
	Heading         string
	Text            ui.Phrase
	Care            []ui.Notice
	Diff            Diff
	Approve, Reject ui.Post
}

// A PastChange is one that was decided, or whose time is over.
type PastChange struct{ What, Who, End, When string }

// SecretView shows something once.
type SecretView struct {
	Frame   Frame
	Heading ui.Phrase
	Lead    []ui.Phrase
	Secret  Pair
	GoOn    ui.Link
}
