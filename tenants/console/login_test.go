package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants/console"
	"countersign.dev/web"
)

// Out and in again, without typing a name; and the way on is one of ours.
func TestLoginNeedsNoName(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	v.found("lake")
	v.open("/console/login").mustGo("/console/brands")
	v.post("/console/logout", nil, "").mustGo("/console")
	v.open("/console/b/lake/members").mustGo("/console/login?back=%2Fconsole%2Fb%2Flake%2Fmembers")
	p := v.open("/console/login?back=%2Fconsole%2Fb%2Flake%2Fmembers")
	form := with(p.fields("/console/login"), "credential", v.device.get(p.options()))
	v.post("/console/login", form, "").mustGo("/console/b/lake/members")
	v.open("/console/b/lake/members").must(http.StatusOK)
}

// R71: nobody is sent to another site after signing in.
func TestTheWayOnIsOurs(t *testing.T) {
	for path, want := range map[string]bool{
		"/console/brands": true, "/console/b/lake/members?x=1": true, "/console/link?t=ABC": true,
		"": false, "/": false, "/b/lake/agents": false, "//evil.example/console/": false, "https://evil.example/console/": false,
		"/console/\\evil.example": false, "javascript:alert(1)": false, "/consoles": false, "/console/\r\nX: y": false,
		"/console//evil.example": false, "\\/console/": false,
	} {
		if got := console.Back(path); got != "" != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}

// Session fixation: an id that was there before the login is worth nothing after
// it, and a chosen one never anything.
func TestTheSessionChangesAtLogin(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	v.post("/console/logout", nil, "")
	v.open("/console/login")
	planted := v.cookie()
	if planted == "" {
		t.Fatal("no session for the ceremony")
	}
	v.login().mustGo("/console/brands")
	if v.cookie() == planted {
		t.Fatal("the id stayed")
	}
	for _, id := range []string{planted, "chosen", strings.Repeat("x", 64)} {
		eve := s.visitor(t)
		eve.header.Set("Cookie", cookieName+"="+id)
		eve.open("/console/brands").must(http.StatusSeeOther)
	}
	// The same holds for the first login of all.
	ben := s.visitor(t)
	link := ben.signUp("ben@example.com")
	ben.open(link)
	before := ben.cookie()
	ben.useLink(link, "Ben").mustGo("/console/keys")
	if before == "" || ben.cookie() == before {
		t.Error("the id stayed through a sign-up")
	}
}

// Every option of the cookie is set, and it is not the people's pages' cookie: an
// id of the one kind opens nothing of the other.
func TestTheCookieIsLocked(t *testing.T) {
	s := newSite(t)
	v := s.visitor(t)
	p := v.open("/console/login")
	c := p.header.Get("Set-Cookie")
	for _, want := range []string{cookieName + "=", "Path=/", "Max-Age=28800", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(c, want) {
			t.Errorf("%s is not in %s", want, c)
		}
	}
	if strings.Contains(c, "Domain") {
		t.Errorf("the cookie names a domain: %s", c)
	}
	ann := s.become(t, "ann@example.com", "Ann")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "__Host-countersign", Value: ann.cookie()})
	session, err := web.NewStore(s.DB.Pool(), s.Clock.Now).Get(r, "__Host-countersign")
	if err != nil || !session.IsNew {
		t.Errorf("a dashboard's session opened as one of the people's pages: %v", err)
	}
}

// A session ends after half an hour without a request, and after eight hours in
// any case.
func TestSessionsEnd(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	s.Clock.Advance(29 * time.Minute)
	v.open("/console/brands").must(http.StatusOK)
	s.Clock.Advance(29 * time.Minute)
	v.open("/console/brands").must(http.StatusOK)
	s.Clock.Advance(30 * time.Minute)
	v.open("/console/brands").must(http.StatusSeeOther)

	v.login().mustGo("/console/brands")
	for range 16 { // eight hours
		v.open("/console/brands").must(http.StatusOK)
		v.touch().must(http.StatusSeeOther) // a touch does not make it longer
		s.Clock.Advance(29*time.Minute + 50*time.Second)
	}
	v.open("/console/brands").must(http.StatusOK)
	s.Clock.Advance(3 * time.Minute)
	v.open("/console/brands").must(http.StatusSeeOther)
}

// An authenticator whose counter falls back has a double: it opens nothing, and
// its owner is told.
func TestClonedAuthenticatorIsRefused(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	copied := v.device.clone()
	for range 3 {
		v.post("/console/logout", nil, "")
		v.login().mustGo("/console/brands")
	}
	s.drain(t)
	eve := s.visitor(t)
	eve.device = copied
	eve.login().must(http.StatusForbidden, "does not open the door")
	eve.open("/console/brands").must(http.StatusSeeOther)
	for m := s.letter(t); ; m = s.letter(t) {
		if !strings.Contains(m.Subject, "copied") {
			continue
		}
		if m.To != "ann@example.com" {
			t.Errorf("%+v", m)
		}
		break
	}
	if !strings.Contains(s.log.String(), "ALARM") || strings.Contains(s.log.String(), "ann@example.com") {
		t.Error("the log says nothing, or too much")
	}
	// One that never counts is none.
	plain := s.visitor(t)
	plain.device.noCounter = true
	plain.useLink(plain.signUp("ben@example.com"), "Ben").mustGo("/console/keys")
	plain.secure()
	for range 2 {
		plain.post("/console/logout", nil, "")
		plain.login().mustGo("/console/brands")
	}
}

// The passkey of one person does not touch, add to or sign in for another.
func TestAnotherPersonsPasskey(t *testing.T) {
	s := newSite(t)
	ann, eve := s.become(t, "ann@example.com", "Ann"), s.become(t, "eve@example.com", "Eve")
	p := ann.open("/console/touch")
	form := with(p.fields("/console/touch"), "credential", eve.device.get(p.options()))
	ann.post("/console/touch", form, "").must(http.StatusForbidden, "does not open the door")
	// An assertion that names Ann as its user, by Eve's key.
	ann.post("/console/logout", nil, "")
	p = ann.open("/console/login")
	key := eve.device.keys[0]
	mine := key.user
	key.user = ann.device.keys[0].user
	ann.post("/console/login", with(p.fields("/console/login"), "credential", eve.device.get(p.options())), "").must(http.StatusForbidden)
	key.user = mine
	// An answer is good once, and for one question.
	p = ann.open("/console/login")
	form = with(p.fields("/console/login"), "credential", ann.device.get(p.options()))
	ann.post("/console/login", form, "").must(http.StatusSeeOther)
	ann.post("/console/logout", nil, "")
	ann.open("/console/login")
	ann.post("/console/login", form, "").must(http.StatusForbidden)
	// Also of a device that does not count.
	ann.login().must(http.StatusSeeOther)
	ben := s.become(t, "ben@example.com", "Ben")
	ben.device.noCounter, ben.device.keys[0].count = true, 0
	p = ben.open("/console/touch")
	form = with(p.fields("/console/touch"), "credential", ben.device.get(p.options()))
	ben.post("/console/touch", form, "").must(http.StatusSeeOther)
	ben.post("/console/touch", form, "").must(http.StatusBadRequest)
	ann.post("/console/logout", nil, "")
	// Eve's device is registered for Eve; Ann cannot have it as hers.
	ann.login().must(http.StatusSeeOther)
	p = ann.open("/console/keys")
	answer := ann.device.create(p.options())
	ann.post("/console/keys", with(p.fields("/console/keys"), "credential", answer), "").must(http.StatusSeeOther)
	ann.open("/console/keys")
	ann.post("/console/keys", url.Values{"credential": {answer}}, "").must(http.StatusForbidden)
	if n := s.Count(t, `SELECT count(*) FROM passkeys`); n != 4 {
		t.Errorf("%d passkeys", n)
	}
	// A key that does not say that it verified its holder is not enough.
	for name, broken := range map[string]string{"no answer": "", "not JSON": "{", "nothing in it": "{}"} {
		ann.open("/console/touch")
		if p := ann.post("/console/touch", url.Values{"credential": {broken}}, ""); p.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, p.status)
		}
	}
}

// A passkey from another website, as a phishing page would bring it, is refused.
func TestAnotherSitesPasskey(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	v.post("/console/logout", nil, "")
	v.device.origin = "https://countersign.example.evil.example"
	v.login().must(http.StatusForbidden)
	v.device.origin, v.device.rp = origin, "evil.example"
	v.login().must(http.StatusForbidden)
	v.device.rp = relying
	v.login().must(http.StatusSeeOther)
}

// A post that no page of ours made changes nothing: neither another site's, nor
// one that does not say where it comes from.
func TestForeignPostsAreRefused(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	v.found("lake")
	for name, header := range map[string]http.Header{
		"cross-site": {"Sec-Fetch-Site": {"cross-site"}}, "same-site": {"Sec-Fetch-Site": {"same-site"}},
		"foreign origin": {"Sec-Fetch-Site": {""}, "Origin": {"https://evil.example"}},
		"null origin":    {"Sec-Fetch-Site": {""}, "Origin": {"null"}}, "silent": {"Sec-Fetch-Site": {""}, "Origin": {""}},
	} {
		v.header = header
		p := v.post("/console/b/lake/members", url.Values{"email": {"eve@example.com"}, "role": {"owner"}}, "")
		if p.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, p.status)
		}
	}
	v.header = http.Header{}
	if n := s.Count(t, `SELECT count(*) FROM invitations`); n != 0 {
		t.Errorf("%d invitations", n)
	}
}

// Only the pages that ask for a passkey may run script, and only from our files.
func TestScriptIsForPasskeysOnly(t *testing.T) {
	s := newSite(t)
	v := s.visitor(t)
	for path, want := range map[string]bool{"/console": false, "/console/signup": false, "/console/recover": false, "/console/login": true} {
		policy := v.open(path).header.Get("Content-Security-Policy")
		if strings.Contains(policy, "script-src 'self'") != want || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: %s", path, policy)
		}
	}
	v.open("/console/login").must(http.StatusOK, "need JavaScript")
}

// B95: the address is the trusted hop's word. Made-up headers and changing low bits
// of an IPv6 address share one budget; five hundred people behind one address have
// enough.
func TestFloodsAreStopped(t *testing.T) {
	s := newSite(t)
	refused := func(tries int) (count int) {
		for i := range tries {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/console/nowhere", nil)
			r.RemoteAddr = "198.51.100.7:1"
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i%256))
			w := httptest.NewRecorder()
			if s.handler.ServeHTTP(w, r); w.Code == http.StatusTooManyRequests {
				if w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "Too often") {
					t.Fatalf("refused without a word: %s", w.Body)
				}
				count++
			}
		}
		return count
	}
	if n := refused(500 * 10); n != 0 {
		t.Errorf("%d of 500 honest people's requests were refused", n)
	}
	if n := refused(console.FloodBurst); n == 0 {
		t.Error("made-up headers bought a budget of their own")
	}
}

// B117: a dashboard that stood open over night, in a browser whose clock is a day off,
// does nothing more: what is posted is not done, a page says that the login lapsed, and
// signing in leads back to where the person was. Our clock decides, to the second, and
// whoever goes on working is not thrown out.
func TestTheDashboardIsOpenOverNight(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	v.found("lake")
	const members = "/console/b/lake/members"
	v.header.Set("Date", s.Clock.Now().AddDate(0, 0, -1).UTC().Format(http.TimeFormat)) // the browser's clock, if it told
	form := with(v.open(members).must(http.StatusOK).fields(members), "email", "new@example.com", "role", "viewer")
	for range 3 { // somebody who works does not lapse
		s.Clock.Advance(web.ConsoleIdle - time.Second)
		v.open(members).must(http.StatusOK)
	}
	s.Clock.Advance(web.ConsoleIdle)
	p := v.post(members, form, members).must(http.StatusForbidden, "Please sign in again")
	if p.find("a", "href", "/console/login?back=%2Fconsole%2Fb%2Flake%2Fmembers") == nil {
		t.Error("the page does not lead back")
	}
	if n := s.Count(t, `SELECT count(*) FROM invitations`); n != 0 {
		t.Errorf("%d invitations by nobody", n)
	}
	p = v.open("/console/login?back=" + url.QueryEscape(members)).must(http.StatusOK)
	v.post("/console/login", with(p.fields("/console/login"), "credential", v.device.get(p.options())), "/console/login").mustGo(members)
	v.open(members).must(http.StatusOK)
}
