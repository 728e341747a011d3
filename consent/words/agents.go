package words

import (
	"time"

	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// AgentsData is what My agents needs.
type AgentsData struct {
	Common
	Account   string
	SwitchURL string
	CodeURL   string // where a code is typed
	Agents    []HeldAgent
	JustEnded string // name of an agent that was ended a moment ago

	SignOutAction string
	SignOutHidden []ui.Hidden
}

// HeldAgent is an agent that may act now.
type HeldAgent struct {
	Agent Agent
	May   []string // descriptions
	Since time.Time
	Used  time.Time // zero: never
	Until time.Time // zero: until it is ended

	// EndURL leads to the page that asks once more; without it, the button
	// posts to EndAction at once.
	EndURL    string
	EndAction string
	Hidden    []ui.Hidden
}

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
	v.SignOut = ui.Post{
		Action: d.SignOutAction, Hidden: d.SignOutHidden,
		Button: ui.Button{Label: d.say("agents.signout")},
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	if d.JustEnded != "" {
		v.Notice = append(v.Notice, ui.Notice{Text: d.say("agents.ended", "agent", d.JustEnded)})
	}
	for _, h := range d.Agents {
		v.Agents = append(v.Agents, d.card(h))
	}
	return v
}

func (d AgentsData) card(h HeldAgent) pages.AgentCard {
	agent := h.Agent.called()
	end := d.say("agents.end", "agent", agent)
	c := pages.AgentCard{
		Name: agent, Warning: d.doubts(h.Agent),
		May: pages.List{Heading: d.Lang.Text("agents.may"), Items: h.May},
		Facts: []pages.Fact{
			{Term: d.Lang.Text("agents.since"), Answer: d.Lang.Date(h.Since)},
			{Term: d.Lang.Text("agents.used"), Answer: d.orElse(h.Used, "agents.never")},
			{Term: d.Lang.Text("agents.until"), Answer: d.orElse(h.Until, "agents.open")},
		},
		End: ui.Post{Action: h.EndAction, Hidden: h.Hidden, Button: ui.Button{Label: end}},
	}
	if agent != h.Agent.host() {
		c.Host = ui.Phrase{{Text: h.Agent.host(), Origin: ui.Proven}}
	}
	if h.EndURL != "" {
		c.EndURL = ui.Link{Label: end, Href: h.EndURL}
	}
	return c
}

// doubts are warnings for an agent that was let in before.
func (d AgentsData) doubts(a Agent) []ui.Notice {
	shown, differs := a.shown()
	if !differs {
		return nil
	}
	return []ui.Notice{d.warning("agents.warning.letters", "shown", shown)}
}

func (d AgentsData) orElse(t time.Time, key string) string {
	if t.IsZero() {
		return d.Lang.Text(key)
	}
	return d.Lang.Date(t)
}

// EndAgentData is what the page that asks once more needs.
type EndAgentData struct {
	Common
	Account   string
	SwitchURL string
	Agent     Agent
	May       []string
	Action    string
	Hidden    []ui.Hidden
	KeepURL   string // back to My agents
}

// EndAgent words the page that says exactly what will end.
func EndAgent(d EndAgentData) pages.EndAgentView {
	heading := d.say("end.heading", "agent", d.Agent.called())
	v := pages.EndAgentView{
		Page: d.page(heading.String()), Heading: heading, Lead: d.say("end.lead", "host", d.Agent.host()),
		Ends: pages.List{Heading: d.Lang.Text("end.list"), Items: d.May}, Stays: d.Lang.Text("end.stays"),
		End: ui.Post{
			Action: d.Action, Hidden: d.Hidden,
			Button: ui.Button{Label: d.say("end.confirm")},
		},
		Keep: d.link("end.keep", d.KeepURL),
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	return v
}
