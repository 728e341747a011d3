package words

import (
	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// Effect is what a permission can do to an account.
type Effect string

// The effects. Any other text counts as Changes: a Brand that does not say
// must not look harmless.
const (
	Sees    Effect = "sees"
	Changes Effect = "changes"
	Pays    Effect = "pays"
)

// Scope is one permission that is asked for or held.
type Scope struct {
	ID          string
	Description string // the Brand's, verbatim
	Effect      Effect
	Undo        string // the Brand's; may be empty
	Sensitive   bool
	Ticked      bool
	Held        bool // already allowed
	// Details say more exactly what it is to allow, a sentence each.
	Details [][]DetailPart
}

// DetailPart is a piece of such a sentence: the Brand's words, or a value that the
// agent gave.
type DetailPart struct {
	Text  string
	Value bool
}

// detail is the sentence as a phrase. Values are isolated, so that none turns the
// words around it; the Brand's own run in one direction, which the page isolates.
func detail(parts []DetailPart) ui.Phrase {
	var p ui.Phrase
	for _, part := range parts {
		span := ui.Span{Text: part.Text}
		if part.Value {
			span.Origin = ui.Foreign
		}
		p = append(p, span)
	}
	return p
}

// manyScopes is how many rows are read without parts.
const manyScopes = 6

// groups puts the list in order: as the Brand has it, the sensitive ones last;
// above six, by what they do. Everything stays unfolded.
func (c Common) groups(scopes []Scope) []pages.Group {
	var groups []pages.Group
	add := func(heading string, sensitive bool, belongs func(Scope) bool) {
		g := pages.Group{Heading: heading, Sensitive: sensitive}
		for _, s := range scopes {
			if s.Sensitive == sensitive && belongs(s) {
				g.Permissions = append(g.Permissions, c.permission(s))
			}
		}
		if len(g.Permissions) > 0 {
			groups = append(groups, g)
		}
	}
	all := func(Scope) bool { return true }
	if len(scopes) <= manyScopes {
		add("", false, all)
	} else {
		for _, part := range []struct {
			effect  Effect
			heading string
		}{
			{Sees, c.Lang.Text("ask.group.sees")},
			{Changes, c.Lang.Text("ask.group.changes")},
			{Pays, c.Lang.Text("ask.group.pays")},
		} {
			add(part.heading, false, func(s Scope) bool { return s.Effect.known() == part.effect })
		}
	}
	add(c.Lang.Text("ask.group.sensitive"), true, all)
	return groups
}

func (e Effect) known() Effect {
	if e == Sees || e == Pays {
		return e
	}
	return Changes
}

func (c Common) permission(s Scope) pages.Permission {
	p := pages.Permission{ID: s.ID, Text: s.Description, Ticked: s.Ticked}
	switch s.Effect.known() {
	case Sees:
		p.Icon, p.Effect, p.Meaning = ui.IconSees, c.Lang.Text("ask.sees"), c.Lang.Text("ask.sees.meaning")
	case Pays:
		p.Icon, p.Effect, p.Meaning = ui.IconPays, c.Lang.Text("ask.pays"), c.Lang.Text("ask.pays.meaning")
	default:
		p.Icon, p.Effect, p.Meaning = ui.IconChanges, c.Lang.Text("ask.changes"), c.Lang.Text("ask.changes.meaning")
	}
	if len(s.Details) > 0 {
		p.Asks = c.Lang.Text("ask.details")
	}
	for _, one := range s.Details {
		p.Details = append(p.Details, detail(one))
	}
	if s.Undo != "" {
		p.Undo = c.say("ask.undo", "undo", s.Undo)
	}
	if s.Held {
		p.Badge = c.Lang.Text("ask.held")
	}
	return p
}

// tally is cut where the style sheet puts the number in.
func (c Common) tally(total int) pages.Tally {
	t := pages.Tally{InView: total > manyScopes}
	before := true
	for _, p := range c.Lang.Pieces("ask.tally", "ticked", "", "total", total) {
		switch {
		case p.Arg == "ticked":
			before = false
		case before:
			t.Before += p.Text
		default:
			t.After += p.Text
		}
	}
	return t
}
