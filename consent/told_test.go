package consent_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// What My agents tells, and to whom.

// What ended is told below what lives, each in its own words; and what a theft
// may have ended is told first (B28, R46).
func TestWhatEndedIsTold(t *testing.T) {
	s := newSite(t)
	who := func(sub string) authority.Caller { return authority.Caller{Agent: alex.Agent, Sub: sub} }
	stolen := s.allow(t, s.Hotel, who("a"), alexAtHotel, "bookings:read")
	back := s.allow(t, s.Hotel, who("b"), alexAtHotel, "bookings:read")
	taken := s.allow(t, s.Hotel, who("c"), alexAtHotel, "bookings:read")
	others := s.allow(t, s.Hotel, who("d"), samAtHotel, "bookings:read")
	admin := authority.By{Actor: "admin", ID: "key", Channel: "api"}
	for _, end := range []func() error{
		func() error { return s.rules.EndByToken(t.Context(), s.Hotel.ID, back.who, back.tokens.Refresh) },
		func() error {
			_, err := s.rules.End(t.Context(), s.Hotel.ID, admin, authority.Which{AgentSub: "c"})
			return err
		},
		func() error {
			_, err := s.rules.End(t.Context(), s.Hotel.ID, authority.ByOperator(), authority.Which{AgentSub: "d"})
			return err
		},
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	p, sam := s.person(t), s.person(t)
	s.mine(t, p, s.Hotel, "alex")
	ofSam := s.mine(t, sam, s.Hotel, "sam")
	old := stolen.tokens.Refresh
	stolen.holds(t)
	s.Clock.Advance(time.Minute)
	if _, err := s.rules.Refresh(t.Context(), s.Hotel, stolen.who, old, nil); err == nil {
		t.Fatal("an old key still works")
	}
	list := p.open(s.pages(s.Hotel, "agents"))
	for _, want := range []string{
		"to be safe. See why", "An old key of this agent was used a second time", "ask your agent to connect again",
		"Aria gave it back on", "Harbor Hotel ended it on",
	} {
		if !strings.Contains(list.words(), want) {
			t.Errorf("%q is not told:\n%s", want, list.words())
		}
	}
	if strings.Contains(list.words(), "Countersign ended it") {
		t.Error("sam's is told to alex")
	}
	if !strings.Contains(ofSam.words(), "Countersign ended it for Harbor Hotel on") {
		t.Errorf("sam is told\n%s", ofSam.words())
	}
	// Once the same agent is allowed again there is nothing to do; the past stays.
	s.allow(t, s.Hotel, stolen.who, alexAtHotel, "bookings:read")
	again := p.open(s.pages(s.Hotel, "agents"))
	if strings.Contains(again.words(), "See why") || !strings.Contains(again.words(), "An old key of this agent") {
		t.Errorf("%s", again.words())
	}
	// After thirty days nobody cares.
	s.Exec(t, `UPDATE grants SET ended_at = ended_at - interval '30 days' WHERE ended_at IS NOT NULL`)
	if late := p.open(s.pages(s.Hotel, "agents")); strings.Contains(late.words(), "An old key") {
		t.Errorf("%s", late.words())
	}
	mustHold(t, []*allowed{taken, others}, 0, 0)
}

// A made-up address makes the page say nothing that is not so.
func TestAMadeUpAddressTellsNothing(t *testing.T) {
	s := newSite(t)
	a := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read")
	gone := s.allow(t, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: "b"}, alexAtHotel, "bookings:read")
	if _, err := s.rules.End(t.Context(), s.Hotel.ID, authority.ByOperator(), authority.Which{AgentSub: "b"}); err != nil {
		t.Fatal(err)
	}
	p := s.person(t)
	s.mine(t, p, s.Hotel, "alex")
	for _, query := range []string{
		"ended=" + a.id, "ended=" + gone.id, "ended=" + uuid.NewString(), "ended=0", "ended=-62135596800000000", "ended=x",
		"agent=" + a.id + "&ended=bookings:read", "agent=" + a.id + "&ended=account:read", "agent=" + a.id + "&ended=nonsense",
		"end=" + a.id + "&scope=nonsense", "end=" + gone.id, "agent=" + gone.id, "end=", "agent=", "end=%00", "agent=%ff",
	} {
		g := p.open(s.pages(s.Hotel, "agents") + "?" + query)
		if g.status != 200 || strings.Contains(g.words(), "can no longer act") || strings.Contains(g.words(), "can no longer do") {
			t.Errorf("%s: %d %s", query, g.status, g.words())
		}
	}
}

// The end that is near, an agent that is switched off, a suspended account: the
// page says what does not work, and that it is kept (P32).
func TestListSaysWhatDoesNotWork(t *testing.T) {
	s := newSite(t)
	a := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read")
	p := s.person(t)
	s.mine(t, p, s.Hotel, "alex")
	says := func(words string, want bool) {
		t.Helper()
		list := p.open(s.pages(s.Hotel, "agents"))
		one := p.open(list.way(t, "agent="+a.id))
		for _, g := range []page{list, one} {
			if strings.Contains(g.words(), words) != want {
				t.Errorf("%q is said: %v\n%s", words, !want, g.words())
			}
		}
	}
	for _, words := range []string{"This ends on", "switched off", "has paused"} {
		says(words, false)
	}
	s.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, alex.Agent)
	says("switched off here", true)
	if err := s.rules.Suspend(t.Context(), s.Hotel.ID, authority.ByOperator(), samAtHotel); err != nil {
		t.Fatal(err)
	}
	says("has paused", false)
	if err := s.rules.Suspend(t.Context(), s.Hotel.ID, authority.ByOperator(), alexAtHotel); err != nil {
		t.Fatal(err)
	}
	says("Harbor Hotel has paused what agents may do on this account", true)
	week := s.Clock.Now().AddDate(0, 0, 7)
	s.Exec(t, `UPDATE grants SET expires_at = $1`, week.Add(time.Second))
	says("This ends on", false)
	s.Exec(t, `UPDATE grants SET expires_at = $1`, week)
	says("This ends on "+week.Format("2 January 2006"), true)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.State = tenants.Paused })
	says("has paused agents for all its customers", true)
	// It can be ended all the same.
	action, form := p.open(p.open(s.pages(s.Hotel, "agents")).way(t, "end="+a.id)).choice(t)
	if g := p.post(action, form); len(g.all("article")) != 0 {
		t.Errorf("%s", g.words())
	}
}

// What was allowed is told in the words of then, and what of it is over.
func TestHistoryKeepsTheWordsOfThen(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "account:read")
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	form.Set("decision", "allow")
	form.Set("until", "7")
	done := p.post(action, form)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.Scopes[0].Description = "Look at your rooms" })
	list := p.open(done.way(t, "/agents"))
	one := p.open(list.way(t, "agent="))
	action, form = p.open(one.way(t, "scope=account%3Aread")).choice(t)
	text := p.post(action, form).words()
	for _, want := range []string{
		"Permissions Look at your rooms", "you allowed for 7 days: See your bookings See your name and contact details no longer",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told:\n%s", want, text)
		}
	}
}

// B40: whoever has only the phone and no session at the Brand follows the promise
// of the consent page and of the closing page: a sign-in, in their language, and
// there is the grant just made.
func TestPromisesLeadToTheGrantJustMade(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	link := s.link(s.Hotel, started) + "&ui_locales=zh-TW"
	g := p.signInBy(p.open(link).link(t, "/login?"), "alex")
	promises := map[string]string{"the question": g.link(t, "/agents")}
	action, form := g.form(t)
	form.Set("decision", "allow")
	done := p.post(action, form)
	promises["the closing page"] = done.link(t, "/agents")
	for _, name := range []string{"the question", "the closing page"} {
		promise := promises[name]
		phone := s.person(t)
		phone.header = http.Header{"Accept-Language": {"en"}} // the link's language goes before it
		start := phone.open(promise)
		list := phone.signInBy(start.link(t, "/login"), "alex")
		for what, g := range map[string]page{"before the sign-in": start, "after it": list} {
			if g.status != 200 || attr(g.all("html")[0], "lang") != "zh-Hant" {
				t.Errorf("%s, %s: %d in %s", name, what, g.status, attr(g.all("html")[0], "lang"))
			}
		}
		if strings.Contains(start.words(), "agent.example") || !strings.Contains(list.words(), "agent.example") {
			t.Errorf("%s leads to %s", name, list.words())
		}
		// And on: what it leads to keeps the language, and ends it.
		asked := phone.open(list.link(t, "end="))
		if attr(asked.all("html")[0], "lang") != "zh-Hant" || !strings.Contains(asked.words(), "agent.example") {
			t.Errorf("%s: %s", name, asked.words())
		}
		if name == "the closing page" {
			action, form := asked.choice(t)
			if g := phone.post(action, form); attr(g.all("html")[0], "lang") != "zh-Hant" || len(g.all("article")) != 0 {
				t.Errorf("after the end, in %s: %s", attr(g.all("html")[0], "lang"), g.words())
			}
		}
	}
}
