package consent_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
)

// R64: the session's id changes at login; a planted cookie is never adopted.
func TestSessionIsRenewedAtLogin(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	home := must(url.Parse(s.url))
	p.client.Jar.SetCookies(home, []*http.Cookie{{Name: cookieName, Value: "planted-by-somebody", Path: "/", Secure: true}})
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	start := p.open(s.link(s.Hotel, started))
	there := p.open(start.way(t, "/login?"))
	before := cookieOf(p, home)
	if before == "planted-by-somebody" {
		t.Fatal("a planted id was adopted")
	}
	action, values := there.form(t)
	values.Set("username", "alex")
	values.Set("password", "demo")
	if g := p.post(action, values); !g.asks() {
		t.Fatal(g.text())
	}
	if after := cookieOf(p, home); after == before || after == "" {
		t.Fatal("the id did not change at login")
	}
	// The old id opens nothing.
	old := s.person(t)
	old.client.Jar.SetCookies(home, []*http.Cookie{{Name: cookieName, Value: before, Path: "/", Secure: true}})
	if g := old.open(s.pages(s.Hotel, "agents")); strings.Contains(g.text(), "alex@example.com") {
		t.Fatal("the old id is logged in")
	}
}

func cookieOf(p *person, at *url.URL) string {
	for _, c := range p.client.Jar.Cookies(at) {
		if c.Name == cookieName {
			return c.Value
		}
	}
	return ""
}

// B46, B49: every cookie spells out every option, holds an id alone and is
// small; forty flows later too.
func TestCookiesAreSafe(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	var seen []*http.Cookie
	p.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if req.URL.Host == must(url.Parse(s.url)).Host {
			seen = append(seen, req.Response.Cookies()...)
		}
		return nil
	}
	for range 30 {
		started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
		there := p.open(p.open(s.link(s.Hotel, started)).way(t, "/login?"))
		_ = there
	}
	for i := range 10 {
		who := authority.Caller{Agent: alex.Agent, Sub: fmt.Sprint(i)}
		s.ask(t, p, s.Hotel, authoritytest.Begin(t, s.rules, s.Hotel, who, "bookings:read"), "alex")
	}
	raw := must(url.Parse(s.url))
	for _, c := range p.client.Jar.Cookies(raw) {
		if len(c.Value) > 64 {
			t.Errorf("cookie of %d bytes", len(c.Value))
		}
	}
	ours := slices.DeleteFunc(p.client.Jar.Cookies(raw), func(c *http.Cookie) bool { return c.Name != cookieName })
	if n := len(p.client.Jar.Cookies(raw)); len(ours) != 1 || n != 2 { // and the provider's, on the same host here
		t.Errorf("%d cookies after forty flows", n)
	}
	resp, err := (&http.Client{Transport: p.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).
		Get(s.pages(s.Hotel, "login"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, c := range append(resp.Cookies(), seen...) {
		if !strings.HasPrefix(c.Name, "__Host-") && !strings.HasPrefix(c.Name, "signin_") {
			t.Errorf("cookie %s", c.Name)
		}
		if strings.HasPrefix(c.Name, "__Host-") && (!c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode || c.MaxAge <= 0 || c.MaxAge > 3600) {
			t.Errorf("cookie %+v", c)
		}
	}
	if len(resp.Cookies()) != 1 {
		t.Fatal("no cookie was seen")
	}
}

// R107, P23, B51: every HTML answer, errors too, refuses frames, scripts and
// caches, and lets forms go nowhere else.
func TestEveryPageHasItsHeaders(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	pages := []page{
		p.open(s.pages(s.Hotel, "device")), p.open(s.link(s.Hotel, started)), s.ask(t, p, s.Hotel, started, "alex"),
		p.open(s.pages(s.Hotel, "agents")), p.open(s.url + "/b/nobody/device"), p.open(s.url + "/nonsense"),
		p.open(s.pages(s.Hotel, "consent")), p.open(s.pages(s.Hotel, "callback")),
		p.post(s.pages(s.Hotel, "device"), url.Values{"user_code": {"x"}}),
		p.post(s.pages(s.Hotel, "consent/decision"), url.Values{}),
	}
	for _, g := range pages {
		csp := g.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: CSP lacks %s", g.url.Path, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") {
			t.Errorf("%s: %s", g.url.Path, csp)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
			if g.header.Get(name) != want {
				t.Errorf("%s: %s is %q", g.url.Path, name, g.header.Get(name))
			}
		}
		if strings.Contains(g.body, "<script") || strings.Contains(g.body, " style=") || strings.Contains(g.body, " onclick") {
			t.Errorf("%s: script or inline style", g.url.Path)
		}
	}
}

// B48: no URL on the way grows with what was asked.
func TestURLsStayShort(t *testing.T) {
	s := newSite(t)
	var scopes []string
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
		for i := range 60 {
			id := fmt.Sprintf("a-rather-long-scope-identifier:%03d", i)
			b.Scopes = append(b.Scopes, tenants.Scope{ID: id, Description: "Row " + id, Effect: "sees", Impact: "low"})
			scopes = append(scopes, id)
		}
	})
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, scopes...)
	g := s.ask(t, s.person(t), s.Hotel, started, "alex")
	if len(g.url.String()) > 200 {
		t.Errorf("consent URL of %d characters", len(g.url.String()))
	}
}

// P40, B59: redirects and links come from the configured origin, whatever Host
// and forwarded headers say.
func TestHostIsNeverBelieved(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.pages(s.Hotel, "login")+"?user_code="+started.UserCode.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	req.Header.Set("X-Forwarded-Host", "evil.example")
	req.Header.Set("X-Forwarded-Proto", "http")
	g := p.do(req)
	to := must(url.Parse(g.header.Get("Location")))
	if back := to.Query().Get("redirect_uri"); back != s.pages(s.Hotel, "callback") {
		t.Errorf("redirect_uri %q", back)
	}
	if strings.Contains(g.header.Get("Location"), "evil") {
		t.Error(g.header.Get("Location"))
	}
}

// P48, R40: a whole journey and its accidents leave nothing secret in the log.
func TestJourneyLogHoldsNoSecret(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	form.Set("decision", "allow")
	p.post(action, form)
	p.open(s.link(s.Hotel, started))
	s.idp[s.Hotel.ID].SetFaults(demoidp.Faults{Token: demoidp.Answer{Status: 500, Body: "eyJsecret"}})
	other := authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: alex.Agent, Sub: "x"}, "bookings:read")
	p.signIn(p.open(s.link(s.Hotel, other)), "alex")
	p.open(s.pages(s.Hotel, "callback") + "?state=abc&code=eyJx")
	logs := s.logs.String()
	if !strings.Contains(logs, "route=") {
		t.Fatal("nothing was logged: the test sees nothing")
	}
	for _, secret := range []string{
		"dc_", "rt_", "eyJ", "user_code", started.UserCode.String(), other.UserCode.String(), "state=", "code=",
		"alex@example.com", "harbor-hotel-7", "login-alex", form.Get("session"), form.Get("j"), cookieOf(p, must(url.Parse(s.url))),
	} {
		if strings.Contains(logs, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
