package pages_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
)

var never time.Time

// managing are the pages of My agents.
func managing(c words.Common, o other) []sample {
	held := words.HeldAgent{
		Agent: o.asker(), May: o.descriptions[:3], Since: now.AddDate(0, -2, 0), Used: now.AddDate(0, 0, -1),
		Until: now.AddDate(0, 0, 30), LookURL: "/b/demo/agents?agent=1", EndURL: "/b/demo/agents?end=1",
	}
	held.Agent.LogoURL = "/b/demo/agents/logo?v=x"
	second := held
	second.Agent = words.Agent{Host: "xn--mbel-5qa.example"}
	second.Used, second.Until = never, never
	third := held
	third.Agent = words.Agent{Name: "Basil", NameVerified: true, Host: "basil.example"}
	third.May, third.Until, third.Soon, third.Off = nil, now.AddDate(0, 0, 5), true, true
	mine := words.AgentsData{
		Common: c, Account: o.account, SwitchURL: "/b/demo/switch", CodeURL: "/b/demo/device", EndAllURL: "/b/demo/agents?end=all",
		Agents: []words.HeldAgent{held, second, third}, JustEnded: []words.Agent{third.Agent}, Past: past(o),
	}
	none, paused, many, long := mine, mine, mine, mine
	none.Agents, none.JustEnded = nil, []words.Agent{held.Agent, second.Agent}
	none.Past = none.Past[:2]
	paused.Agents, paused.JustEnded, paused.Past, paused.Pause = mine.Agents[:1], nil, nil, words.PausedForAccount
	many.Agents, many.JustEnded, many.Past = nil, nil, nil
	for i := range 12 {
		one := held
		one.Agent = words.Agent{Name: fmt.Sprintf("Agent %d", i+1), NameVerified: true, Host: fmt.Sprintf("agent-%d.example", i+1)}
		one.May = slices.Repeat(o.descriptions, 2)[:10]
		many.Agents = append(many.Agents, one)
	}
	long.Agents, long.Past = []words.HeldAgent{held}, nil
	long.Agents[0].Agent.Name = strings.Repeat("A very long name of an agent ", 7)[:200]
	long.Agents[0].Agent.NameVerified = true
	long.Agents[0].Agent.Host = strings.Repeat("sub-domain.", 17) + "example"
	long.JustEnded = []words.Agent{long.Agents[0].Agent}
	return append([]sample{
		{"agents", pages.Agents(words.Agents(mine))},
		{"agents-none", pages.Agents(words.Agents(none))},
		{"agents-paused", pages.Agents(words.Agents(paused))},
		{"agents-many", pages.Agents(words.Agents(many))},
		{"agents-long", pages.Agents(words.Agents(long))},
		{"one-agent", pages.Agent(words.OneAgent(oneAgent(c, o, held)))},
		{"one-agent-long", pages.Agent(words.OneAgent(oneAgent(c, o, long.Agents[0])))},
	}, ends(c, o, many.Agents)...)
}

// past is one of each way to end.
func past(o other) []words.PastAgent {
	var list []words.PastAgent
	for i, reason := range []words.EndReason{
		words.KeyUsedTwice, words.EndedByUser, words.EndedByAgent, words.EndedByAdmin, words.EndedByOperator, words.RanOut, "else",
	} {
		list = append(list, words.PastAgent{Agent: o.asker(), At: now.AddDate(0, 0, -i), Reason: reason})
	}
	return list
}

func oneAgent(c words.Common, o other, held words.HeldAgent) words.AgentData {
	d := words.AgentData{
		Common: c, Account: o.account, SwitchURL: "/b/demo/switch", BackURL: "/b/demo/agents",
		Held: held, JustEnded: o.descriptions[3],
		Done: words.Deeds{OlderURL: "/b/demo/agents?before=x", Open: true, All: []words.Deed{
			{At: now, Late: true, With: o.descriptions[:2], Tools: []string{"bookings.list", "<i>" + o.descriptions[0]}},
			{At: now.AddDate(0, 0, -1)},
		}},
		History: []words.Occasion{
			{At: now.AddDate(0, 0, -3), Language: c.Lang.Tag, Continued: true, Allowed: []words.Once{{Description: o.descriptions[0]}}},
			{At: now.AddDate(0, -2, 0), Language: "de", Days: 30, Allowed: []words.Once{
				{Description: o.descriptions[0]}, {Description: o.descriptions[3], Over: true},
			}},
		},
	}
	for i, effect := range []words.Effect{words.Sees, words.Changes, words.Pays} {
		d.Rights = append(d.Rights, words.Right{
			Description: o.descriptions[2*i], Effect: effect, EndURL: fmt.Sprintf("/b/demo/agents?end=1&scope=s%d", i),
		})
	}
	return d
}

// ends are the pages that ask before something ends.
func ends(c words.Common, o other, many []words.HeldAgent) []sample {
	end := words.EndAgentData{
		Common: c, Account: o.account, SwitchURL: "/b/demo/switch", Agent: o.asker(), Ends: o.descriptions[:3],
		Action: "/b/demo/agents/end", Hidden: []ui.Hidden{{Name: "session", Value: "t"}}, KeepURL: "/b/demo/agents",
	}
	one, last := end, end
	one.Ends, one.Stays = o.descriptions[:1], o.descriptions[1:3]
	last.Ends, last.Last = o.descriptions[:1], true
	all := words.EndAllData{
		Common: c, Account: o.account, SwitchURL: "/b/demo/switch", Action: end.Action, Hidden: end.Hidden, KeepURL: end.KeepURL,
	}
	for i, h := range append(many[:3:3], words.HeldAgent{Agent: o.asker()}) {
		all.Agents = append(all.Agents, words.EndingAgent{Agent: h.Agent, Permissions: i})
	}
	return []sample{
		{"end", pages.End(words.EndAgent(end))},
		{"end-one", pages.End(words.EndAgent(one))},
		{"end-last", pages.End(words.EndAgent(last))},
		{"end-all", pages.End(words.EndAll(all))},
	}
}

// Ending and keeping weigh the same, on every page that asks.
func TestEndingAndKeepingAreDressedAlike(t *testing.T) {
	docs := rendered(t, func(c *i18n.Catalogue, l i18n.Language, o other) []sample {
		return ends(common(c, l, o), o, make([]words.HeldAgent, 3))
	})
	for name, doc := range docs {
		at := slices.IndexFunc(find(doc), func(n *html.Node) bool { return attr(n, "class") == "decide" })
		choices := find(find(doc)[at], "button", "a")
		if len(choices) != 2 || choices[0].Data != "button" || attr(choices[0], "class") != "button" || attr(choices[1], "class") != "button" {
			t.Errorf("%s: %d choices, or one is dressed up", name, len(choices))
		}
	}
}

// Ten buttons that all say the same tell a listener which permission each ends.
func TestEachEndNamesItsPermission(t *testing.T) {
	for name, doc := range rendered(t, func(c *i18n.Catalogue, l i18n.Language, o other) []sample {
		return managing(common(c, l, o), o)[5:6]
	}) {
		described := map[string]bool{}
		for _, a := range find(doc, "a") {
			if by := attr(a, "aria-describedby"); by != "" && strings.Contains(attr(a, "href"), "scope=") {
				described[text(byID(doc, by))] = true
			}
		}
		if len(described) != 3 {
			t.Errorf("%s: %d permissions are told apart", name, len(described))
		}
	}
}
