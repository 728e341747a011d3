package console

import (
	"net/http"
	"strconv"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// listBrands is GET /console/brands.
func (v *visit) listBrands() error {
	all, err := tenants.Memberships(v.ctx(), v.h.DB, v.person.ID)
	if err != nil {
		return err
	}
	view := pages.BrandsView{
		Frame: v.frame("console.brands.heading"), Heading: v.say("console.brands.heading"),
		Empty: v.text("console.brands.empty"), New: v.link("console.brands.new", "/console/new"),
	}
	for _, m := range all {
		row := pages.BrandRow{Link: ui.Link{Label: ui.Phrase{{Text: m.Name, Origin: ui.Foreign}}}, Note: v.role(m.Role)}
		switch {
		case !m.Held:
			row.Link.Href = pageOf(m.Brand, "")
		case m.Role == tenants.Owner: // the only one, perhaps
			row.Note, row.Link.Href = v.text("console.held.alone"), "/console/recover"
		default:
			row.Note = v.text("console.held.self")
		}
		view.Brands = append(view.Brands, row)
	}
	return v.render(http.StatusOK, pages.Brands(view))
}

// latest is how much of the trail the first screen shows.
const latest = 8

// home is GET /console/b/{brand}/: is anything wrong, who acts now, what changed.
func (v *visit) home() error {
	frame, err := v.brandFrame("", "console.home.heading")
	if err != nil {
		return err
	}
	living, err := v.h.Authority.CountLiving(v.ctx(), v.brand.ID)
	if err != nil {
		return err
	}
	facts, err := v.h.Authority.LatestFacts(v.ctx(), v.brand.ID, latest)
	if err != nil {
		return err
	}
	members, err := tenants.Members(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	s, err := v.stand(living)
	if err != nil {
		return err
	}
	troubles, err := v.troubles()
	if err != nil {
		return err
	}
	trend, more, err := v.homePlot()
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, pages.Home(pages.HomeView{
		Frame: frame, Heading: v.say("console.home.heading"),
		Wrong: pages.Wrong{
			Heading: v.text("console.home.wrong"), Notices: append(troubles, v.wrongs(s)...), AllWell: v.text("console.home.allwell"),
		},
		Now: pages.Figure{
			Heading: v.text("console.home.now"), Number: strconv.Itoa(living.Grants),
			Text: v.say("console.home.now.text", "count", living.Agents),
			All:  v.link("console.home.now.all", pageOf(v.brand.ID, "grants")), Stop: v.link("console.nav.pause", pageOf(v.brand.ID, "pause")),
		},
		Trend:   pages.Trend{Plot: trend, More: more},
		Todo:    pages.Todo{Heading: v.text("console.todo.heading"), Steps: v.steps(s)},
		Changes: v.changes(facts, members),
	}))
}

// standing is how far the Brand has come.
type standing struct {
	tenants.Progress
	pending, paused, proven, waits, tried bool
	judged                                bool // some agent by name, or none but those
	asked                                 bool // a change waits for an owner
}

func (v *visit) stand(living authority.LivingCount) (s standing, err error) {
	if s.Progress, err = tenants.HowFar(v.ctx(), v.h.DB, v.brand.ID); err != nil {
		return s, err
	}
	if s.proven, err = v.h.proven(v.ctx(), v.brand.ID); err != nil {
		return s, err
	}
	waits, err := tenants.Recoveries(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return s, err
	}
	asked, err := v.h.Asks.Waiting(v.ctx(), v.brand.ID)
	if err != nil {
		return s, err
	}
	s.waits, s.asked = len(waits) > 0, len(asked) > 0
	s.pending, s.paused = v.brand.State == tenants.Pending, v.brand.State == tenants.Paused
	s.tried = living.Grants > 0
	listed, err := tenants.ListedAgents(v.ctx(), v.h.DB, v.brand.ID, "", 1)
	s.judged = v.brand.Agents == tenants.AgentsListed || len(listed) > 0
	return s, err
}

// wrongs is what needs somebody, the worst first.
func (v *visit) wrongs(s standing) []ui.Notice {
	var out []ui.Notice
	for _, one := range []struct {
		is  bool
		key string
	}{
		{s.waits, "console.wrong.wait"},
		{s.asked, "console.wrong.asked"},
		{s.pending, "console.wrong.pending"},
		{s.paused, "console.wrong.paused"},
		{!s.pending && s.Login == 0 && s.Permissions > 0, "console.wrong.login"},
	} {
		if one.is {
			out = append(out, v.warning(one.key))
		}
	}
	return out
}

// steps are the way from a new Brand to its first agent.
func (v *visit) steps(s standing) []pages.Step {
	try := "try"
	if !May(v.member.Role, TryOut) {
		try = ""
	}
	var out []pages.Step
	for _, one := range []struct {
		key  string
		done bool
		page string // empty: there is none for it, or not for this role
	}{
		{"console.todo.key", !s.pending, ""},
		{"console.todo.domain", s.proven, "domains"},
		{"console.todo.look", v.brand.Logo != "" && v.brand.SupportURL != "", "settings"},
		{"console.todo.permissions", s.Permissions > 0, "permissions"},
		{"console.todo.agents", s.judged, "agents"},
		{"console.todo.login", s.Login > 0, "login"},
		{"console.todo.try", s.tried, try},
	} {
		state := "console.todo.open"
		if one.done {
			state = "console.todo.done"
		}
		step := pages.Step{Done: one.done, State: v.text(state), What: v.text(one.key), Help: v.text(one.key + ".help")}
		if one.page != "" {
			step.Href = pageOf(v.brand.ID, one.page)
		}
		out = append(out, step)
	}
	return out
}

func (v *visit) changes(facts []authority.Fact, members []tenants.Member) pages.Changes {
	names := make(map[string]string)
	for _, m := range members {
		names[m.Person.String()] = m.Name
	}
	c := pages.Changes{
		Heading: v.text("console.changes.heading"), Empty: v.text("console.changes.empty"),
		Head: [3]string{v.text("console.changes.when"), v.text("console.changes.what"), v.text("console.changes.who")},
	}
	for _, f := range facts {
		who := v.text("console.actor." + f.Actor)
		if name := names[f.ActorID]; f.Actor == "admin" && name != "" {
			who = name
		}
		c.Rows = append(c.Rows, pages.ChangeRow{When: v.date(f.At), What: what(v.lang, f.Event), Who: who})
	}
	return c
}
