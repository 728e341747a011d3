package pages

import (
	"strconv"

	"countersign.dev/web/ui"
)

// Opening is how the question begins, in full and in brief: who reads it, who
// asks, and is it yours?
type Opening struct {
	Notice  []ui.Notice
	Account Account

	Question ui.Phrase
	Asked    ui.Phrase // the verified host, and when it asked
	// Picture is the address of the agent's own, on our origin. It stands below what is
	// verified, beside PictureSays, which says whose word it is. Empty: none.
	Picture     string
	PictureSays ui.Phrase
	Care        ui.Phrase // who should not go on
	Said        ui.Phrase // the Brand's own words on why; may be empty
	Warnings    []ui.Notice
	Claims      Claims

	CodeLabel string
	Code      string // empty: the whole stub is left out
	CodeWhy   ui.Phrase
}

// AskView is the question: may this agent do these things here?
type AskView struct {
	Page ui.Page
	Opening

	Action string
	Hidden []ui.Hidden

	PermissionsLegend ui.Phrase
	PermissionsHint   ui.Phrase
	Groups            []Group
	Tally             Tally

	UntilLegend string
	Until       []Until

	Next  ui.Phrase // what happens if allowed, and where to end it
	Allow ui.Phrase
	Deny  ui.Phrase
}

// An Account line says who the page believes is reading it.
type Account struct {
	SignedIn ui.Phrase
	NotYou   ui.Link // empty Href: there is no way to switch here
}

// Claims are an agent's own words. They are quoted, marked as its own, and
// decide nothing.
type Claims struct {
	Heading ui.Phrase
	Badge   string // how far to trust them
	Words   []ui.Phrase
}

// A Group is a part of the list. It is never folded away.
type Group struct {
	Heading     string // empty: the list needs no parts
	Sensitive   bool   // set apart by a line, a sign and a word
	Permissions []Permission
}

// A Permission is one row that can be ticked and unticked.
type Permission struct {
	ID      string
	Text    string // the Brand's own words, verbatim
	Icon    ui.IconName
	Effect  string // "Sees", "Changes", "Pays"
	Meaning string
	Undo    ui.Phrase
	// Asks says whose the Details are, what exactly is asked for; empty: there are
	// none.
	Asks    string
	Details []ui.Phrase
	Badge   string // "Already allowed"
	Ticked  bool
}

// A Tally counts the ticks. Style sheets count, so the number follows the
// finger without script; Before and After stand around it.
type Tally struct {
	Before, After string
	InView        bool // keep it on the screen while a long list scrolls
}

// Until is one choice of how long.
type Until struct {
	Value    string
	Label    string
	Date     string
	Selected bool
}

// rowID tells rows apart across groups, for labels.
func rowID(group, row int) string {
	return "p" + strconv.Itoa(group) + "-" + strconv.Itoa(row)
}
