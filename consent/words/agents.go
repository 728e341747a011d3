package words

import (
	"time"

	"countersign.dev/consent/pages"
	"countersign.dev/web/alike"
	"countersign.dev/web/ui"
)

// AgentsData is what My agents needs.
type AgentsData struct {
	Common
	Account   string
	SwitchURL string
	CodeURL   string // where a code is typed
	Pause     Pause
	Agents    []HeldAgent
	EndAllURL string // the page that asks before everything ends
	JustEnded []Agent
	Past      []PastAgent // the last to end first

	SignOutAction string
	SignOutHidden []ui.Hidden
}

// Pause is why nothing can act, though it is allowed.
type Pause int

// The pauses. What was allowed is kept in each.
const (
	NotPaused        Pause = iota
	PausedForAccount       // by the Brand, for this account
	PausedForAll           // by the Brand, for all its customers
)

// HeldAgent is an agent that may act now.
type HeldAgent struct {
	Agent Agent
	May   []string // descriptions
	Since time.Time
	Used  time.Time // zero: never
	Until time.Time // zero: until it is ended
	Soon  bool      // Until is near
	Off   bool      // the agent is switched off here

	LookURL string // all about this one
	EndURL  string // the page that asks once more
}

// PastAgent is an agent that might act until a short while ago.
type PastAgent struct {
	Agent  Agent
	At     time.Time
	Reason EndReason
	Again  bool // the same one has been allowed anew
}

// EndReason is how it came that an agent may not act any more.
type EndReason string

// The reasons.
const (
	EndedByUser     EndReason = "revoked_by_user"
	EndedByUnticked EndReason = "all_unticked"
	EndedByAgent    EndReason = "revoked_by_agent"
	EndedByAdmin    EndReason = "revoked_by_admin"
	EndedByOperator EndReason = "revoked_by_operator"
	RanOut          EndReason = "expired"
	Forgotten       EndReason = "idle"
	BrandMoved      EndReason = "interface_changed"
	KeyUsedTwice    EndReason = "reuse_detected"
)

// Agents words My agents.
func Agents(d AgentsData) pages.AgentsView {
	heading := d.Lang.Text("agents.name")
	v := pages.AgentsView{
		Page: d.page(heading), Heading: heading, Lead: d.say("agents.lead"),
		Empty: pages.EmptyState{
			Heading: d.Lang.Text("agents.empty.heading"), Text: d.say("agents.empty.text"),
			GoOn: d.link("agents.empty.go", d.CodeURL),
		},
	}
	if d.Pause != NotPaused {
		v.Lead = d.say("agents.lead.paused")
	}
	v.SignOut = ui.Post{
		Action: d.SignOutAction, Hidden: d.SignOutHidden,
		Button: ui.Button{Label: d.say("agents.signout")},
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	v.Notice = d.news()
	for _, h := range d.Agents {
		v.Agents = append(v.Agents, d.card(h))
	}
	const several = 2 // one is ended where it stands
	if len(d.Agents) >= several {
		v.EndAll = d.link("agents.all", d.EndAllURL)
	}
	if len(d.Past) > 0 {
		v.Past = pages.Past{Heading: d.Lang.Text("past.heading")}
	}
	for _, p := range d.Past {
		v.Past.Agents = append(v.Past.Agents, d.past(p))
	}
	return v
}

// news is what the person must know before they read the list: what has just
// ended, why nothing works, and what we ended ourselves.
func (d AgentsData) news() []ui.Notice {
	var n []ui.Notice
	switch len(d.JustEnded) {
	case 0:
	case 1:
		n = append(n, ui.Notice{Text: d.say("agents.ended", "agent", d.JustEnded[0].called())})
	default:
		n = append(n, ui.Notice{Text: d.say("agents.ended.all", "count", len(d.JustEnded))})
	}
	n = append(n, d.paused(d.Pause)...)
	for _, p := range d.Past {
		if p.Reason == KeyUsedTwice && !p.Again {
			text := d.sayLinked(links{"past": "#ended"}, "agents.alarm", "agent", p.Agent.called(),
				"date", d.Lang.Date(p.At), "past", d.Lang.Text("agents.alarm.why"))
			n = append(n, ui.Notice{Text: text, Warning: true})
		}
	}
	return n
}

func (c Common) paused(p Pause) []ui.Notice {
	switch p {
	case PausedForAccount:
		return []ui.Notice{c.warning("agents.paused.account")}
	case PausedForAll:
		return []ui.Notice{c.warning("agents.paused.all")}
	case NotPaused:
	}
	return nil
}

func (d AgentsData) card(h HeldAgent) pages.AgentCard {
	agent := h.Agent.called()
	c := pages.AgentCard{
		Name: agent, Picture: h.Agent.picture(), Host: h.Agent.beside(agent), Notice: d.doubts(h),
		May:   pages.List{Heading: d.Lang.Text("agents.may"), Items: h.May},
		Facts: d.facts(h),
		Look:  d.link("agents.look", h.LookURL),
		End:   ui.Link{Label: d.say("agents.end", "agent", agent), Href: h.EndURL},
	}
	if len(h.May) == 0 {
		c.Nothing = d.say("agents.nothing")
	}
	return c
}

func (c Common) facts(h HeldAgent) []pages.Fact {
	return []pages.Fact{
		{Term: c.Lang.Text("agents.since"), Answer: c.Lang.Date(h.Since)},
		{Term: c.Lang.Text("agents.used"), Answer: c.orElse(h.Used, "agents.never")},
		{Term: c.Lang.Text("agents.until"), Answer: c.orElse(h.Until, "agents.open")},
	}
}

// beside is the verified host, unless it stands there as the name already.
func (a Agent) beside(name string) ui.Phrase {
	if name == a.host() {
		return nil
	}
	return ui.Phrase{{Text: a.host(), Origin: ui.Proven}}
}

// doubts are what to know about an agent that was let in before.
func (c Common) doubts(h HeldAgent) []ui.Notice {
	var n []ui.Notice
	if shown, differs := alike.Drawn(h.Agent.Host); differs {
		n = append(n, c.warning("agents.warning.letters", "shown", shown))
	}
	if h.Off {
		n = append(n, c.warning("agents.off"))
	}
	if h.Soon {
		n = append(n, ui.Notice{Text: c.say("agents.soon", "agent", h.Agent.called(), "date", c.Lang.Date(h.Until))})
	}
	return n
}

func (c Common) orElse(t time.Time, key string) string {
	if t.IsZero() {
		return c.Lang.Text(key)
	}
	return c.Lang.Date(t)
}

func (d AgentsData) past(p PastAgent) pages.PastAgent {
	agent := p.Agent.called()
	key := "past.other"
	switch p.Reason {
	case EndedByUser, EndedByUnticked:
		key = "past.user"
	case EndedByAgent:
		key = "past.agent"
	case EndedByAdmin:
		key = "past.brand"
	case BrandMoved:
		key = "past.moved"
	case EndedByOperator:
		key = "past.operator"
	case RanOut:
		key = "past.expired"
	case Forgotten:
		key = "past.idle"
	case KeyUsedTwice:
		key = "past.reuse"
	}
	return pages.PastAgent{
		Name: agent, Host: p.Agent.beside(agent), Marked: p.Reason == KeyUsedTwice,
		What: d.say(key, "agent", agent, "date", d.Lang.Date(p.At), "service", service),
	}
}
