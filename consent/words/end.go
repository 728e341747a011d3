package words

import (
	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// EndAgentData is what the page needs that asks before an agent, or one
// permission of it, ends.
type EndAgentData struct {
	Common
	Account   string
	SwitchURL string
	Agent     Agent
	Ends      []string // descriptions
	Stays     []string // what it may go on to do; empty: all of it ends
	Last      bool     // one permission was named, and nothing would be left
	Action    string
	Hidden    []ui.Hidden
	KeepURL   string
}

// EndAgent words the page that says exactly what will end.
func EndAgent(d EndAgentData) pages.EndView {
	agent := d.Agent.called()
	heading := d.say("end.heading", "agent", agent)
	if len(d.Stays) > 0 {
		heading = d.say("end.one.heading", "agent", agent)
	}
	v := pages.EndView{
		Page: d.page(heading.String()), Heading: heading, Lead: d.say("end.lead", "host", d.Agent.host()),
		After: d.Lang.Text("end.stays"),
		End: ui.Post{
			Action: d.Action, Hidden: d.Hidden,
			Button: ui.Button{Label: d.say("end.confirm")},
		},
		Keep: d.link("end.keep", d.KeepURL),
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	if d.Last {
		v.Notice = append(v.Notice, ui.Notice{Text: d.say("end.last", "agent", agent)})
	}
	if len(d.Ends) > 0 {
		v.Lists = append(v.Lists, pages.List{Heading: d.Lang.Text("end.list"), Items: d.Ends})
	}
	if len(d.Stays) > 0 {
		v.After = d.Lang.Text("end.one.stays")
		v.Lists = append(v.Lists, pages.List{Heading: d.Lang.Text("end.one.list"), Items: d.Stays})
	}
	return v
}

// EndAllData is what the page needs that asks before everything ends.
type EndAllData struct {
	Common
	Account   string
	SwitchURL string
	Agents    []EndingAgent
	Action    string
	Hidden    []ui.Hidden
	KeepURL   string
}

// EndingAgent is one of the agents that would end.
type EndingAgent struct {
	Agent       Agent
	Permissions int
}

// EndAll words the page that names every agent that will end.
func EndAll(d EndAllData) pages.EndView {
	heading := d.say("end.all.heading")
	v := pages.EndView{
		Page: d.page(heading.String()), Heading: heading, Lead: d.say("end.all.lead"),
		After:      d.Lang.Text("end.all.stays"),
		AgentsHead: d.Lang.Text("end.all.list"),
		End: ui.Post{
			Action: d.Action, Hidden: d.Hidden,
			Button: ui.Button{Label: d.say("end.all.confirm", "count", len(d.Agents))},
		},
		Keep: d.link("end.all.keep", d.KeepURL),
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	for _, a := range d.Agents {
		name := a.Agent.called()
		v.Agents = append(v.Agents, pages.EndingAgent{
			Name: name, Host: a.Agent.beside(name), May: d.Lang.Text("end.all.count", "count", a.Permissions),
		})
	}
	return v
}
