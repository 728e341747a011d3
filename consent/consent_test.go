package consent_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

var alex = authoritytest.Alex

// M19, P19, R16: before a login nothing is shown and nothing can be decided; a
// decision is 403 and the request stays pending; opening links changes nothing.
func TestNothingBeforeLogin(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "extras:order")
	p := s.person(t)
	g := p.open(s.link(s.Hotel, started))
	if g.status != 200 || g.asks() {
		t.Fatalf("%d, or a decision control before login", g.status)
	}
	for _, scope := range s.Hotel.Scopes {
		if strings.Contains(g.body, scope.Description) || strings.Contains(g.body, scope.ID) {
			t.Errorf("the page shows %s before login", scope.ID)
		}
	}
	form := url.Values{"decision": {"allow"}, "scope": {"bookings:read"}, "session": {"x"}, "shown": {"x"}, "until": {"30"}}
	for _, path := range []string{"consent/decision"} {
		if d := p.post(s.pages(s.Hotel, path), form); d.status != http.StatusForbidden {
			t.Errorf("%s without login: %d", path, d.status)
		}
	}
	// On the way to the login, still nothing: the journey exists, the login does not.
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.way(t, "/login?"), nil)
	away := *p.client
	away.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := away.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	form.Set("j", journeyOf(t, s))
	if d := p.post(s.pages(s.Hotel, "consent/decision"), form); d.status != http.StatusForbidden {
		t.Errorf("on the way to the login: %d", d.status)
	}
	between := p.open(s.pages(s.Hotel, "consent") + "?j=" + journeyOf(t, s))
	if between.asks() || strings.Contains(between.body, "bookings") {
		t.Error("the consent page shows something before login")
	}
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Errorf("the request is %s", got)
	}
}

func journeyOf(t *testing.T, s *site) string {
	t.Helper()
	var id string
	if err := s.Owner.QueryRow(t.Context(), `SELECT id FROM journeys ORDER BY created_at DESC LIMIT 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// M20, P20, P21, R11, R12: the whole way; what is not ticked or was never
// offered is not granted.
func TestAllowGrantsWhatIsTicked(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "bookings:change", "extras:order")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "alex")
	text := g.text()
	for _, want := range []string{"agent.example", "Harbor Hotel", "alex@example.com", started.UserCode.String(), "See your bookings", "Change or cancel a booking", "Order extras to your room"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(text, "See your name and contact details") {
		t.Error("a scope that was not asked for is offered")
	}
	action, form := g.form(t)
	form["scope"] = []string{"bookings:read", "bookings:change", "account:read", "nonsense"} // extras unticked, two smuggled in
	form.Set("decision", "allow")
	form.Set("until", "7")
	done := p.post(action, form)
	if done.status != 200 || !strings.Contains(done.text(), "Change or cancel a booking") || strings.Contains(done.text(), "Order extras") {
		t.Fatalf("closing page: %d\n%s", done.status, done.text())
	}
	tokens, err := s.rules.Poll(t.Context(), s.Hotel, alex, started.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tokens.Scopes, []string{"bookings:read", "bookings:change"}) {
		t.Errorf("granted %v", tokens.Scopes)
	}
	held, err := s.rules.Grants(t.Context(), s.Hotel.ID, "harbor-hotel-7")
	if err != nil || len(held) != 1 {
		t.Fatalf("%v, %v", held, err)
	}
	if days := held[0].ExpiresAt.Sub(s.Clock.Now()); days != 7*24*time.Hour {
		t.Errorf("lives %v, seven days were chosen", days)
	}
	// The closing page leads to where it ends (B40), and it does end there.
	mine := p.open(done.way(t, "/agents"))
	if !strings.Contains(mine.text(), "agent.example") {
		t.Fatalf("My agents: %s", mine.text())
	}
	confirm := p.open(mine.way(t, "end="))
	action, form = confirm.form(t)
	after := p.post(action, form)
	if after.status != 200 || !strings.Contains(after.text(), "Aria") {
		t.Errorf("after ending: %d %s", after.status, after.text())
	}
	if _, err := s.rules.Refresh(t.Context(), s.Hotel, alex, tokens.Refresh, nil); err == nil {
		t.Error("it lives on")
	}
	if again := p.post(action, form); again.status != 200 { // ended twice is ended
		t.Errorf("ended twice: %d", again.status)
	}
}

// B07, P20: a typed code takes the same way as the link.
func TestTypedCodeTakesTheSameWay(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	action, form := p.open(s.pages(s.Hotel, "device")).form(t)
	form.Set("user_code", " "+strings.ToLower(string(started.UserCode))+" ")
	start := p.post(action, form)
	if start.url.String() != s.link(s.Hotel, started) {
		t.Fatalf("went to %s", start.url.Path)
	}
	if g := p.signIn(start, "alex"); !g.asks() || !strings.Contains(g.text(), started.UserCode.String()) {
		t.Fatal(g.text())
	}
	form.Set("user_code", "")
	if empty := p.post(action, form); empty.status != http.StatusUnprocessableEntity {
		t.Errorf("empty: %d", empty.status)
	}
	form.Set("user_code", "WRNG-<b>x")
	wrong := p.post(action, form)
	if wrong.status != http.StatusUnprocessableEntity || !strings.Contains(wrong.body, "WRNG-&lt;b&gt;x") {
		t.Errorf("a wrong code is not kept, or not escaped: %d", wrong.status)
	}
	form["user_code"] = []string{"BCDF-GHJK", "BCDF-GHJL"} // B100
	if twice := p.post(action, form); twice.status != http.StatusBadRequest {
		t.Errorf("twice: %d", twice.status)
	}
}

// B03: a denied, approved, redeemed, expired, unknown or foreign code gets one
// and the same page from somebody who is not logged in.
func TestDeadCodesLookAlike(t *testing.T) {
	s := newSite(t)
	begin := func(b *tenants.Brand, scope string) authority.Started {
		return authoritytest.Begin(t, s.rules, b, alex, scope)
	}
	expired := begin(s.Hotel, "bookings:read")
	s.Clock.Advance(authority.RequestLife)
	denied, approved, redeemed := begin(s.Hotel, "bookings:read"), begin(s.Hotel, "bookings:read"), begin(s.Hotel, "bookings:read")
	if err := s.rules.Deny(t.Context(), s.Hotel.ID, authority.Decision{Request: denied.ID, Subject: "harbor-hotel-7"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []authority.Started{approved, redeemed} {
		authoritytest.Approve(t, s.rules, s.Hotel, r, "harbor-hotel-7", "bookings:read")
	}
	if _, err := s.rules.Poll(t.Context(), s.Hotel, alex, redeemed.DeviceCode); err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{
		"expired": expired.UserCode.String(), "denied": denied.UserCode.String(), "approved": approved.UserCode.String(),
		"redeemed": redeemed.UserCode.String(), "unknown": "BBBB-BBBB", "foreign": begin(s.Shop, "orders:read").UserCode.String(),
	}
	var first page
	for what, code := range codes {
		for _, name := range []string{"device", "login"} {
			g := s.person(t).open(s.pages(s.Hotel, name) + "?user_code=" + code)
			if g.status != http.StatusNotFound || g.asks() {
				t.Errorf("%s at %s: %d", what, name, g.status)
			}
			if first.root == nil {
				first = g
			}
			if withoutID(g.text()) != withoutID(first.text()) {
				t.Errorf("%s differs:\n%s\n%s", what, g.text(), first.text())
			}
		}
		s.Exec(t, `DELETE FROM code_attempts`)
	}
}

// withoutID drops the request id in small print, and the languages, which only a
// page that can be asked for again offers.
func withoutID(text string) string {
	return regexp.MustCompile(`quote [a-z2-7]{12}|English 繁體中文 `).ReplaceAllString(text, "")
}

// P26, R3, B05: the eleventh wrong code is 429 with Retry-After, per browser
// and per address.
func TestEleventhWrongCodeMustWait(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	for i := range 11 {
		g := p.post(s.pages(s.Hotel, "device"), url.Values{"user_code": {"BBBB-BBBB"}})
		want := http.StatusUnprocessableEntity
		if i == 10 {
			want = http.StatusTooManyRequests
		}
		if g.status != want {
			t.Fatalf("try %d: %d", i+1, g.status)
		}
		if i == 10 && g.header.Get("Retry-After") != "600" {
			t.Errorf("Retry-After %q", g.header.Get("Retry-After"))
		}
	}
	// A fresh browser on the same address is no way around.
	if g := s.person(t).open(s.pages(s.Hotel, "device") + "?user_code=BBBB-BBBB"); g.status != http.StatusTooManyRequests {
		t.Errorf("fresh browser: %d", g.status)
	}
}

// P24, B20, R13, R14: a decision needs our own page, this browser's session,
// and the token made for this journey, person and question.
func TestDecisionCannotBeForged(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	victim, attacker := s.person(t), s.person(t)
	g := s.ask(t, victim, s.Hotel, started, "alex")
	action, form := g.form(t)
	form.Set("decision", "allow")
	own := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	_, attackers := s.ask(t, attacker, s.Hotel, own, "sam").form(t)

	for name, header := range map[string]http.Header{
		"another site":               {"Sec-Fetch-Site": {"cross-site"}},
		"another port":               {"Sec-Fetch-Site": {"same-site"}},
		"an address typed":           {"Sec-Fetch-Site": {"none"}},
		"an old browser, elsewhere":  {"Origin": {"https://evil.example"}},
		"an old browser, nowhere":    {"Origin": {"null"}},
		"same-origin by Origin only": {"Sec-Fetch-Site": {"cross-site"}, "Origin": {s.url}},
	} {
		victim.header = header
		if d := victim.post(action, form); d.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, d.status)
		}
	}
	victim.header = http.Header{}
	for name, change := range map[string]func(url.Values){
		"no token":                   func(f url.Values) { f.Del("session") },
		"made-up token":              func(f url.Values) { f.Set("session", strings.Repeat("A", 43)) },
		"the attacker's token":       func(f url.Values) { f.Set("session", attackers.Get("session")) },
		"the attacker's form":        func(f url.Values) { f.Set("session", attackers.Get("session")); f.Set("j", attackers.Get("j")) },
		"another question":           func(f url.Values) { f.Set("shown", attackers.Get("session")) },
		"no decision":                func(f url.Values) { f.Del("decision") },
		"two decisions":              func(f url.Values) { f["decision"] = []string{"allow", "deny"} },
		"a decision nobody knows":    func(f url.Values) { f.Set("decision", "ALLOW") },
		"two tokens":                 func(f url.Values) { f.Add("session", "x") },
		"an unknown journey":         func(f url.Values) { f.Set("j", "abcdefghijklmnopqrstuvwxyz") },
		"a journey of ten thousands": func(f url.Values) { f.Set("j", strings.Repeat("a", 10000)) },
	} {
		bad := url.Values{}
		for k, v := range form {
			bad[k] = slices.Clone(v)
		}
		change(bad)
		if d := victim.post(action, bad); d.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, d.status)
		}
	}
	// The victim's whole form, posted from the attacker's browser.
	if d := attacker.post(action, form); d.status != http.StatusBadRequest {
		t.Errorf("from another browser: %d", d.status)
	}
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Fatalf("the request is %s", got)
	}
	if d := victim.post(action, form); d.status != 200 {
		t.Fatalf("the real thing: %d %s", d.status, d.text())
	}
	// Reused: 400, and it shows how it was answered.
	if d := victim.post(action, form); d.status != http.StatusBadRequest || !strings.Contains(d.text(), "See your bookings") {
		t.Errorf("reused: %d", d.status)
	}
	if n := s.Count(t, `SELECT count(*) FROM grants`); n != 1 {
		t.Errorf("%d grants", n)
	}
}

// An old browser without fetch metadata decides by Origin.
func TestOldBrowserDecides(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	form.Set("decision", "allow")
	p.header = http.Header{"Origin": {s.url}}
	if d := p.post(action, form); d.status != 200 {
		t.Fatal(d.status)
	}
}

// P25, B03: one form sent twice in parallel, and two people with one code: one
// grant, no 500.
func TestParallelDecisionsMakeOneGrant(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	a, b := s.person(t), s.person(t)
	actionA, formA := s.ask(t, a, s.Hotel, started, "alex").form(t)
	actionB, formB := s.ask(t, b, s.Hotel, started, "sam").form(t)
	formA.Set("decision", "allow")
	formB.Set("decision", "allow")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			who, action, form := a, actionA, formA
			if i%2 == 1 {
				who, action, form = b, actionB, formB
			}
			if d := who.post(action, form); d.status >= 500 {
				t.Errorf("%d", d.status)
			}
		})
	}
	wg.Wait()
	if n := s.Count(t, `SELECT count(*) FROM grants`); n != 1 {
		t.Fatalf("%d grants", n)
	}
}

// B43, R64: two Brands and two requests in one browser, finished in any order.
func TestTabsDoNotDisturbEachOther(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	first := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	second := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "a"}, "account:read")
	third := authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read")
	one, two, three := p.open(s.link(s.Hotel, first)), p.open(s.link(s.Hotel, second)), p.open(s.link(s.Shop, third))
	g3 := p.signIn(three, "sam")
	g1 := p.signIn(one, "alex")
	g2 := p.signIn(two, "alex")
	for _, g := range []page{g2, g3, g1} {
		action, form := g.form(t)
		form.Set("decision", "allow")
		if d := p.post(action, form); d.status != 200 {
			t.Fatalf("%d %s", d.status, d.text())
		}
	}
	for subject, b := range map[string]*tenants.Brand{"harbor-hotel-7": s.Hotel, "fern-and-fell-8": s.Shop} {
		held, err := s.rules.Grants(t.Context(), b.ID, subject)
		if err != nil || len(held) != map[*tenants.Brand]int{s.Hotel: 2, s.Shop: 1}[b] {
			t.Errorf("%s: %d grants, %v", subject, len(held), err)
		}
	}
}

// A page that showed one person never decides for another who logged in since,
// in another tab.
func TestPageOfOnePersonDoesNotDecideForAnother(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	g := s.ask(t, p, s.Hotel, started, "alex")
	action, form := g.form(t)
	form.Set("decision", "allow")
	other := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "a"}, "account:read")
	s.ask(t, p, s.Hotel, other, "sam")
	if d := p.post(action, form); d.status != http.StatusBadRequest {
		t.Errorf("%d %s", d.status, d.text())
	}
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Errorf("the request is %s", got)
	}
	// The journey goes on, with a sign-in first.
	back := p.open(g.url.String())
	if back.asks() {
		t.Error("the question is shown to somebody who has not signed in for it")
	}
}
