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
	"countersign.dev/consent/federation/logintest"
	"countersign.dev/tenants"
)

// The Brand's settings change under the open page: the answer does not count, and
// the question stands anew, with what was ticked, under a session of its own.
func TestAPageThatHasGrownOldIsShownAnew(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	s.Hotel = s.connectedTo(t, s.Hotel, login.ConnectedURL())
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "extras:order")
	d := s.driver(t)
	g := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started))
	action, form := g.form(t)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.Scopes[0].Description = "See bookings, and more" })
	form["scope"] = []string{"extras:order"}
	form.Set("decision", "allow")
	anew := d.from(s.url, action, form)
	if anew.status != http.StatusConflict || !strings.Contains(anew.text(), "See bookings, and more") || s.state(t, s.Hotel, started) != "pending" {
		t.Fatalf("%d, %s\n%s", anew.status, s.state(t, s.Hotel, started), anew.text())
	}
	if csp := anew.header.Get("Content-Security-Policy"); !strings.Contains(csp, login.Issuer()) {
		t.Error("the new page's form may not end at the Brand")
	}
	if old := d.from(s.url, action, form); old.status != 400 || s.state(t, s.Hotel, started) != "pending" {
		t.Errorf("the old session: %d", old.status)
	}
	_, form = anew.form(t)
	if !slices.Equal(form["scope"], []string{"extras:order"}) {
		t.Errorf("ticked %v", form["scope"])
	}
	form.Set("decision", "allow")
	if done := d.from(s.url, action, form); done.status != 303 {
		t.Errorf("%d\n%s", done.status, done.text())
	}
	if tokens := s.redeem(t, started); !slices.Equal(tokens.Scopes, []string{"extras:order"}) {
		t.Errorf("granted %v", tokens.Scopes)
	}
}

// wire.md §6: where a fresh login is needed, the page must have vouched for the
// person since the agent asked; its iat is the login's time.
func TestAnOldLoginIsNotFresh(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	d := s.driver(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	at := func(age time.Duration) page {
		text := login.Assert(s.pages(s.Hotel, "consent"), guest, started.UserCode.String(), func(c map[string]any) {
			c["iat"], c["exp"] = s.Clock.Now().Add(-age).Unix(), s.Clock.Now().Add(time.Minute).Unix()
		})
		return d.brought(s, login, s.Hotel, started, text)
	}
	// Older than the request, at an agent's first grant: sign in again.
	if g := at(2 * time.Minute); g.status != 200 || g.asks() || strings.Contains(g.body, "See your bookings") {
		t.Errorf("an old login asks: %d\n%s", g.status, g.text())
	} else if again := d.open(g.way(t, "/login?")); again.status != 303 || !strings.HasPrefix(again.header.Get("Location"), login.LoginURL()+"?return_to=") {
		t.Errorf("the way to sign in again: %d %s", again.status, again.header.Get("Location"))
	}
	if g := at(20 * time.Second); !g.asks() { // clocks differ a little
		t.Errorf("a fresh login does not: %d\n%s", g.status, g.text())
	}
	// What is held, and not sensitive, needs no fresh one.
	authoritytest.Approve(t, s.rules, s.Hotel, started, guest.Subject, "bookings:read")
	s.redeem(t, started)
	started = authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	g := at(2 * time.Minute)
	if !g.asks() {
		t.Fatalf("an old login for what is held: %d\n%s", g.status, g.text())
	}
	// The login ends 15 minutes after the page vouched for the person.
	s.Exec(t, `UPDATE device_requests SET expires_at = expires_at + interval '1 hour'`)
	s.Exec(t, `UPDATE journeys SET session_until = session_until + interval '1 hour'`)
	action, form := g.form(t)
	form.Set("decision", "deny")
	if no := d.from(s.url, action, form); no.status >= 400 || s.record(t, started)["login"].(object)["by"] != login.Issuer() {
		t.Errorf("%d, and the record: %v", no.status, s.record(t, started)["login"])
	}
	started = authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	g = at(2 * time.Minute)
	s.Exec(t, `UPDATE device_requests SET expires_at = expires_at + interval '1 hour'`)
	s.Exec(t, `UPDATE journeys SET session_until = session_until + interval '1 hour'`)
	action, form = g.form(t)
	form.Set("decision", "allow")
	s.Clock.Advance(13*time.Minute + time.Second)
	if late := d.from(s.url, action, form); late.status != 403 || s.state(t, s.Hotel, started) != "pending" {
		t.Errorf("under a login that is over: %d\n%s", late.status, late.text())
	}
}

// A step-up for somebody else, a suspended account, a paused Brand, a dead code and
// an unknown one stop here too.
func TestDeadEndsOfTheBrandsOwnPage(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	d := s.driver(t)
	tokens := s.holding(t, "bookings:read") // of harbor-hotel-7
	up := s.stepUp(t, &tokens, "Your late checkout needs it.", "bookings:change")
	wrong := d.brought(s, login, s.Hotel, up, s.assertion(login, s.Hotel, guest, up))
	if wrong.status != 403 || wrong.asks() || strings.Contains(wrong.text(), "harbor-hotel-7") || strings.Contains(wrong.text(), "checkout") {
		t.Errorf("somebody else's step-up: %d\n%s", wrong.status, wrong.text())
	}
	right := logintest.User{Subject: "harbor-hotel-7", Email: "alex@example.com"}
	g := d.brought(s, login, s.Hotel, up, s.assertion(login, s.Hotel, right, up))
	if !g.asks() || !strings.Contains(g.text(), "checkout") {
		t.Errorf("the right one's: %d\n%s", g.status, g.text())
	}

	started := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: "two"}, "bookings:read")
	bring := func() page { return d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started)) }
	if err := s.rules.Suspend(t.Context(), s.Hotel.ID, authority.ByOperator(), guest.Subject); err != nil {
		t.Fatal(err)
	}
	if g := bring(); g.status != 403 || g.asks() {
		t.Errorf("suspended: %d\n%s", g.status, g.text())
	}
	if err := s.rules.Resume(t.Context(), s.Hotel.ID, authority.ByOperator(), guest.Subject); err != nil {
		t.Fatal(err)
	}
	action, form := bring().form(t)
	form.Set("decision", "allow")
	s.Clock.Advance(9*time.Minute + 59*time.Second)
	s.Exec(t, `UPDATE device_requests SET expires_at = $1 WHERE id = $2`, s.Clock.Now(), started.ID)
	if g := d.from(s.url, action, form); g.status != 410 {
		t.Errorf("expired under the page: %d\n%s", g.status, g.text())
	}
	if g := bring(); g.status != 404 || g.asks() || strings.Contains(g.body, `name="session"`) {
		t.Errorf("a dead code: %d\n%s", g.status, g.text())
	}
}

// P25: two who were shown the question answer it; the first answer is final.
func TestTheFirstAnswerIsFinalHereToo(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	d := s.driver(t)
	action, mine := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started)).form(t)
	_, sams := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, other, started)).form(t)
	mine.Set("decision", "deny")
	sams.Set("decision", "allow")
	if g := d.from(s.url, action, mine); g.status != 303 {
		t.Errorf("%d\n%s", g.status, g.text())
	}
	if g := d.from(s.url, action, sams); g.status != 409 || s.state(t, s.Hotel, started) != "denied" {
		t.Errorf("%d %s\n%s", g.status, s.state(t, s.Hotel, started), g.text())
	}
}

// Without a connected URL it ends on our own page, in the browser that answered;
// from there the way to My agents is open, and logins at other Brands are kept.
func TestWithoutAConnectedURLItEndsHere(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	p := s.person(t)
	s.ask(t, p, s.Shop, authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read"), "sam")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	jar := p.client.Jar
	p.client.Jar = nil // a post from another site comes without our cookie
	g := p.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started))
	if g.header.Get("Set-Cookie") != "" {
		t.Error("the answer to another site sets a cookie, which takes the browser's own away")
	}
	p.client.Jar = jar
	if csp := g.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self';") {
		t.Errorf("policy %s", csp)
	}
	action, form := g.form(t)
	form.Set("decision", "allow")
	done := p.post(action, form)
	if done.status != 200 || !strings.Contains(done.text(), "See your bookings") || done.url.Query().Get("j") == "" {
		t.Fatalf("%d %s\n%s", done.status, done.url, done.text())
	}
	if again := p.open(done.url.String()); again.status != 200 {
		t.Errorf("a reload: %d", again.status)
	}
	if mine := p.open(done.way(t, "/agents")); !strings.Contains(mine.text(), "alex@example.com") || !strings.Contains(mine.text(), "agent.example") {
		t.Errorf("My agents: %s", mine.text())
	}
	if shop := p.open(s.pages(s.Shop, "agents")); !strings.Contains(shop.text(), "sam@example.com") {
		t.Errorf("the other Brand's login is gone: %s", shop.text())
	}
	if stranger := s.person(t).open(done.url.String()); stranger.status == 200 {
		t.Error("another browser sees how it ended")
	}
}

// My agents without a request: an assertion for that address alone, and one button
// of our own page.
func TestMyAgentsOverTheBrandsOwnPage(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	p := s.person(t)
	s.ask(t, p, s.Shop, authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read"), "sam")
	start := p.open(s.pages(s.Hotel, "agents"))
	to := s.pages(s.Hotel, "agents")
	if want := login.LoginURL() + "?return_to=" + url.QueryEscape(to); start.way(t, "return_to") != want {
		t.Errorf("the link is %s, want %s", start.way(t, "return_to"), want)
	}
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	d := s.driver(t)
	for name, text := range map[string]string{
		"one for a request":        s.assertion(login, s.Hotel, guest, started),
		"one that names a request": login.Assert(to, guest, started.UserCode.String(), nil),
		"another Brand's":          login.Assert(s.pages(s.Shop, "agents"), guest, "", nil),
	} {
		d.from(login.Issuer(), to, url.Values{"assertion": {text}}).empty(t, name, 401, started)
	}
	text := login.Assert(to, guest, "", nil)
	form := url.Values{"assertion": {text}}
	d.from("https://evil.example", to, form).empty(t, "from elsewhere", 403, started)
	d.from(login.Issuer(), s.pages(s.Hotel, "consent"), form).empty(t, "for a request", 401, authority.Started{UserCode: "no such code"})
	g := d.from(login.Issuer(), to, form)
	if g.status != 200 || g.asks() || g.header.Get("Set-Cookie") != "" || !strings.Contains(g.text(), "alex@example.com") {
		t.Fatalf("%d\n%s", g.status, g.text())
	}
	d.from(login.Issuer(), to, form).empty(t, "again", 401, started)
	action, enter := g.form(t)
	for _, origin := range []string{"", "https://evil.example", login.Issuer()} {
		if g := d.from(origin, action, enter); g.status != 403 {
			t.Errorf("entered from %q: %d", origin, g.status)
		}
	}
	if g := d.from(s.url, s.pages(s.Hotel, "consent/decision"), url.Values{"session": enter["session"], "decision": {"allow"}}); g.status != 400 {
		t.Errorf("it decides: %d", g.status)
	}
	mine := p.post(action, enter)
	if mine.status != 200 || mine.url.Path != "/b/harbor-hotel/agents" || !strings.Contains(mine.text(), "alex@example.com") {
		t.Errorf("%d %s\n%s", mine.status, mine.url, mine.text())
	}
	if shop := p.open(s.pages(s.Shop, "agents")); !strings.Contains(shop.text(), "sam@example.com") {
		t.Error("the other Brand's login is gone")
	}
	if g := s.person(t).post(action, enter); g.status != 400 {
		t.Errorf("entered twice: %d", g.status)
	}
}

// R71: nothing in a request moves where people are sent, on the way there or back.
func TestNothingInARequestMovesTheWay(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	s.Hotel = s.connectedTo(t, s.Hotel, login.ConnectedURL())
	d := s.driver(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	code := started.UserCode.String()
	back := login.LoginURL() + "?return_to=" + url.QueryEscape(s.pages(s.Hotel, "consent")+"?user_code="+code)
	for _, evil := range []string{
		"https://evil.example", "//evil.example", `\\evil.example`, "/\\evil.example", "https:evil.example", "javascript:alert(1)",
		"https://countersign.example@evil.example", "%2f%2fevil.example", "https://evil.example#" + s.url, s.url + ".evil.example", "data:text/html,x",
	} {
		s.Exec(t, `DELETE FROM code_attempts`)
		q := "?user_code=" + code
		for _, name := range []string{"return_to", "redirect_uri", "next", "url", "connected_url", "login_url"} {
			q += "&" + name + "=" + url.QueryEscape(evil)
		}
		if g := d.open(s.pages(s.Hotel, "device") + q); g.way(t, "return_to") != back {
			t.Errorf("the link is %s", g.way(t, "return_to"))
		}
		if g := d.open(s.pages(s.Hotel, "login") + q); g.header.Get("Location") != back {
			t.Errorf("sent to %s", g.header.Get("Location"))
		}
		if g := d.open(s.pages(s.Hotel, "login") + "?user_code=" + url.QueryEscape(evil)); g.status != 404 {
			t.Errorf("an address as a code: %d", g.status)
		}
	}
	action, form := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started)).form(t)
	form.Set("decision", "deny")
	for _, name := range []string{"return_to", "redirect_uri", "connected_url", "status"} {
		form.Set(name, "https://evil.example")
	}
	if g := d.from(s.url, action+"?return_to=https://evil.example&status=approved", form); g.header.Get("Location") != login.ConnectedURL()+"?status=denied" {
		t.Errorf("ends at %s", g.header.Get("Location"))
	}
	// A page that leads back without an assertion comes to the start again.
	if g := d.open(s.pages(s.Hotel, "consent") + "?user_code=" + code); g.status != 303 || !strings.HasPrefix(g.header.Get("Location"), "/b/harbor-hotel/device?") {
		t.Errorf("%d %s", g.status, g.header.Get("Location"))
	}
}

// Keys that cannot be had are the Brand's trouble, said so; a login of an OpenID
// provider that was under way when the Brand changed begins anew.
func TestTheBrandsOwnTroubleIsSaidSo(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	there := p.open(p.open(s.link(s.Hotel, started)).way(t, "/login?"))
	action, values := there.form(t)
	values.Set("username", "alex")
	values.Set("password", "demo")

	login := s.ownLogin(t, s.Hotel)
	login.Break(true)
	if g := p.post(action, values); g.status != 400 || g.asks() {
		t.Errorf("the old way: %d %s\n%s", g.status, g.url, g.text())
	}
	g := s.driver(t).brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started))
	g.empty(t, "without keys", 502, authority.Started{UserCode: "no such code"})
	login.Break(false)
	s.Clock.Advance(11 * time.Second)
	if g := s.driver(t).brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started)); !g.asks() {
		t.Errorf("with keys again: %d\n%s", g.status, g.text())
	}
}
