package words

import (
	"time"

	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// AgentData is what the page about one agent needs.
type AgentData struct {
	Common
	Account   string
	SwitchURL string
	BackURL   string // My agents
	Held      HeldAgent
	Pause     Pause
	Rights    []Right
	Done      Deeds
	JustEnded string     // a permission that was taken away just now
	History   []Occasion // the newest first
}

// Right is one permission that an agent holds.
type Right struct {
	Description string
	Effect      Effect
	Details     [][]DetailPart
	EndURL      string // the page that asks once more
}

// Occasion is an answer that was given once.
type Occasion struct {
	At        time.Time
	Language  string // BCP 47, of the words
	Days      int    // 0: not asked
	Continued bool   // nothing new was allowed
	Allowed   []Once
}

// Once is a permission in the words in which it was allowed.
type Once struct {
	Description string
	Over        bool // not allowed any more
}

// OneAgent words the page about one agent.
func OneAgent(d AgentData) pages.AgentView {
	agent := d.Held.Agent.called()
	heading := d.say("agent.heading", "agent", agent)
	v := pages.AgentView{
		Page: d.page(heading.String()), Heading: heading, Lead: d.say("end.lead", "host", d.Held.Agent.host()), Picture: d.Held.Agent.picture(),
		Facts: d.facts(d.Held), Rights: d.Lang.Text("agent.rights"),
		End:  ui.Link{Label: d.say("agents.end", "agent", agent), Href: d.Held.EndURL},
		Back: d.link("agent.back", d.BackURL),
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	if d.JustEnded != "" {
		v.Notice = append(v.Notice, ui.Notice{Text: d.say("agent.narrowed", "agent", agent, "permission", d.JustEnded)})
	}
	v.Notice = append(append(v.Notice, d.paused(d.Pause)...), d.doubts(d.Held)...)
	for _, r := range d.Rights {
		p := d.permission(Scope{Description: r.Description, Effect: r.Effect, Details: r.Details})
		v.May = append(v.May, pages.Right{
			Text: p.Text, Icon: p.Icon, Effect: p.Effect, Meaning: p.Meaning, Details: p.Details, End: d.link("agent.one", r.EndURL),
		})
	}
	if len(v.May) == 0 {
		v.Nothing = d.say("agents.nothing")
	}
	v.Done = d.deeds()
	if len(d.History) > 0 {
		v.History = pages.History{Heading: d.Lang.Text("agent.history")}
	}
	for _, o := range d.History {
		v.History.Occasions = append(v.History.Occasions, d.occasion(o))
	}
	return v
}

func (d AgentData) occasion(o Occasion) pages.Occasion {
	when := d.Lang.Date(o.At)
	out := pages.Occasion{When: d.say("agent.allowed", "date", when)}
	switch {
	case o.Continued:
		out.When = d.say("agent.continued", "date", when)
	case o.Days > 0:
		out.When = d.say("agent.allowed.days", "date", when, "count", o.Days)
	}
	if o.Language != d.Lang.Tag {
		out.Lang = o.Language
	}
	for _, a := range o.Allowed {
		item := pages.Once{Text: a.Description}
		if a.Over {
			item.Badge = d.Lang.Text("agent.over")
		}
		out.Allowed = append(out.Allowed, item)
	}
	return out
}
