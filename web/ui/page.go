package ui

// A Page is everything around the content, in words.
type Page struct {
	Lang, Dir string // of the words on this page
	Title     string // of the window

	BrandName string // empty: a page of the service itself
	BrandCSS  string // URL of the Brand's stylesheet, see BrandCSS
	LogoURL   string // on our own origin; empty: the Brand's initial stands there

	Service   string // our own name
	Operator  Phrase // who runs this page
	Reference Phrase // how to name this answer to support; empty: not shown

	LanguageLabel string // names the list of languages
	Languages     []Link
	Links         []Link // help, privacy

	Wide   bool   // a page of tables
	Style  string // URL of one more stylesheet of our own
	Script string // URL of the one script of our own it needs; usually none
}

// column is the measure of the page.
func (p Page) column() string {
	if p.Wide {
		return "column wide"
	}
	return "column"
}

// Initial stands where a Brand has no logo.
func (p Page) Initial() string {
	for _, r := range p.BrandName {
		return string(r)
	}
	return ""
}

// A Link leads somewhere by GET and changes nothing.
type Link struct {
	Label   Phrase
	Href    string
	Lang    string // of the label and the target, where it differs from the page
	Current bool   // this is where the visitor is
}

// A Post is a form without anything to fill in: one button that changes
// something.
type Post struct {
	Action string
	Hidden []Hidden
	Button Button
}

// A Hidden is one value a form carries unseen.
type Hidden struct{ Name, Value string }

// A Button submits its form. Name and Value may be empty.
type Button struct {
	Name, Value string
	Label       Phrase
}

// A Notice stands above a page and says what changed since the visitor last
// looked.
type Notice struct {
	Text    Phrase
	Warning bool // ask for care, instead of just telling
}
