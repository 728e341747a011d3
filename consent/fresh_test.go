package consent_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/consent/federation/demoidp"
)

// B38, B117: a login that lapsed under the open page asks to sign in again and
// keeps what was ticked; server time decides.
func TestLapsedLoginKeepsTheTicks(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "bookings:change")
	p := s.person(t)
	// An old login of this browser, shortly before it lapses.
	s.ask(t, p, s.Hotel, started, "alex")
	s.Clock.Advance(-time.Second) // a clock that is set back a little changes nothing
	g := p.open(s.pages(s.Hotel, "consent") + "?j=" + journeyOf(t, s))
	s.Clock.Advance(time.Second)
	if !g.asks() {
		g = p.open(s.pages(s.Hotel, "consent") + "?j=" + journeyOf(t, s))
	}
	action, form := g.form(t)
	form["scope"] = []string{"bookings:change"}
	form.Set("until", "90")
	form.Set("decision", "allow")
	s.Exec(t, `UPDATE device_requests SET expires_at = expires_at + interval '1 hour'`)
	s.Clock.Advance(15 * time.Minute)
	lapsed := p.post(action, form)
	if lapsed.status != http.StatusForbidden || lapsed.asks() {
		t.Fatalf("%d %s", lapsed.status, lapsed.text())
	}
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Fatalf("the request is %s", got)
	}
	again := p.signIn(lapsed, "alex")
	if !again.asks() {
		t.Fatalf("%d %s", again.status, again.text())
	}
	_, form = again.form(t)
	if ticked := form["scope"]; len(ticked) != 1 || ticked[0] != "bookings:change" || form.Get("until") != "90" {
		t.Errorf("ticked now: %v until %s", form["scope"], form.Get("until"))
	}
}

// wire.md §6: a fresh login that was asked for and not made is not stood for by
// an earlier one and the Back button; and a login made where something sensitive
// is held is fresh from the start.
func TestBackButtonIsNoFreshLogin(t *testing.T) {
	s := newSite(t)
	first := authoritytest.Begin(t, s.rules, s.Hotel, alex, "extras:order")
	authoritytest.Approve(t, s.rules, s.Hotel, first, "harbor-hotel-7", "extras:order")
	p := s.person(t)
	// The provider remembers the person; we do not.
	other := authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read")
	s.ask(t, p, s.Shop, other, "alex")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	journey := p.signIn(p.open(s.link(s.Hotel, started)), "alex").url.Query().Get("j")
	away := p.open(s.pages(s.Hotel, "login") + "?switch=1&j=" + journey)
	if away.url.Scheme != "http" {
		t.Fatalf("no fresh login was asked for: %s %d %s", away.url, away.status, away.text())
	}
	back := p.open(s.pages(s.Hotel, "consent") + "?j=" + journey)
	if back.asks() {
		t.Fatal("Back stood for a fresh login")
	}
	// One sign-in is enough when the login knows from the start what is held.
	again := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	s.ask(t, s.person(t), s.Hotel, again, "alex")
}

// Instances' clocks differ a little: a login written a moment ago by another one
// counts (R96 in part).
func TestLoginSurvivesASmallSkew(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "alex")
	s.Clock.Advance(-200 * time.Millisecond)
	if again := p.open(g.url.String()); !again.asks() {
		t.Fatal(again.text())
	}
}

// B45: signed out in one tab, the open page in another decides nothing, and the
// same request can be signed in for again. Another Brand's login stays.
func TestSignOut(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	s.ask(t, p, s.Shop, authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read"), "sam")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	open := s.ask(t, p, s.Hotel, started, "alex")
	action, form := p.open(s.pages(s.Hotel, "agents")).form(t)
	if !strings.HasSuffix(strings.SplitN(action, "?", 2)[0], "/signout") {
		t.Fatalf("the form posts to %s", action)
	}
	bad := url.Values{"session": {"x"}}
	if g := p.post(action, bad); g.status != http.StatusBadRequest {
		t.Errorf("a forged sign-out: %d", g.status)
	}
	if g := p.post(action, form); strings.Contains(g.text(), "alex@example.com") {
		t.Fatalf("still signed in: %s", g.text())
	}
	decide, answer := open.form(t)
	answer.Set("decision", "allow")
	g := p.post(decide, answer)
	if g.status != http.StatusForbidden || g.asks() {
		t.Fatalf("%d %s", g.status, g.text())
	}
	if again := p.signIn(g, "alex"); !again.asks() {
		t.Fatalf("%d %s", again.status, again.text())
	}
	if shop := p.open(s.pages(s.Shop, "agents")); !strings.Contains(shop.text(), "sam@example.com") {
		t.Error("the other Brand's login is gone")
	}
}

// B56: cancelling "Not you?" brings a signed-in person back to the question.
func TestCancelledSwitchKeepsTheLogin(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "alex")
	s.idp[s.Hotel.ID].SetFaults(demoidp.Faults{AuthorizeError: "access_denied"})
	p.open(g.way(t, "switch=1"))
	s.idp[s.Hotel.ID].SetFaults(demoidp.Faults{})
	back := p.open(g.url.String())
	if back.status >= 400 {
		if again := p.signIn(back, "alex"); !again.asks() {
			t.Fatalf("%d %s", again.status, again.text())
		}
	}
}

// R72, wire.md §6: an agent's first grant, and anything sensitive, needs a login
// made for it; a plain second request does not.
func TestSensitiveRequestsNeedAFreshLogin(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	allow := func(scopes ...string) {
		t.Helper()
		action, form := s.ask(t, p, s.Hotel, authoritytest.Begin(t, s.rules, s.Hotel, alex, scopes...), "alex").form(t)
		form.Set("decision", "allow")
		if d := p.post(action, form); d.status != 200 {
			t.Fatal(d.text())
		}
	}
	allow("bookings:read")
	plain := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:change")
	there := p.open(p.open(s.link(s.Hotel, plain)).way(t, "/login?"))
	if !there.asks() {
		t.Errorf("a login was asked for again: %s", there.url.Host)
	}
	sensitive := authoritytest.Begin(t, s.rules, s.Hotel, alex, "extras:order")
	there = p.open(p.open(s.link(s.Hotel, sensitive)).way(t, "/login?"))
	if there.asks() || there.url.Scheme != "http" {
		t.Errorf("no login for something sensitive: %s", there.url)
	}
	stranger := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "y"}, "bookings:read")
	there = p.open(p.open(s.link(s.Hotel, stranger)).way(t, "/login?"))
	if there.asks() || there.url.Scheme != "http" {
		t.Errorf("no login for an agent's first grant: %s", there.url)
	}
}

// Who answers under a login that this browser had already reads how it ended,
// and in time that it expired; whoever else is logged in then does not.
func TestEarlierLoginSeesHowItEnded(t *testing.T) {
	s := newSite(t)
	s.holding(t, "bookings:read")
	p := s.person(t)
	s.ask(t, p, s.Hotel, authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read"), "alex")
	question := func() page {
		t.Helper()
		plain := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:change")
		g := p.open(p.open(s.link(s.Hotel, plain)).way(t, "/login?"))
		if !g.asks() || g.url.Scheme != "https" {
			t.Fatalf("a login was asked for again: %s", g.text())
		}
		return g
	}
	g := question()
	action, form := g.form(t)
	form.Set("decision", "allow")
	if done := p.post(action, form); done.status != 200 || !strings.Contains(done.text(), "may now act for you") {
		t.Errorf("%d %s", done.status, done.text())
	}
	late := question()
	s.Exec(t, `UPDATE device_requests SET expires_at = $1 WHERE state = 'pending'`, s.Clock.Now())
	if over := p.open(late.url.String()); !strings.Contains(over.text(), "too old") {
		t.Errorf("%d %s", over.status, over.text())
	}
	mine := p.open(s.pages(s.Hotel, "agents"))
	action, form = p.open(mine.way(t, "/login")).form(t)
	form.Set("username", "sam")
	form.Set("password", "demo")
	p.post(action, form)
	for _, of := range []page{g, late} {
		if other := p.open(of.url.String()); other.status != http.StatusNotFound {
			t.Errorf("sam reads %d %s", other.status, other.text())
		}
	}
}

// M20: when another account already lets the same agent act, the page warns, and
// it is written down.
func TestSecondAccountIsWarnedOf(t *testing.T) {
	s := newSite(t)
	first := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, s.rules, s.Hotel, first, "harbor-hotel-7", "bookings:read")
	second := authoritytest.Begin(t, s.rules, s.Hotel, alex, "extras:order")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, second, "sam")
	plain := s.ask(t, s.person(t), s.Hotel, authoritytest.Begin(t, s.rules, s.Hotel, alex, "extras:order"), "alex")
	const warning = "already acts for you on another Harbor Hotel account"
	if !strings.Contains(g.text(), warning) || strings.Contains(plain.text(), warning) {
		t.Fatalf("no warning, or one too many:\n%s", g.text())
	}
	action, form := g.form(t)
	form.Set("decision", "allow")
	p.post(action, form)
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'request.approved' AND (detail->>'another_user_holds_a_grant')::bool`); n != 1 {
		t.Error("not audited")
	}
}
