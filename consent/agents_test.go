package consent_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

const (
	alexAtHotel = "harbor-hotel-7"
	samAtHotel  = "harbor-hotel-8"
)

// allowed is a living grant, and the agent that holds it.
type allowed struct {
	s      *site
	brand  *tenants.Brand
	who    authority.Caller
	id     string
	tokens authority.Tokens
}

func (s *site) allow(t *testing.T, b *tenants.Brand, who authority.Caller, subject string, scopes ...string) *allowed {
	t.Helper()
	started := authoritytest.Begin(t, s.rules, b, who, scopes...)
	authoritytest.Approve(t, s.rules, b, started, subject, scopes...)
	tokens, err := s.rules.Poll(t.Context(), b, who, started.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return &allowed{s, b, who, tokens.GrantID.String(), tokens}
}

// holds is what the agent's next refresh carries: nothing, once it has ended.
func (a *allowed) holds(t *testing.T) []string {
	t.Helper()
	next, err := a.s.rules.Refresh(t.Context(), a.brand, a.who, a.tokens.Refresh, nil)
	if err != nil {
		return nil
	}
	a.tokens = next
	return next.Scopes
}

// mine signs the person in on the way to My agents.
func (s *site) mine(t *testing.T, p *person, b *tenants.Brand, username string) page {
	t.Helper()
	return p.signInBy(p.open(s.pages(b, "agents")).link(t, "/login"), username)
}

// link is way for whatever language the page is in.
func (g page) link(t *testing.T, part string) string {
	t.Helper()
	for _, a := range g.all("a") {
		if href := attr(a, "href"); strings.Contains(href, part) {
			return g.url.ResolveReference(must(url.Parse(href))).String()
		}
	}
	t.Fatalf("no link with %q on\n%s", part, g.text())
	return ""
}

func (p *person) signInBy(address, username string) page {
	p.t.Helper()
	there := p.open(address)
	if there.url.Scheme == "https" {
		return there
	}
	action, values := there.form(p.t)
	values.Set("username", username)
	values.Set("password", "demo")
	return p.post(action, values)
}

// words is text with single spaces, as one reads it.
func (g page) words() string { return strings.Join(strings.Fields(g.text()), " ") }

// choice reads the form of a page that asks before something ends, with every
// grant it names.
func (g page) choice(t *testing.T) (action string, form url.Values) {
	t.Helper()
	action, form = g.form(t)
	if !strings.Contains(action, "/agents/end") || form.Get("session") == "" || form.Get("grant") == "" {
		t.Fatalf("nothing is asked on\n%s", g.words())
	}
	return action, form
}

// everyone is one grant of each kind that is easily taken for another (B96).
func (s *site) everyone(t *testing.T) []*allowed {
	t.Helper()
	other := authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}
	tablet := authority.Caller{Agent: alex.Agent, Sub: "tablet"}
	return []*allowed{
		s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read", "bookings:change"),
		s.allow(t, s.Hotel, other, alexAtHotel, "bookings:read", "bookings:change"),
		s.allow(t, s.Hotel, tablet, alexAtHotel, "bookings:read", "bookings:change"),
		s.allow(t, s.Hotel, alex, samAtHotel, "bookings:read", "bookings:change"),
		s.allow(t, s.Shop, alex, alexAtHotel, "orders:read", "bookings:read"),
	}
}

func mustHold(t *testing.T, all []*allowed, want ...int) {
	t.Helper()
	for i, a := range all {
		if got := a.holds(t); len(got) != want[i] {
			t.Errorf("grant %d holds %v, want %d", i, got, want[i])
		}
	}
}

// P33, B29, B96, R16: one permission, one agent, everything. Opening the page
// that asks ends nothing; the answer ends exactly what the page named, once, and
// the next page says so.
func TestExactlyWhatThePageNamedEnds(t *testing.T) {
	s := newSite(t)
	all := s.everyone(t)
	p := s.person(t)
	list := s.mine(t, p, s.Hotel, "alex")
	if n := len(list.all("article")); n != 3 {
		t.Fatalf("%d agents are listed\n%s", n, list.words())
	}

	// One permission.
	one := p.open(list.way(t, "agent="+all[0].id))
	asked := p.open(one.way(t, "scope=bookings%3Aread"))
	if text := asked.words(); !strings.Contains(text, "can no longer See your bookings It may still Change or cancel a booking") {
		t.Errorf("what will end is not said: %s", text)
	}
	mustHold(t, all, 2, 2, 2, 2, 2)
	action, form := asked.choice(t)
	after := p.post(action, form)
	if !strings.Contains(after.words(), "Aria can no longer do this: See your bookings") || after.url.Query().Get("agent") != all[0].id {
		t.Errorf("after one permission: %s", after.words())
	}
	mustHold(t, all, 1, 2, 2, 2, 2)
	if again := p.post(action, form); again.status != 200 || !strings.Contains(again.words(), "can no longer do this") {
		t.Errorf("twice: %d %s", again.status, again.words())
	}
	mustHold(t, all, 1, 2, 2, 2, 2)

	// One agent.
	asked = p.open(list.way(t, "end="+all[1].id))
	if text := asked.words(); !strings.Contains(text, "other.example") || !strings.Contains(text, "See your bookings Change or cancel a booking") {
		t.Errorf("what will end is not said: %s", text)
	}
	mustHold(t, all, 1, 2, 2, 2, 2)
	action, form = asked.choice(t)
	if after := p.post(action, form); !strings.Contains(after.words(), "Aria can no longer act") || len(after.all("article")) != 2 {
		t.Errorf("after one agent: %s", after.words())
	}
	mustHold(t, all, 1, 0, 2, 2, 2)

	// Everything, and how many that was.
	s.Clock.Advance(time.Second)
	asked = p.open(list.way(t, "end=all"))
	if text := asked.words(); strings.Count(text, "agent.example") != 2 || strings.Contains(text, "other.example") {
		t.Errorf("what will end is not said: %s", text)
	}
	mustHold(t, all, 1, 0, 2, 2, 2)
	action, form = asked.choice(t)
	for _, turn := range []string{"once", "twice"} {
		after := p.post(action, form)
		if !strings.Contains(after.words(), "2 agents can no longer act on your Harbor Hotel account") || len(after.all("article")) != 0 {
			t.Errorf("%s: %d %s", turn, after.status, after.words())
		}
	}
	mustHold(t, all, 0, 0, 0, 2, 2)
}

// What is posted must be what was shown, to this person, in this browser, by a
// page of ours; anything else ends nothing (P33, P24, R13).
func TestEndingCannotBeForged(t *testing.T) {
	s := newSite(t)
	all := s.everyone(t)
	p, thief := s.person(t), s.person(t)
	list := s.mine(t, p, s.Hotel, "alex")
	s.mine(t, thief, s.Hotel, "sam")
	s.mine(t, p, s.Shop, "alex")
	agent := p.open(list.way(t, "end="+all[0].id))
	scope := p.open(p.open(list.way(t, "agent="+all[0].id)).way(t, "scope=bookings%3Aread"))
	everything := p.open(list.way(t, "end=all"))
	action, form := agent.choice(t)
	_, ofScope := scope.choice(t)
	_, ofAll := everything.choice(t)

	for name, header := range map[string]http.Header{
		"another site":      {"Sec-Fetch-Site": {"cross-site"}},
		"an old browser":    {"Origin": {"https://evil.example"}},
		"an address, typed": {"Sec-Fetch-Site": {"none"}},
	} {
		p.header = header
		if g := p.post(action, form); g.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, g.status)
		}
	}
	p.header = http.Header{}
	with := func(f url.Values, change func(url.Values)) url.Values {
		c := url.Values{}
		for k, v := range f {
			c[k] = slices.Clone(v)
		}
		change(c)
		return c
	}
	for name, f := range map[string]url.Values{
		"no token":                   with(form, func(f url.Values) { f.Del("session") }),
		"a made-up token":            with(form, func(f url.Values) { f.Set("session", strings.Repeat("A", 43)) }),
		"another agent":              with(form, func(f url.Values) { f.Set("grant", all[1].id) }),
		"one agent more":             with(form, func(f url.Values) { f.Add("grant", all[1].id) }),
		"the agent for a permission": with(ofScope, func(f url.Values) { f.Set("scope", "") }),
		"another permission":         with(ofScope, func(f url.Values) { f.Set("scope", "bookings:change") }),
		"one of everything":          with(ofAll, func(f url.Values) { f["grant"] = f["grant"][:1] }),
		"everything, another's too":  with(ofAll, func(f url.Values) { f.Add("grant", all[3].id) }),
		"two tokens":                 with(form, func(f url.Values) { f.Add("session", "x") }),
		"nothing":                    {},
	} {
		if g := p.post(action, f); g.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, g.status, g.words())
		}
	}
	for name, g := range map[string]page{
		"another's browser":      thief.post(action, form),
		"the same id, elsewhere": p.post(s.pages(s.Shop, "agents/end"), form),
	} {
		if g.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, g.status)
		}
	}
	if g := s.person(t).post(action, form); g.status != http.StatusForbidden {
		t.Errorf("nobody: %d", g.status)
	}
	// Somebody else signs in, in the same browser, under the open page.
	p.signInBy(list.way(t, "switch=1"), "sam")
	if g := p.post(action, form); g.status != http.StatusBadRequest {
		t.Errorf("another person: %d", g.status)
	}
	// Another's address leads to one's own list, and shows nothing of the other's.
	for _, query := range []string{"?end=", "?agent=", "?ended="} {
		g := p.open(s.pages(s.Hotel, "agents") + query + all[1].id)
		if len(g.all("article")) != 1 || strings.Contains(g.words(), "other.example") {
			t.Errorf("%s leads to\n%s", query, g.words())
		}
	}
	mustHold(t, all, 2, 2, 2, 2, 2)
}

// Beforehand the page says that the last permission ends the agent; where a
// permission has become the last under the open page, it asks anew.
func TestLastPermissionEndsTheAgentAndSaysSo(t *testing.T) {
	s := newSite(t)
	a := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read", "bookings:change", "account:read")
	p := s.person(t)
	one := p.open(s.mine(t, p, s.Hotel, "alex").way(t, "agent="+a.id))
	open := p.open(one.way(t, "scope=bookings%3Aread"))
	action, form := p.open(one.way(t, "scope=bookings%3Achange")).choice(t)
	p.post(action, form)
	// The Brand takes the third off the card: what is left is one.
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.Scopes = b.Scopes[:3] })

	action, form = open.choice(t)
	asked := p.post(action, form)
	if !strings.Contains(asked.words(), "the only thing Aria may do") || !strings.Contains(asked.words(), "See your bookings") {
		t.Fatalf("it is not said: %s", asked.words())
	}
	if got := a.holds(t); !slices.Equal(got, []string{"bookings:read"}) {
		t.Fatalf("the agent holds %v", got)
	}
	action, form = asked.choice(t)
	if after := p.post(action, form); !strings.Contains(after.words(), "No agent acts for you here") {
		t.Errorf("%s", after.words())
	}
	if n := s.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NULL`); n != 0 {
		t.Errorf("%d grants live", n)
	}
}

// Everything is everything that the page named: what was allowed since stays, and
// is there to be seen.
func TestEverythingIsWhatThePageNamed(t *testing.T) {
	s := newSite(t)
	first := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read")
	second := s.allow(t, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "a"}, alexAtHotel, "bookings:read")
	p := s.person(t)
	action, form := p.open(s.mine(t, p, s.Hotel, "alex").way(t, "end=all")).choice(t)
	later := s.allow(t, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: "tablet"}, alexAtHotel, "bookings:read")
	after := p.post(action, form)
	if len(after.all("article")) != 1 || !strings.Contains(after.words(), "2 agents can no longer") {
		t.Errorf("%s", after.words())
	}
	mustHold(t, []*allowed{first, second, later}, 0, 0, 1)
}

// P34: what is allowed after an end is a new grant, with that alone.
func TestAllowingAfterAnEndBeginsAnew(t *testing.T) {
	s := newSite(t)
	before := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read", "bookings:change")
	p := s.person(t)
	action, form := p.open(s.mine(t, p, s.Hotel, "alex").way(t, "end="+before.id)).choice(t)
	p.post(action, form)
	after := s.allow(t, s.Hotel, alex, alexAtHotel, "account:read")
	if after.id == before.id || !slices.Equal(after.holds(t), []string{"account:read"}) {
		t.Errorf("it holds %v", after.tokens.Scopes)
	}
	g := p.open(p.open(s.pages(s.Hotel, "agents")).way(t, "agent="+after.id))
	if strings.Contains(g.words(), "See your bookings") {
		t.Errorf("what ended is told of the new one: %s", g.words())
	}
	mustHold(t, []*allowed{before}, 0)
}
