package consent_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/consent/federation/logintest"
	"countersign.dev/tenants"
)

// ownLogin has the Brand's people sign in on the Brand's own page from now on.
func (s *site) ownLogin(t *testing.T, b *tenants.Brand) *logintest.Page {
	t.Helper()
	p, err := logintest.Start(logintest.Config{
		Back: s.pages(b, ""), Now: s.Clock.Now,
		Users: []logintest.User{guest, other},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	edit := s.rules.Editor(authority.ByOperator())
	site := tenants.Site{AllowLoopback: true, PublicURL: s.url}
	c, err := tenants.SaveCandidate(t.Context(), s.DB, edit, s.Master, site, b.ID, tenants.ConnectionDraft{
		Kind: tenants.KindAssertion, Issuer: p.Issuer(), JWKSURI: p.JWKSURI(), LoginURL: p.LoginURL(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tenants.MakeLive(t.Context(), edit, site, b.ID, c.ID); err != nil {
		t.Fatal(err)
	}
	return p
}

var (
	guest = logintest.User{Username: "alex", Subject: "guest-7", Email: "alex@example.com"}
	other = logintest.User{Username: "sam", Subject: "guest-8", Email: "sam@example.com"}
)

// connectedTo sets where people go on after their decision.
func (s *site) connectedTo(t *testing.T, b *tenants.Brand, to string) *tenants.Brand {
	t.Helper()
	return s.Save(t, b, func(b *tenants.Brand) { b.ConnectedURL = to })
}

// driver is a client of other people's making: no cookies, no script, and it stops
// at every redirect.
func (s *site) driver(t *testing.T) *person {
	p := s.person(t)
	p.client.Jar = nil
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return p
}

// from sends a form as a page of that origin would.
func (p *person) from(origin, to string, form url.Values) page {
	p.t.Helper()
	p.header = http.Header{"Origin": {origin}}
	if origin == "" {
		p.header = http.Header{"Sec-Fetch-User": {"?1"}, "Sec-Fetch-Site": {"cross-site"}}
	}
	defer func() { p.header = http.Header{} }()
	return p.post(to, form)
}

// brought posts the assertion for the request, from the Brand's page.
func (p *person) brought(s *site, login *logintest.Page, b *tenants.Brand, started authority.Started, assertion string) page {
	p.t.Helper()
	to := s.pages(b, "consent") + "?user_code=" + started.UserCode.String()
	return p.from(login.Issuer(), to, url.Values{"assertion": {assertion}})
}

func (s *site) assertion(login *logintest.Page, b *tenants.Brand, u logintest.User, started authority.Started) string {
	return login.Assert(s.pages(b, "consent"), u, started.UserCode.String(), nil)
}

func (g page) session(t *testing.T) string {
	t.Helper()
	for _, in := range g.all("input") {
		if attr(in, "name") == "session" && attr(in, "type") == "hidden" {
			return attr(in, "value")
		}
	}
	t.Fatalf("no session on a page of %d\n%s", g.status, g.text())
	return ""
}

// empty demands a page that could decide nothing and tells nothing (P22).
func (g page) empty(t *testing.T, what string, status int, started authority.Started) {
	t.Helper()
	if g.status != status {
		t.Errorf("%s: %d, want %d\n%s", what, g.status, status, g.text())
	}
	for _, secret := range []string{`name="session"`, `name="scope"`, `name="decision"`, "guest-7", "alex@example.com", "bookings", string(started.UserCode)} {
		if strings.Contains(g.body, secret) {
			t.Errorf("%s: the page holds %s", what, secret)
		}
	}
	if g.header.Get("Set-Cookie") != "" {
		t.Errorf("%s: a cookie is set", what)
	}
}

// P27, wire.md §6: the form that other people's drivers know, over plain HTTP.
func TestDriversFindTheFormTheyKnow(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	s.Hotel = s.connectedTo(t, s.Hotel, login.ConnectedURL()+"?from=agents")
	d := s.driver(t)
	for decision, status := range map[string]string{"allow": "approved", "deny": "denied"} {
		started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "extras:order")
		start := d.open(s.link(s.Hotel, started))
		back := s.pages(s.Hotel, "consent") + "?user_code=" + started.UserCode.String()
		if want := login.LoginURL() + "?return_to=" + url.QueryEscape(back); start.way(t, "return_to") != want {
			t.Errorf("the link is %s, want %s", start.way(t, "return_to"), want)
		}
		if start.asks() || strings.Contains(start.body, "See your bookings") {
			t.Error("M19: something is asked before the login")
		}
		g := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started))
		if g.status != 200 || !strings.Contains(g.text(), "alex@example.com") || !strings.Contains(g.text(), started.UserCode.String()) {
			t.Fatalf("%d\n%s", g.status, g.text())
		}
		if csp := g.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' "+login.Issuer()+";") {
			t.Errorf("policy %s", csp)
		}
		action, form := g.form(t)
		if action != s.pages(s.Hotel, "consent/decision") || len(form["scope"]) != 2 {
			t.Errorf("action %s, form %v", action, form)
		}
		for name := range form {
			if name != "session" && name != "scope" && name != "until" {
				t.Errorf("the form has a field %s that no driver knows", name)
			}
		}
		answer := url.Values{"session": {g.session(t)}, "scope": {"bookings:read"}, "decision": {decision}}
		done := d.from(s.url, action, answer)
		if want := login.ConnectedURL() + "?from=agents&status=" + status; done.status != 303 || done.header.Get("Location") != want {
			t.Errorf("%s: %d to %s, want %s", decision, done.status, done.header.Get("Location"), want)
		}
		tokens, err := s.rules.Poll(t.Context(), s.Hotel, alex, started.DeviceCode)
		if by := s.record(t, started)["login"].(object)["by"]; by != login.Issuer() {
			t.Errorf("%s: the record says that %v vouched", decision, by)
		}
		if decision == "allow" && (err != nil || strings.Join(tokens.Scopes, " ") != "bookings:read") || decision == "deny" && err == nil {
			t.Errorf("%s: %v, %v", decision, tokens.Scopes, err)
		}
	}
	held, err := s.rules.Grants(t.Context(), s.Hotel.ID, "guest-7")
	if err != nil || len(held) != 1 || held[0].ExpiresAt.Sub(s.Clock.Now()) != time.Duration(s.Hotel.GrantDefault)*24*time.Hour {
		t.Errorf("grants %v, %v", held, err)
	}
}

// P22: what is not exactly an assertion of this Brand for this request is a 401
// page without anything in it. One rule of the contract each.
func TestOnlyTheBrandsOwnWordIsBelieved(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	elsewhere := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: "another"}, "bookings:read")
	d, now := s.driver(t), s.Clock.Now()
	audience := s.pages(s.Hotel, "consent")
	set := func(name string, value any) func(map[string]any) {
		return func(c map[string]any) { c[name] = value }
	}
	without := func(name string) func(map[string]any) {
		return func(c map[string]any) { delete(c, name) }
	}
	times := func(iat, exp time.Duration) func(map[string]any) {
		return func(c map[string]any) { c["iat"], c["exp"] = now.Add(iat).Unix(), now.Add(exp).Unix() }
	}
	for name, edit := range map[string]func(map[string]any){
		"wrong iss": set("iss", "https://evil.example"), "no iss": without("iss"),
		"wrong aud": set("aud", s.pages(s.Shop, "consent")), "aud with query": set("aud", audience+"?user_code="+started.UserCode.String()),
		"aud of two": set("aud", []string{audience}), "no aud": without("aud"), "aud of My agents": set("aud", s.pages(s.Hotel, "agents")),
		"no sub": without("sub"), "empty sub": set("sub", ""), "a number as sub": set("sub", 7), "a long sub": set("sub", strings.Repeat("x", 256)),
		"no jti": without("jti"), "empty jti": set("jti", ""), "a long jti": set("jti", strings.Repeat("x", 257)),
		"no code": without("user_code"), "another code": set("user_code", elsewhere.UserCode.String()), "no real code": set("user_code", "AAAA-AAAA"),
		"age 400 s": times(-400*time.Second, -100*time.Second), "life 3600 s": times(0, time.Hour), "life 301 s": times(0, 301*time.Second),
		"ends before it begins": times(20*time.Second, 10*time.Second), "from the future": times(40*time.Second, time.Minute),
		"expired": times(-2*time.Minute, -40*time.Second), "no iat": without("iat"), "no exp": without("exp"),
		"iat as text": set("iat", "1"), "not valid yet": set("nbf", now.Add(time.Minute).Unix()), "nbf as text": set("nbf", "1"),
	} {
		d.brought(s, login, s.Hotel, started, login.Assert(audience, guest, started.UserCode.String(), edit)).empty(t, name, 401, authority.Started{UserCode: "no such code"})
	}
	honest := login.Claims(audience, guest, started.UserCode.String())
	key := login.Key()
	foreign := logintest.NewKey(key.ID)
	header := func(name string, value any) string {
		return key.Sign(map[string]any{name: value}, login.Claims(audience, guest, started.UserCode.String()))
	}
	good := s.assertion(login, s.Hotel, guest, started)
	for name, text := range map[string]string{
		"none": "", "not a token": "x.y.z", "foreign key": foreign.Sign(map[string]any{}, honest), "foreign key id": logintest.NewKey("x").Sign(map[string]any{}, honest),
		"alg none": logintest.Unsigned(good), "alg HS256": header("alg", "HS256"), "alg ES384": header("alg", "ES384"),
		"header jwk": header("jwk", map[string]any{}), "header jku": header("jku", "https://evil.example"), "header x5u": header("x5u", "https://evil.example"),
		"header x5c": header("x5c", []string{}), "header crit": header("crit", []string{"exp"}), "header b64": header("b64", true),
		"a member twice": key.SignText(`{"alg":"ES256","kid":"first"}`, strings.Replace(text(honest), "{", `{"sub":"guest-8",`, 1)),
		"a header twice": key.SignText(`{"alg":"ES256","kid":"first","kid":"first"}`, text(honest)),
		"padding":        good + "=", "line break": strings.Replace(good, ".", ".\n", 1), "four parts": good + ".x",
		"too long": key.Sign(map[string]any{"x": strings.Repeat("x", 9000)}, honest),
	} {
		d.brought(s, login, s.Hotel, started, text).empty(t, name, 401, authority.Started{UserCode: "no such code"})
	}
	if s.state(t, s.Hotel, started) != "pending" || s.Count(t, `SELECT count(*) FROM journeys WHERE session_hash IS NOT NULL`) != 0 {
		t.Error("a refused assertion left something")
	}
	// The forgeries above used nothing up (B79), and the honest one is taken, its
	// code written in any way.
	honest["user_code"] = strings.ToLower(string(started.UserCode))
	if g := d.brought(s, login, s.Hotel, started, key.Sign(map[string]any{}, honest)); g.status != 200 || !g.asks() {
		t.Errorf("the honest one: %d\n%s", g.status, g.text())
	}
	if strings.Contains(s.logs.String(), "guest-7") || strings.Contains(s.logs.String(), "eyJ") {
		t.Error("the log holds what assertions say")
	}
}

// P22: a good assertion counts once, also when it is posted twice at one moment.
func TestAnAssertionCountsOnce(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	text := s.assertion(login, s.Hotel, guest, started)
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 8 {
		d := s.driver(t)
		all.Go(func() {
			g := d.brought(s, login, s.Hotel, started, text)
			mu.Lock()
			defer mu.Unlock()
			statuses[g.status]++
		})
	}
	all.Wait()
	if statuses[200] != 1 || statuses[401] != 7 {
		t.Errorf("answers %v", statuses)
	}
	s.driver(t).brought(s, login, s.Hotel, started, text).empty(t, "later", 401, authority.Started{UserCode: "no such code"})
	if n := s.Count(t, `SELECT count(*) FROM login_assertions`); n != 1 {
		t.Errorf("%d are remembered", n)
	}
	// It is remembered for as long as it could be posted again, and no longer.
	if _, err := s.handler.Purge(t.Context(), s.Hotel.ID); err != nil || s.Count(t, `SELECT count(*) FROM login_assertions`) != 1 {
		t.Errorf("forgotten early, %v", err)
	}
	s.Clock.Advance(2*time.Minute + 31*time.Second)
	if _, err := s.handler.Purge(t.Context(), s.Hotel.ID); err != nil || s.Count(t, `SELECT count(*) FROM login_assertions`) != 0 {
		t.Errorf("remembered for ever, %v", err)
	}
}

// wire.md §6: an assertion is taken from the configured origin only, to the byte,
// from a page that comes here as a whole window; and nowhere where the Brand has
// an OpenID provider.
func TestAssertionsComeFromTheBrandsPageOnly(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	to := s.pages(s.Hotel, "consent") + "?user_code=" + started.UserCode.String()
	d := s.driver(t)
	text := s.assertion(login, s.Hotel, guest, started)
	form := url.Values{"assertion": {text}}
	for _, origin := range []string{"", "null", "https://evil.example", s.url, login.Issuer() + "/", strings.ToUpper(login.Issuer()), login.Issuer() + ".evil.example"} {
		d.from(origin, to, form).empty(t, "from "+origin, 403, started)
	}
	for name, value := range map[string]string{"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "iframe"} {
		d.header = http.Header{"Origin": {login.Issuer()}, name: {value}}
		d.post(to, form).empty(t, name, 403, started)
	}
	d.header = http.Header{"Origin": {login.Issuer(), "https://evil.example"}}
	d.post(to, form).empty(t, "two origins", 403, started)
	d.header = http.Header{}
	twice := url.Values{"assertion": {text, text}}
	d.from(login.Issuer(), to, twice).empty(t, "twice in a form", 400, started)
	for _, name := range []string{"consent", "agents"} {
		d.from(login.Issuer(), s.pages(s.Shop, name), form).empty(t, "a Brand with a provider", 404, started)
	}
	// None of it used the assertion up.
	if g := d.brought(s, login, s.Hotel, started, text); g.status != 200 {
		t.Errorf("at last: %d", g.status)
	}
}

// P24, B20, M19: the session decides once, for its request and its person, and
// from our own page only.
func TestASessionDecidesOnce(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	shop := s.ownLogin(t, s.Shop)
	s.Hotel = s.connectedTo(t, s.Hotel, login.ConnectedURL())
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	second := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: "two"}, "bookings:read")
	sold := authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read")
	d := s.driver(t)
	mine := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started)).session(t)
	sams := d.brought(s, login, s.Hotel, second, s.assertion(login, s.Hotel, other, second)).session(t)
	shops := d.brought(s, shop, s.Shop, sold, s.assertion(shop, s.Shop, guest, sold)).session(t)
	to := s.pages(s.Hotel, "consent/decision")
	answer := func(session string) url.Values {
		return url.Values{"session": {session}, "scope": {"bookings:read"}, "decision": {"allow"}}
	}
	for _, origin := range []string{"", "null", "https://evil.example", login.Issuer()} {
		if g := d.from(origin, to, answer(mine)); g.status != 403 {
			t.Errorf("decided from %q: %d", origin, g.status)
		}
	}
	for name, session := range map[string]string{"forged": strings.Repeat("A", 43), "another Brand's": shops, "cut": mine[:42]} {
		if g := d.from(s.url, to, answer(session)); g.status != 400 {
			t.Errorf("%s: %d", name, g.status)
		}
	}
	if g := d.from(s.url, to, url.Values{"scope": {"bookings:read"}, "decision": {"allow"}}); g.status != 403 {
		t.Errorf("no session: %d", g.status)
	}
	if g := d.from(s.url, to, url.Values{"session": {mine}, "scope": {"bookings:read"}, "decision": {"perhaps"}}); g.status != 400 {
		t.Errorf("neither yes nor no: %d", g.status)
	}
	if g := d.from(s.url, s.pages(s.Hotel, "agents/enter"), answer(mine)); g.status != 400 {
		t.Errorf("at My agents: %d", g.status)
	}
	if s.state(t, s.Hotel, started) != "pending" || s.state(t, s.Shop, sold) != "pending" {
		t.Fatal("something was decided")
	}
	// A session names its request and its person: whatever else the form says.
	swapped := answer(sams)
	swapped.Set("user_code", started.UserCode.String())
	swapped.Set("sub", guest.Subject)
	if g := d.from(s.url, to, swapped); g.status != 303 || s.state(t, s.Hotel, started) != "pending" || s.state(t, s.Hotel, second) != "approved" {
		t.Errorf("%d; %s, %s", g.status, s.state(t, s.Hotel, started), s.state(t, s.Hotel, second))
	}
	if held, err := s.rules.Grants(t.Context(), s.Hotel.ID, guest.Subject); err != nil || len(held) != 0 {
		t.Errorf("%v, %v", held, err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 6 {
		d := s.driver(t)
		all.Go(func() {
			g := d.from(s.url, to, answer(mine))
			mu.Lock()
			defer mu.Unlock()
			statuses[g.status]++
		})
	}
	all.Wait()
	if statuses[303] != 1 || statuses[400] != 5 {
		t.Errorf("in parallel %v", statuses)
	}
	// Whoever pressed twice is told how it ended.
	if g := d.from(s.url, to, answer(mine)); g.status != 400 || !strings.Contains(g.text(), "See your bookings") || g.asks() {
		t.Errorf("again: %d\n%s", g.status, g.text())
	}
	if n := s.Count(t, `SELECT count(*) FROM journeys WHERE position($1 in encode(session_hash, 'escape')) > 0`, mine); n != 0 {
		t.Error("the session stands in clear")
	}
}

// A page that stood open for ten minutes decides nothing.
func TestASessionGrowsOld(t *testing.T) {
	s := newSite(t)
	login := s.ownLogin(t, s.Hotel)
	d := s.driver(t)
	for after, want := range map[time.Duration]int{9 * time.Minute: 303, 10*time.Minute + time.Second: 400} {
		started := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: after.String()}, "bookings:read")
		s.Exec(t, `UPDATE device_requests SET expires_at = expires_at + interval '1 hour'`)
		g := d.brought(s, login, s.Hotel, started, s.assertion(login, s.Hotel, guest, started))
		action, form := g.form(t)
		form.Set("decision", "deny")
		s.Clock.Advance(after)
		if done := d.from(s.url, action, form); done.status != want {
			t.Errorf("after %v: %d, want %d\n%s", after, done.status, want, done.text())
		}
	}
}

func text(claims map[string]any) string { return string(must(json.Marshal(claims))) }
