package console

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/alike"
	"countersign.dev/web/ui"
)

const (
	agentsPerPage = 50
	// mostCompared is among how many agents look-alikes are searched: the operator
	// registers each, so there are no crowds of them.
	mostCompared = 1000
)

// showAgents is GET agents.
func (v *visit) showAgents() error {
	frame, err := v.brandFrame("agents", "console.agents.heading")
	if err != nil {
		return err
	}
	query := v.r.URL.Query()
	search, after := query.Get("q"), query.Get("after")
	found, err := tenants.AgentsAt(v.ctx(), v.h.DB, v.brand.ID, search, after, agentsPerPage+1)
	if err != nil {
		return err
	}
	all, err := tenants.AgentsAt(v.ctx(), v.h.DB, v.brand.ID, "", "", mostCompared)
	if err != nil {
		return err
	}
	rule, err := v.agentRule()
	if err != nil {
		return err
	}
	here := func(after string) string {
		q := url.Values{}
		if search != "" {
			q.Set("q", search)
		}
		if after != "" {
			q.Set("after", after)
		}
		return pageOf(v.brand.ID, "agents?"+q.Encode())
	}
	view := pages.AgentsView{
		Frame: frame, Heading: v.say("console.agents.heading"), Lead: v.say("console.agents.lead"), Rule: rule,
		Search: pages.Search{
			Action: pageOf(v.brand.ID, "agents"), Button: v.say("console.agents.search"),
			Field: ui.Field{Name: "q", Label: v.text("console.agents.search.field"), Value: search, Plain: true},
		},
		Head: [4]string{
			v.text("console.agents.agent"), v.text("console.agents.may"), v.text("console.agents.word"), v.text("console.agents.edit"),
		},
		Empty:     v.noAgents(search),
		Otherwise: v.otherwise([]string{v.call("PUT", "agents", `{"issuer":"https://agent.example","allowed":false}`)}, v.ofBrand("agent list", "brand set --set agents=listed")),
	}
	if query.Has("saved") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.agents.saved")})
	}
	if after != "" {
		view.Pages = append(view.Pages, v.link("console.agents.first", here("")))
	}
	if len(found) > agentsPerPage {
		found = found[:agentsPerPage]
		view.Pages = append(view.Pages, v.link("console.agents.next", here(found[agentsPerPage-1].Issuer)))
	}
	for _, a := range found {
		view.Rows = append(view.Rows, v.agentRow(a, all))
	}
	return v.render(http.StatusOK, pages.Agents(view))
}

func (v *visit) noAgents(search string) pages.EmptyState {
	if search != "" {
		return pages.EmptyState{Text: v.say("console.agents.none", "search", search)}
	}
	return pages.EmptyState{Text: v.say("console.agents.empty"), Command: "countersign agent list"}
}

func (v *visit) agentRule() (pages.Rule, error) {
	rule := pages.Rule{Heading: v.text("console.rule.heading"), Text: v.say("console.rule.now." + v.brand.Agents)}
	if !May(v.member.Role, ChangeAgentRule) {
		return rule, nil
	}
	f := ui.Field{Name: "agents", Label: v.text("console.rule.field"), Hint: v.text("console.rule.field.hint")}
	choices := []string{tenants.AgentsRegistered, tenants.AgentsListed}
	if v.brand.Proven || v.brand.Agents == tenants.AgentsOpen {
		choices = append(choices, tenants.AgentsOpen)
		rule.Care = append(rule.Care, v.say("console.rule.open.means"))
	} else {
		rule.Care = append(rule.Care, v.say("console.rule.open.unproven"))
	}
	if v.brand.Agents == tenants.AgentsOpen {
		held, err := v.h.Authority.CountStrangers(v.ctx(), v.brand.ID)
		if err != nil {
			return rule, err
		}
		rule.Care = append(rule.Care, v.say("console.rule.open.ends", "count", held.People))
	}
	for _, r := range choices {
		f.Options = append(f.Options, ui.Option{Value: r, Label: v.text("console.rule." + r), Chosen: r == v.brand.Agents})
	}
	rule.Form = pages.Form{Action: pageOf(v.brand.ID, "agents/rule"), Fields: []ui.Field{f}, Button: v.say("console.rule.button")}
	return rule, nil
}

func (v *visit) agentRow(a tenants.AgentView, all []tenants.AgentView) pages.AgentRow {
	row := pages.AgentRow{
		Name: a.Name, Logo: agentLogo(v.brand.ID, a.Logo), Host: alike.Host(alike.HostOf(a.Issuer)), Drawn: v.drawn(a), Warnings: v.doubles(a, all),
		May: v.mayAgent(a), Word: v.wordOn(a), Open: v.link("console.agents.open", agentPage(v.brand.ID, a.Issuer)),
	}
	if a.Test {
		row.Marks = append(row.Marks, v.text("console.agents.test"))
	}
	if a.Discovered {
		row.Marks = append(row.Marks, v.text("console.agents.discovered"))
	}
	return row
}

// agentLogo is the address of the picture with the hash, where people see it too.
func agentLogo(brand tenants.BrandID, hash string) string {
	if hash == "" {
		return ""
	}
	return "/b/" + string(brand) + "/agents/logo?v=" + url.QueryEscape(hash)
}

func agentPage(brand tenants.BrandID, issuer string) string {
	return pageOf(brand, "agents/one?"+url.Values{"issuer": {issuer}}.Encode())
}

// drawn shows an address in both forms, where browsers may draw it in another.
func (v *visit) drawn(a tenants.AgentView) ui.Phrase {
	host := alike.HostOf(a.Issuer)
	if shown, differs := alike.Drawn(host); differs {
		return v.say("console.agents.letters", "shown", shown, "host", alike.Host(host))
	}
	return nil
}

// doubles warn of an agent that can be taken for the Brand or for another agent.
func (v *visit) doubles(a tenants.AgentView, all []tenants.AgentView) []ui.Phrase {
	var out []ui.Phrase
	if alike.Names(a.Name, v.brand.Name) {
		out = append(out, v.say("console.agents.alike.brand", "agent", a.Name))
	}
	for _, o := range all {
		if o.Issuer != a.Issuer && alike.Hosts(alike.HostOf(a.Issuer), alike.HostOf(o.Issuer)) {
			out = append(out, v.say("console.agents.alike.agent", "other", alike.Host(alike.HostOf(o.Issuer))))
		}
	}
	return out
}

// mayAgent says whether the agent may ask now, and if not why.
func (v *visit) mayAgent(a tenants.AgentView) string {
	switch {
	case a.May:
		return v.text("console.agents.yes")
	case !a.Enabled:
		return v.text("console.agents.no.disabled")
	case a.Listed != nil && !*a.Listed:
		return v.text("console.agents.no.denied")
	case a.Discovered && v.brand.Agents != tenants.AgentsOpen:
		return v.text("console.agents.no.closed")
	case !v.brand.Proven && !a.Test:
		return v.text("console.agents.no.unproven")
	}
	return v.text("console.agents.no.unlisted")
}

// wordOn is what the Brand says of the agent itself.
func (v *visit) wordOn(a tenants.AgentView) string {
	switch {
	case a.Listed == nil:
		return v.text("console.agents.word.none")
	case *a.Listed:
		return v.text("console.agents.word.allowed")
	}
	return v.text("console.agents.word.denied")
}

// changeAgentRule is POST agents/rule.
func (v *visit) changeAgentRule() error {
	var err error
	if rule := v.form.Get("agents"); rule == tenants.AgentsOpen {
		err = tenants.OpenAgents(v.ctx(), v.edits(), v.brand.ID)
	} else {
		_, err = tenants.ChangeSettings(v.ctx(), v.edits(), v.h.Site, v.brand.ID, func(s *tenants.Settings) error {
			s.Agents = rule
			return nil
		})
	}
	problems, err := mistakesIn(err)
	if err != nil {
		return err
	}
	if len(problems) > 0 && problems[0].Field != "agents" {
		return v.redirect(pageOf(v.brand.ID, "settings")) // something else has come to be wrong, such as a lost domain
	}
	if len(problems) > 0 {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "agents")}
	}
	return v.made("agents?saved")
}

// showAgent is GET agents/one.
func (v *visit) showAgent() error {
	a, err := v.agentAt(v.r.URL.Query().Get("issuer"))
	if err != nil {
		return err
	}
	frame, err := v.brandFrame("agents", "console.agent.heading", "agent", a.Name)
	if err != nil {
		return err
	}
	all, err := tenants.AgentsAt(v.ctx(), v.h.DB, v.brand.ID, "", "", mostCompared)
	if err != nil {
		return err
	}
	held, err := v.h.Authority.CountHeld(v.ctx(), v.brand.ID, authority.Filter{Agent: a.Issuer})
	if err != nil {
		return err
	}
	fact := func(key, value string) ui.Field { return ui.Field{Label: v.text(key), Value: value} }
	since := "console.agent.since"
	if a.Discovered {
		since = "console.agent.met"
	}
	test := "console.agent.test.no"
	if a.Test {
		test = "console.agent.test.yes"
	}
	view := pages.OneAgentView{
		Frame: frame, Heading: v.say("console.agent.heading", "agent", a.Name), Logo: agentLogo(v.brand.ID, a.Logo),
		Lead: []ui.Phrase{v.say("console.agent.held", "count", held.People)},
		Facts: []ui.Field{
			fact("console.agents.may", v.mayAgent(a)), fact("console.agents.word", v.wordOn(a)),
			fact("console.agent.issuer", a.Issuer), fact("console.agent.keys", a.KeysURL),
			fact(since, v.lang.Date(a.RegisteredAt.UTC())), fact("console.agent.test", v.text(test)),
		},
		Sections: v.judgements(a, held), Back: v.link("console.agent.back", pageOf(v.brand.ID, "agents")),
		Otherwise: v.otherwise([]string{v.call("PUT", "agents", `{"issuer":"`+a.Issuer+`","allowed":false}`)}, v.ofBrand("agent check --issuer "+a.Issuer)),
	}
	if v.r.URL.Query().Has("saved") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.agents.saved")})
	}
	warnings := v.doubles(a, all)
	if a.Discovered {
		warnings = append(warnings, v.say("console.agent.discovered"))
	}
	if drawn := v.drawn(a); drawn != nil {
		warnings = append([]ui.Phrase{drawn}, warnings...)
	}
	for _, w := range warnings {
		view.Notices = append(view.Notices, ui.Notice{Text: w, Warning: true})
	}
	return v.render(http.StatusOK, pages.OneAgent(view))
}

func (v *visit) agentAt(issuer string) (tenants.AgentView, error) {
	a, err := tenants.AgentAt(v.ctx(), v.h.DB, v.brand.ID, issuer)
	if errors.Is(err, tenants.ErrNoAgent) {
		return a, problem{kind: notFound}
	}
	return a, err
}

// judgements are what the Brand can say that it does not say now.
func (v *visit) judgements(a tenants.AgentView, held authority.HeldCount) []pages.Way {
	if !May(v.member.Role, JudgeAgent) {
		return nil
	}
	way := func(word string, args ...any) pages.Way {
		key := "console.judge." + word
		return pages.Way{
			Heading: v.text(key), Text: v.say(key+".why", args...),
			Form: pages.Form{
				Action: pageOf(v.brand.ID, "agents/judge"), Button: v.say(key + ".button"),
				Hidden: []ui.Hidden{{Name: "issuer", Value: a.Issuer}, {Name: "word", Value: word}},
			},
		}
	}
	var out []pages.Way
	if a.Listed == nil || *a.Listed {
		minutes := int((v.brand.TokenLifetime + time.Minute - 1) / time.Minute)
		out = append(out, way("deny", "count", held.People, "minutes", minutes))
	}
	if (a.Listed == nil || !*a.Listed) && !(a.Discovered && v.brand.Agents != tenants.AgentsOpen) { // no word lets it in there
		out = append(out, way("allow"))
	}
	if a.Listed != nil {
		out = append(out, way("rule"))
	}
	return out
}

// judgeAgent is POST agents/judge.
func (v *visit) judgeAgent() error {
	a, err := v.agentAt(v.form.Get("issuer"))
	if err != nil {
		return err
	}
	switch v.form.Get("word") {
	case "allow":
		err = tenants.ListAgent(v.ctx(), v.edits(), v.brand.ID, a.Issuer, true)
	case "deny":
		err = tenants.ListAgent(v.ctx(), v.edits(), v.brand.ID, a.Issuer, false)
	case "rule":
		err = tenants.UnlistAgent(v.ctx(), v.edits(), v.brand.ID, a.Issuer)
	default:
		err = problem{kind: stale, retry: agentPage(v.brand.ID, a.Issuer)}
	}
	if err != nil {
		return err
	}
	v.h.Brands.Forget(v.brand.ID)
	return v.redirect(agentPage(v.brand.ID, a.Issuer) + "&saved")
}
