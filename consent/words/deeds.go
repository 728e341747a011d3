package words

import (
	"strings"
	"time"

	"countersign.dev/consent/pages"
)

// Deeds is a page of what an agent did.
type Deeds struct {
	All      []Deed // the latest first
	OlderURL string // empty: there are no earlier ones
	Open     bool   // it was asked for
}

// A Deed is one answer that the Brand gave the agent.
type Deed struct {
	At    time.Time
	Late  bool     // the permission had ended meanwhile
	With  []string // the permissions that were used, in words
	Tools []string // as the Brand calls them
}

// deeds words what an agent did.
func (d AgentData) deeds() pages.Deeds {
	if len(d.Done.All) == 0 {
		return pages.Deeds{}
	}
	v := pages.Deeds{
		Heading: d.Lang.Text("agent.done"), Lead: d.say("agent.done.lead"), Open: d.Done.Open,
	}
	if d.Done.OlderURL != "" {
		v.Older = d.link("agent.done.older", d.Done.OlderURL)
	}
	for _, one := range d.Done.All {
		when := d.Lang.DateTime(one.At)
		out := pages.Deed{When: d.say("agent.done.plain", "date", when), Tools: one.Tools}
		if len(one.With) > 0 {
			out.When = d.say("agent.done.with", "date", when, "permissions", strings.Join(one.With, " · "))
		}
		if one.Late {
			out.Badge = d.Lang.Text("agent.done.late")
		}
		v.All = append(v.All, out)
	}
	return v
}
