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
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// B01, B56: a refusal at the provider is no answer to the agent: the person gets
// a page with a way to try again, and the request stays pending. Nothing loops.
func TestProviderRefusalIsNoDenial(t *testing.T) {
	s := newSite(t)
	idp := s.idp[s.Hotel.ID]
	for _, code := range []string{"access_denied", "server_error", "login_required", "temporarily_unavailable", "made_up_error"} {
		started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
		p := s.person(t)
		idp.SetFaults(demoidp.Faults{AuthorizeError: code, AuthorizeErrorDescription: "<script>alert(1)</script> alex@example.com"})
		start := p.open(s.link(s.Hotel, started))
		g := p.open(start.way(t, "/login?"))
		if g.status != http.StatusForbidden || g.asks() || strings.Contains(g.body, "alert(1)") || strings.Contains(g.body, "alex@example.com") {
			t.Fatalf("%s: %d\n%s", code, g.status, g.text())
		}
		if got := s.state(t, s.Hotel, started); got != "pending" {
			t.Fatalf("%s: the request is %s", code, got)
		}
		idp.SetFaults(demoidp.Faults{})
		if again := p.signIn(g, "alex"); !again.asks() {
			t.Fatalf("%s: trying again: %d %s", code, again.status, again.text())
		}
	}
}

// R69, B63: a provider that is down or hangs costs its own Brand seconds, and
// others nothing; the request stays pending.
func TestDeadProviderCostsOnlyItsBrand(t *testing.T) {
	s := newSite(t)
	for name, fault := range map[string]demoidp.Faults{
		"discovery 500":     {Discovery: demoidp.Answer{Status: 500}},
		"discovery garbage": {Discovery: demoidp.Answer{Status: 200, Body: "{"}},
		"token 500":         {Token: demoidp.Answer{Status: 500}},
		"keys 500":          {JWKS: demoidp.Answer{Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.idp[s.Hotel.ID].SetFaults(fault)
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			p := s.person(t)
			start := p.open(s.link(s.Hotel, started))
			g := p.open(start.way(t, "/login?"))
			if g.url.Scheme == "http" {
				action, values := g.form(t)
				values.Set("username", "alex")
				values.Set("password", "demo")
				g = p.post(action, values)
			}
			if g.status != http.StatusBadGateway && g.status != http.StatusForbidden || g.asks() {
				t.Fatalf("%d %s", g.status, g.text())
			}
			if got := s.state(t, s.Hotel, started); got != "pending" {
				t.Fatalf("the request is %s", got)
			}
		})
	}
	s.idp[s.Hotel.ID].SetFaults(demoidp.Faults{Discovery: demoidp.Answer{Status: 500}})
	other := authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read")
	s.ask(t, s.person(t), s.Shop, other, "alex")
}

// B10: a Brand without a usable login says so before anybody taps.
func TestBrandWithoutLoginSaysSo(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	s.Exec(t, `UPDATE login_connections SET live = false WHERE brand_id = $1`, s.Hotel.ID)
	if g := s.person(t).open(s.link(s.Hotel, started)); g.status != http.StatusBadGateway {
		t.Fatalf("%d %s", g.status, g.text())
	}
}

// B58: the callback counts once; a reload, a prefetch or a double click shows the
// step that is next. B08, R67: it belongs to the browser that left.
func TestCallbackCountsOnce(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	var callback string
	p.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/callback") {
			callback = req.URL.String()
		}
		return nil
	}
	g := s.ask(t, p, s.Hotel, started, "alex")
	for range 2 {
		again := p.open(callback)
		if again.status != 200 || !again.asks() {
			t.Fatalf("callback again: %d %s", again.status, again.text())
		}
	}
	// In another browser it logs nobody in (login CSRF), and helps to start anew.
	stranger := s.person(t)
	there := stranger.open(callback)
	if there.status != http.StatusBadRequest || there.asks() {
		t.Fatalf("in another browser: %d %s", there.status, there.text())
	}
	if mine := stranger.open(s.pages(s.Hotel, "agents")); strings.Contains(mine.text(), "alex@example.com") {
		t.Fatal("a stranger is logged in")
	}
	action, form := g.form(t)
	form.Set("decision", "deny")
	p.post(action, form)
	after := p.open(callback)
	if after.status != 200 || after.asks() {
		t.Errorf("after the answer: %d %s", after.status, after.text())
	}
	for _, bad := range []string{"", "?state=", "?state=nonsense&code=x", "?state=" + strings.Repeat("a", 5000), "?state=a&state=b"} {
		if g := p.open(s.pages(s.Hotel, "callback") + bad); g.status != http.StatusBadRequest {
			t.Errorf("callback%.20s: %d", bad, g.status)
		}
	}
}

// B45: cookies blocked or lost between leaving and coming back: one button
// restarts the same request.
func TestLostCookieRestartsTheSameRequest(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	there := p.open(p.open(s.link(s.Hotel, started)).way(t, "/login?"))
	fresh := s.person(t)
	// Our cookie is gone, the provider's is not.
	idp := must(url.Parse(s.idp[s.Hotel.ID].Issuer()))
	for _, c := range p.client.Jar.Cookies(idp) {
		if c.Name != cookieName {
			fresh.client.Jar.SetCookies(idp, []*http.Cookie{c})
		}
	}
	action, values := there.form(t)
	values.Set("username", "alex")
	values.Set("password", "demo")
	lost := fresh.post(action, values)
	if lost.status != http.StatusBadRequest || lost.asks() {
		t.Fatalf("%d %s", lost.status, lost.text())
	}
	if g := fresh.signIn(fresh.open(lost.way(t, "user_code="+started.UserCode.String())), "alex"); !g.asks() {
		t.Fatalf("%d %s", g.status, g.text())
	}
}

// R4, B38, P17: what ran out, was decided elsewhere or was taken away meanwhile
// says so, and nothing is granted.
func TestQuestionThatNoLongerStands(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *site, authority.Started)
		status int
	}{
		{"expired", func(_ *testing.T, s *site, _ authority.Started) { s.Clock.Advance(authority.RequestLife) }, http.StatusGone},
		{"agent disabled", func(t *testing.T, s *site, _ authority.Started) { s.Exec(t, `UPDATE agents SET enabled = false`) }, http.StatusForbidden},
		{"brand paused", func(t *testing.T, s *site, _ authority.Started) { s.Exec(t, `UPDATE brands SET state = 'paused'`) }, http.StatusServiceUnavailable},
		{"account suspended", func(t *testing.T, s *site, _ authority.Started) {
			if err := s.rules.Suspend(t.Context(), s.Hotel.ID, authority.ByOperator(), "harbor-hotel-7"); err != nil {
				t.Fatal(err)
			}
		}, http.StatusForbidden},
		{"denied elsewhere", func(t *testing.T, s *site, r authority.Started) {
			if err := s.rules.Deny(t.Context(), s.Hotel.ID, authority.Decision{Request: r.ID, Subject: "harbor-hotel-8"}); err != nil {
				t.Fatal(err)
			}
		}, http.StatusConflict},
		{"allowed elsewhere", func(t *testing.T, s *site, r authority.Started) {
			authoritytest.Approve(t, s.rules, s.Hotel, r, "harbor-hotel-8", "bookings:read")
		}, http.StatusConflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			p := s.person(t)
			g := s.ask(t, p, s.Hotel, started, "alex")
			action, form := g.form(t)
			form.Set("decision", "allow")
			before := s.Count(t, `SELECT count(*) FROM grants`)
			tt.change(t, s, started)
			made := s.Count(t, `SELECT count(*) FROM grants`) - before
			posted, shown := p.post(action, form), p.open(g.url.String())
			for what, got := range map[string]page{"posted": posted, "shown": shown} {
				if got.status != tt.status || got.asks() {
					t.Errorf("%s: %d, want %d\n%s", what, got.status, tt.status, got.text())
				}
			}
			if n := s.Count(t, `SELECT count(*) FROM grants`) - before; n != made {
				t.Error("something was granted")
			}
		})
	}
}

// B42, B36 (the words): the card changes under the open page: the question comes
// again with a note, what was ticked stays ticked, and nothing was granted.
func TestChangedCardIsShownAgain(t *testing.T) {
	for name, change := range map[string]func(*tenants.Brand){
		"new words":     func(b *tenants.Brand) { b.Scopes[0].Description = "Cancel your bookings" },
		"scope retired": func(b *tenants.Brand) { b.Scopes = b.Scopes[1:] },
		"other choices": func(b *tenants.Brand) { b.GrantDays, b.GrantDefault = []int{1}, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "bookings:change", "account:read")
			p := s.person(t)
			action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
			form["scope"] = []string{"bookings:change"}
			form.Set("decision", "allow")
			s.Save(t, s.Hotel, func(b *tenants.Brand) {
				b.Scopes = append([]tenants.Scope(nil), b.Scopes...)
				change(b)
			})
			g := p.post(action, form)
			if !g.asks() || !g.url.Query().Has("changed") {
				t.Fatalf("%d %s", g.status, g.text())
			}
			if got := s.state(t, s.Hotel, started); got != "pending" {
				t.Fatalf("the request is %s", got)
			}
			action, form = g.form(t)
			if ticked := form["scope"]; len(ticked) != 1 || ticked[0] != "bookings:change" {
				t.Errorf("ticked now: %v", ticked)
			}
			form.Set("decision", "allow")
			if done := p.post(action, form); done.status != 200 || done.asks() {
				t.Fatalf("%d %s", done.status, done.text())
			}
		})
	}
}

// B03: who never signed in for a request does not learn what became of it, nor
// who asked, from any address.
func TestOutsidersLearnNothingOfARequest(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *site, authority.Started){
		"allowed": func(t *testing.T, s *site, r authority.Started) {
			authoritytest.Approve(t, s.rules, s.Hotel, r, "harbor-hotel-8", "bookings:read")
		},
		"denied": func(t *testing.T, s *site, r authority.Started) {
			if err := s.rules.Deny(t.Context(), s.Hotel.ID, authority.Decision{Request: r.ID, Subject: "harbor-hotel-8"}); err != nil {
				t.Fatal(err)
			}
		},
		"expired":  func(_ *testing.T, s *site, _ authority.Started) { s.Clock.Advance(authority.RequestLife) },
		"disabled": func(t *testing.T, s *site, _ authority.Started) { s.Exec(t, `UPDATE agents SET enabled = false`) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			p := s.person(t)
			p.open(p.open(s.link(s.Hotel, started)).way(t, "/login?")) // as far as the provider
			change(t, s, started)
			g := p.open(s.pages(s.Hotel, "consent") + "?j=" + journeyOf(t, s))
			if g.status != http.StatusNotFound || strings.Contains(g.text(), "Aria") || strings.Contains(g.text(), "agent.example") {
				t.Errorf("%d %s", g.status, g.text())
			}
		})
	}
}

// M19 after the fact: the closing page is for who decided, while logged in; it
// tells what was allowed then, and not after it has ended.
func TestClosingPageIsForWhoDecided(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	form.Set("decision", "allow")
	done := p.post(action, form)
	// The grant is widened later: what this page says was allowed stays.
	more := authoritytest.Begin(t, s.rules, s.Hotel, alex, "account:read")
	authoritytest.Approve(t, s.rules, s.Hotel, more, "harbor-hotel-7", "bookings:read", "account:read")
	if g := p.open(done.url.String()); !strings.Contains(g.text(), "See your bookings") || strings.Contains(g.text(), "contact details") {
		t.Errorf("%s", g.text())
	}
	held, err := s.rules.Grants(t.Context(), s.Hotel.ID, "harbor-hotel-7")
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	if err := s.rules.EndByUser(t.Context(), s.Hotel.ID, "harbor-hotel-7", held[0].ID); err != nil {
		t.Fatal(err)
	}
	if g := p.open(done.url.String()); strings.Contains(g.text(), "may now act") || g.status != http.StatusConflict {
		t.Errorf("after it ended: %d %s", g.status, g.text())
	}
	s.Clock.Advance(20 * time.Minute)
	if g := p.open(done.url.String()); strings.Contains(g.text(), "bookings") {
		t.Errorf("after the login lapsed: %s", g.text())
	}
}

// B104, B100: bytes that no form of ours sends are no error of ours, and nothing
// of a stranger's choosing is stored.
func TestOddBytesAreNoSurprise(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	p.open(p.open(s.link(s.Hotel, started)).way(t, "/login?"))
	journey := journeyOf(t, s)
	for _, path := range []string{
		"login?user_code=" + started.UserCode.String() + "&ui_locales=%00", "login?user_code=" + started.UserCode.String() + "&ui_locales=%ff",
		"login?j=%00", "consent?j=%00", "consent?j=%ff%fe", "agents?j=%ff", "agents?end=%00", "agents?ended=%00",
		"device?user_code=%00", "device?user_code=%ff", "callback?state=%00&code=x", "callback?state=%ff&code=%00", "login?ui_locales=" + strings.Repeat("x", 5000),
	} {
		if g := p.open(s.pages(s.Hotel, path)); g.status >= 500 {
			t.Errorf("%s: %d", path, g.status)
		}
	}
	many := url.Values{"j": {journey}, "until": {"30"}, "decision": {"allow"}, "scope": {"\x00", "\xff", "bookings:read"}}
	for i := range 500 {
		many.Add("scope", strings.Repeat("x", 100)+string(rune('a'+i%26)))
	}
	if g := p.post(s.pages(s.Hotel, "consent/decision"), many); g.status >= 500 || g.status < 400 {
		t.Errorf("%d", g.status)
	}
	if n := s.Count(t, `SELECT coalesce(max(cardinality(ticked)), 0) FROM journeys`); n > 1 {
		t.Errorf("%d ticks of a stranger's choosing were stored", n)
	}
	if strings.Contains(s.logs.String(), "SQLSTATE") {
		t.Error(s.logs.String())
	}
}

// B05: pictures on another site that name our address use up nobody's codes.
func TestPicturesUseUpNoCodes(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	for _, dest := range []string{"image", "iframe", "script", "empty"} {
		p.header = http.Header{"Sec-Fetch-Dest": {dest}, "Sec-Fetch-Site": {"cross-site"}}
		for range 6 {
			for _, name := range []string{"device", "login"} {
				if g := p.open(s.pages(s.Hotel, name) + "?user_code=BCDF-BCDF"); g.status != http.StatusNotFound {
					t.Fatalf("%s to %s: %d", dest, name, g.status)
				}
			}
		}
	}
	p.header = http.Header{"Sec-Fetch-Dest": {"document"}}
	if g := p.open(s.link(s.Hotel, started)); g.status != http.StatusOK {
		t.Fatalf("the honest link: %d", g.status)
	}
}

// B114, B115, P23: hostile words are escaped; the language follows the link, then
// the browser, and never shows a key.
func TestLanguagesAndHostileWords(t *testing.T) {
	s := newSite(t)
	const evil = `<img src=x onerror=alert(1)>"'&`
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
		b.Name = "Harbor " + evil
		b.Scopes = append([]tenants.Scope(nil), b.Scopes...)
		b.Scopes[0].Description = evil
		b.Scopes[0].Texts = map[string]tenants.ScopeText{"zh-Hant": {Description: "查看您的訂房"}}
	})
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "alex")
	if strings.Contains(g.body, "<img") || !strings.Contains(g.text(), evil) {
		t.Error("hostile words are not escaped, or lost")
	}
	for header, want := range map[string]string{"zh-TW": "zh-Hant", "de, *;q=0.5": "en", "*": "en", strings.Repeat("zh,", 4000): "en", "zh-Hant-HK;q=0.9": "zh-Hant"} {
		p.header = http.Header{"Accept-Language": {header}}
		g := p.open(g.url.String())
		if lang := attr(g.all("html")[0], "lang"); lang != want && len(header) < 1000 {
			t.Errorf("Accept-Language %.20q: lang %q", header, lang)
		}
	}
	p.header = http.Header{"Accept-Language": {"en"}}
	zh := p.open(g.url.String() + "&ui_locales=zh-TW")
	if attr(zh.all("html")[0], "lang") != "zh-Hant" || !strings.Contains(zh.text(), "查看您的訂房") {
		t.Error("ui_locales is not heard, or the Brand's own translation is not shown")
	}
	// The language of the link is kept to the end.
	action, form := zh.form(t)
	form.Set("decision", "allow")
	if done := p.post(action, form); attr(done.all("html")[0], "lang") != "zh-Hant" {
		t.Error("the language was lost on the way")
	}
}

// Every address of one Brand's journey is unknown at another (isolation).
func TestJourneyOfOneBrandIsUnknownAtAnother(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	var state string
	p.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/callback") && state == "" {
			state = req.URL.Query().Get("state")
		}
		return nil
	}
	g := s.ask(t, p, s.Hotel, started, "alex")
	s.ask(t, p, s.Shop, authoritytest.Begin(t, s.rules, s.Shop, alex, "orders:read"), "alex")
	_, form := g.form(t)
	form.Set("decision", "allow")
	tries := map[string]page{
		"journey":  p.open(s.pages(s.Shop, "consent") + "?j=" + form.Get("j")),
		"login":    p.open(s.pages(s.Shop, "login") + "?j=" + form.Get("j")),
		"decision": p.post(s.pages(s.Shop, "consent/decision"), form),
		"state":    p.open(s.pages(s.Shop, "callback") + "?code=x&state=" + state),
		"code":     p.open(s.pages(s.Shop, "device") + "?user_code=" + started.UserCode.String()),
		"grant":    p.post(s.pages(s.Shop, "agents/end"), url.Values{"grant": {uuid.NewString()}, "session": {form.Get("session")}}),
	}
	for what, got := range tries {
		if got.status != http.StatusBadRequest && got.status != http.StatusNotFound && got.status != http.StatusGone || got.asks() {
			t.Errorf("%s: %d %s", what, got.status, got.text())
		}
	}
}

// The answer to a member's test login comes where all answers come, and goes on to
// who waits for it; it logs nobody in.
func TestAnswerToATestLoginGoesOn(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	g := p.open(s.pages(s.Hotel, "callback") + "?code=c&state=" + tenants.TryPrefix + "abc")
	if got, want := g.url.RequestURI(), "/tried/harbor-hotel?code=c&state=try.abc"; got != want {
		t.Errorf("it went to %s, want %s", got, want)
	}
	if g := p.open(s.pages(s.Hotel, "callback") + "?code=c&state=abc"); strings.HasPrefix(g.url.Path, "/tried/") {
		t.Error("another answer went there too")
	}
	if g := p.open(s.pages(s.Hotel, "callback") + "?code=c&code=d&state=" + tenants.TryPrefix + "abc"); strings.HasPrefix(g.url.Path, "/tried/") {
		t.Error("an answer with two codes went on")
	}
	if n := s.Count(t, `SELECT count(*) FROM journeys`); n != 0 {
		t.Errorf("%d journeys", n)
	}
}
