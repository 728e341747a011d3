package pages

import "countersign.dev/web/ui"

// A Frame is what stands around every page of the dashboard.
type Frame struct {
	Page     ui.Page
	NavLabel string
	Nav      []ui.Link // groups of the Brand's pages; none: this page is of no Brand
	SubNav   []ui.Link // the pages of the current group; may be none
	Brands   Switch
	Account  ui.Link // who is signed in, and the way to what is theirs; empty: nobody
	SignOut  ui.Post
	Notices  []ui.Notice // what holds for every page of the Brand
}

// A Switch leads to the person's other Brands.
type Switch struct {
	Label string // empty: there is nowhere to go
	Links []ui.Link
}

func (f Frame) hasTop() bool { return len(f.Nav) > 0 || f.Account.Href != "" }
