package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// grantsPage is how many grants one page lists. What is ticked travels in the
// address of the next one.
const grantsPage = 50

// asked is what the address asks for under the name. Twice, or what no text can
// be, is no page of ours: a filter that is dropped would show everything.
func (v *visit) asked(name string) (string, error) {
	values := v.r.URL.Query()[name]
	if len(values) == 0 {
		return "", nil
	}
	text := strings.TrimSpace(values[0])
	if len(values) > 1 || !isID(text) {
		return "", problem{kind: notFound}
	}
	return text, nil
}

// isID reports whether the text may be somebody's id at all.
func isID(text string) bool {
	const longest = 500
	return len(text) <= longest && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// askedAll is asked for several names.
func (v *visit) askedAll(into map[string]*string) error {
	for name, to := range into {
		text, err := v.asked(name)
		if err != nil {
			return err
		}
		*to = text
	}
	return nil
}

// inQuery is a page of the Brand with these values in its address; empty ones are
// left out.
func (v *visit) inQuery(page string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return pageOf(v.brand.ID, page)
	}
	return pageOf(v.brand.ID, page) + "?" + q.Encode()
}

// showGrants is GET grants.
func (v *visit) showGrants() error {
	var f authority.Filter
	var state, cursor string
	err := v.askedAll(map[string]*string{
		"subject": &f.Subject, "agent": &f.Agent, "scope": &f.Scope, "state": &state, "after": &cursor,
	})
	if err != nil {
		return err
	}
	f.State = authority.State(state)
	var after uuid.UUID
	if cursor != "" {
		after, err = uuid.Parse(cursor)
	}
	if err != nil || f.State != authority.AnyState && f.State != authority.Living && f.State != authority.Ended {
		return problem{kind: notFound}
	}
	frame, err := v.brandFrame("grants", "console.grants.heading")
	if err != nil {
		return err
	}
	// One more tells whether there is another page.
	found, err := v.h.Authority.List(v.ctx(), v.brand.ID, f, after, grantsPage+1)
	if err != nil {
		return err
	}
	here := func(after string) string {
		return v.inQuery("grants", "subject", f.Subject, "agent", f.Agent, "scope", f.Scope, "state", string(f.State), "after", after)
	}
	view := pages.GrantsView{
		Frame: frame, Heading: v.say("console.grants.heading"), Lead: v.say("console.grants.lead"),
		Problem: v.text("code.problem"),
		Filter:  v.grantsFilter(f),
		Head: [6]string{
			v.text("console.grants.tick"), v.text("console.grants.agent"), v.text("console.grants.user"),
			v.text("console.grants.may"), v.text("console.grants.since"), v.text("console.grants.state"),
		},
		Paging:    pages.Paging{Label: v.text("console.grants.pages")},
		Otherwise: v.grantsOtherwise(f),
	}
	if len(found) > grantsPage {
		found = found[:grantsPage]
		view.Paging.Older = v.link("console.grants.older", here(found[grantsPage-1].ID.String()))
	}
	if after != uuid.Nil {
		view.Paging.First = v.link("console.grants.newest", here(""))
	}
	for _, r := range found {
		view.Rows = append(view.Rows, v.grantRow(r))
	}
	if May(v.member.Role, EndGrants) && hasLiving(found, v.now) {
		view.Tick = pages.Tick{Action: pageOf(v.brand.ID, "grants/end"), Button: v.text("console.grants.endticked")}
	}
	if view.About, err = v.aboutGrants(f); err != nil {
		return err
	}
	view.Empty = v.noGrants(f)
	return v.render(http.StatusOK, pages.Grants(view))
}

func hasLiving(found []authority.Record, now time.Time) bool {
	for _, r := range found {
		if r.Living(now) {
			return true
		}
	}
	return false
}

func (v *visit) grantsFilter(f authority.Filter) pages.Filter {
	scopes := []ui.Option{{Label: v.text("console.grants.anyscope"), Chosen: f.Scope == ""}}
	known := f.Scope == ""
	for _, s := range v.brand.Scopes {
		scopes = append(scopes, ui.Option{Value: s.ID, Label: s.Text(v.lang.Tag).Description, Chosen: s.ID == f.Scope})
		known = known || s.ID == f.Scope
	}
	if !known { // off the card, and grants may hold it still
		scopes = append(scopes, ui.Option{Value: f.Scope, Label: f.Scope, Chosen: true})
	}
	state := func(s authority.State, key string) ui.Option {
		return ui.Option{Value: string(s), Label: v.text(key), Chosen: s == f.State}
	}
	out := pages.Filter{
		Label: v.text("console.grants.search"), Action: pageOf(v.brand.ID, "grants"), Button: v.text("console.grants.find"),
		Fields: []ui.Field{
			{Name: "subject", Label: v.text("console.grants.user"), Value: f.Subject, Plain: true, Longest: 500},
			{Name: "agent", Label: v.text("console.grants.issuer"), Value: f.Agent, Plain: true, Longest: 500, Kind: "url"},
			{Name: "scope", Label: v.text("console.grants.permission"), Options: scopes},
			{Name: "state", Label: v.text("console.grants.state"), Options: []ui.Option{
				state(authority.AnyState, "console.grants.anystate"),
				state(authority.Living, "console.grants.living"), state(authority.Ended, "console.grants.ended"),
			}},
		},
	}
	if f != (authority.Filter{}) {
		out.Clear = v.link("console.grants.clear", pageOf(v.brand.ID, "grants"))
	}
	return out
}

func (v *visit) grantRow(r authority.Record) pages.GrantRow {
	row := pages.GrantRow{
		ID:   r.ID.String(),
		Link: ui.Link{Label: foreign(v.agentName(r)), Href: pageOf(v.brand.ID, "grants/"+r.ID.String())},
		Host: addressOf(r.Agent), User: ui.Link{Label: foreign(r.Subject), Href: v.inQuery("grants", "subject", r.Subject)},
		May: v.permissions(r.Scopes), Since: v.lang.Date(r.CreatedAt.UTC()),
	}
	row.State, row.Until = v.grantState(r)
	row.IsQuiet = !r.Living(v.now)
	row.IsHalted = !row.IsQuiet && (r.Suspended || !r.AgentOn)
	if !row.IsQuiet {
		row.Box = v.text("console.grants.box", "agent", v.agentName(r), "user", r.Subject)
	}
	return row
}

// grantState says in a word how the grant stands, and until when.
func (v *visit) grantState(r authority.Record) (state, until string) {
	switch {
	case !r.Living(v.now):
		if r.EndedAt != nil {
			until = v.date(*r.EndedAt)
		}
		return v.text("console.grants.ended"), until
	case r.Suspended:
		state = v.text("console.grants.suspended")
	case !r.AgentOn:
		state = v.text("console.grants.agentoff")
	default:
		state = v.text("console.grants.living")
	}
	return state, v.text("console.grants.until", "date", v.lang.Date(r.ExpiresAt.UTC()))
}

// aboutGrants is what the list is filtered to, and the ways to end all of it.
func (v *visit) aboutGrants(f authority.Filter) (pages.About, error) {
	var a pages.About
	switch {
	case f.Subject != "":
		away, err := v.h.Authority.Suspended(v.ctx(), v.brand.ID, f.Subject)
		if err != nil {
			return a, err
		}
		a.Heading = v.say("console.grants.ofuser", "user", f.Subject)
		a.Text = v.say("console.grants.ofuser.text")
		next, way := "users/suspend", "console.suspend.go"
		if away {
			a.Text = v.say("console.grants.ofuser.suspended")
			next, way = "users/resume", "console.letgo.go"
		}
		if May(v.member.Role, SuspendUser) {
			a.Ways = append(a.Ways, v.link(way, v.inQuery(next, "subject", f.Subject)))
		}
		if May(v.member.Role, EndGrants) {
			a.Ways = append(a.Ways, v.link("console.end.user.go", v.inQuery("grants/end", "subject", f.Subject)))
		}
	case f.Agent != "":
		a.Heading = v.say("console.grants.ofagent", "agent", f.Agent)
		a.Text = v.say("console.grants.ofagent.text")
		if May(v.member.Role, EndAgent) {
			a.Ways = append(a.Ways, v.link("console.end.agent.go", v.inQuery("end-agent", "agent", f.Agent)))
		}
	}
	return a, nil
}

func (v *visit) noGrants(f authority.Filter) pages.Empty {
	if f != (authority.Filter{}) {
		return pages.Empty{
			Text:  v.say("console.grants.none"),
			Clear: v.link("console.grants.clear", pageOf(v.brand.ID, "grants")),
		}
	}
	return pages.Empty{
		Text: v.say("console.grants.empty"), Next: v.text("console.grants.empty.next"),
		Commands: []string{"go run ./cmd/countersign/pa --card " + v.brand.InterfaceURL},
	}
}

func (v *visit) grantsOtherwise(f authority.Filter) pages.Otherwise {
	command := "grants list --brand " + string(v.brand.ID)
	for _, one := range []struct{ flag, value string }{
		{"agent", f.Agent}, {"subject", f.Subject}, {"scope", f.Scope}, {"state", string(f.State)},
	} {
		if one.value != "" {
			command += " --" + one.flag + " " + quoted(one.value)
		}
	}
	q := url.Values{}
	for name, value := range map[string]string{"agent": f.Agent, "subject": f.Subject, "scope": f.Scope, "state": string(f.State)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	call := "grants"
	if len(q) > 0 {
		call += "?" + q.Encode()
	}
	return v.otherwise([]string{v.call(http.MethodGet, call, "")}, []string{command})
}

// foreign are somebody else's words.
func foreign(text string) ui.Phrase { return ui.Phrase{{Text: text, Origin: ui.Foreign}} }

// agentName is what the agent calls itself, or where it lives.
func (v *visit) agentName(r authority.Record) string {
	if r.AgentName != "" {
		return r.AgentName
	}
	return addressOf(r.Agent)
}

// addressOf is the agent's issuer, as short as it can be and still be told from
// another.
func addressOf(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return issuer
	}
	return u.Host + strings.TrimSuffix(u.Path, "/")
}

// permissions are the scopes in the Brand's words, or by their ids where they are
// off the card.
func (v *visit) permissions(ids []string) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = v.permission(id)
	}
	return strings.Join(words, " · ")
}

func (v *visit) permission(id string) string {
	if s, ok := v.brand.Scope(id); ok {
		return s.Text(v.lang.Tag).Description
	}
	return id
}

// me is the member, as the trail names whoever changes something.
func (v *visit) me() authority.By { return authority.ByMember(v.person.ID.String()) }

// names are the members' names by their ids.
func (v *visit) names() (map[string]string, error) {
	all, err := tenants.Members(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(all))
	for _, m := range all {
		out[m.Person.String()] = m.Name
	}
	return out, nil
}
