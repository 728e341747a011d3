package console_test

import (
	"context"
	"crypto"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/a2a"
	"countersign.dev/authority/oauth"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
)

// From nobody to a Brand that works, in one go.
func TestSignUpLeadsToABrand(t *testing.T) {
	s := newSite(t)
	v := s.visitor(t)
	v.open("/console").must(http.StatusOK, "/console/signup", "/console/login")
	v.useLink(v.signUp("Ann@Example.com"), "Ann").mustGo("/console/keys")
	v.open("/console/brands").mustGo("/console/keys") // nothing before a second way in
	codes := v.secure()
	if len(codes) != 10 {
		t.Fatalf("%d codes", len(codes))
	}
	p := v.open("/console/new").must(http.StatusOK, "Lake Ltd")
	if id := p.fields("/console/new").Get("id"); id != "cafe-du-lac" {
		t.Errorf("proposed %q", id)
	}
	brand := v.found("cafe-du-lac")
	b := s.Reload(t, brand)
	if b.State != tenants.Active || b.Organisation != "Lake Ltd" || b.Mode != tenants.Hosted ||
		b.InterfaceURL != origin+"/a2a/cafe-du-lac" || b.Audience != "https://provider.example" {
		t.Errorf("%+v", b)
	}
	if err := s.Keys.SelfTest(t.Context(), brand); err != nil {
		t.Error(err)
	}
	v.open("/console/b/cafe-du-lac/").must(http.StatusOK, "Signing key", "until your domain is proven", "Brand made", "Ann")
	v.open("/console/b/cafe-du-lac/members").must(http.StatusOK, "Ann@Example.com", "Owner")
	v.open("/console").mustGo("/console/brands")
}

// A letter that becomes another in lower case leads to nobody else's account: the
// address is refused, with the reason, and nothing is mailed.
func TestSignUpTakesPlainAddresses(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "kim@example.com", "Kim")
	owner.found("lake")
	s.drain(t)
	const kelvin = "\u212aim@example.com"
	v := s.visitor(t)
	form := url.Values{"organisation": {"Lake Ltd"}, "brand": {"Lake"}}
	for typed, say := range map[string]string{
		kelvin: "plain letters", "kim@ex\u00e4mple.com": "plain letters", "kim": "such as name@example.com",
	} {
		form.Set("email", typed)
		v.post("/console/signup", form, "/console/signup").must(http.StatusUnprocessableEntity, say)
	}
	v.post("/console/recover", url.Values{"email": {kelvin}}, "/console/recover").must(http.StatusUnprocessableEntity)
	owner.post(lake+"members", url.Values{"email": {kelvin}, "role": {"viewer"}}, "").must(http.StatusUnprocessableEntity, "plain letters")
	if n := s.Count(t, `SELECT count(*) FROM one_time_links WHERE email <> 'kim@example.com'`); n != 0 {
		t.Errorf("%d links", n)
	}
	v.signUp(strings.Repeat("k", 64) + "@" + strings.Repeat("e", 60) + ".example") // the mail goes to all of it
}

// A link works once: not twice, not in two browsers at a time, not too late; and
// looking at it spends nothing (R16).
func TestLinksWorkOnce(t *testing.T) {
	s := newSite(t)
	first, second := s.visitor(t), s.visitor(t)
	link := first.signUp("ann@example.com")
	for range 3 {
		first.open(link).must(http.StatusOK)
	}
	// The other browser has the page open before the first one is done.
	open := second.open(link).must(http.StatusOK)
	first.useLink(link, "Ann").mustGo("/console/keys")
	form := with(open.fields("/console/link"), "credential", second.device.create(open.options()))
	second.post("/console/link", form, link).must(http.StatusGone, "does not work")
	first.useLinkFails(link)
	second.useLinkFails(link)
	if n := s.Count(t, `SELECT count(*) FROM passkeys`); n != 1 {
		t.Errorf("%d passkeys", n)
	}

	late := s.visitor(t)
	link = late.signUp("ben@example.com")
	open = late.open(link)
	s.Clock.Advance(30 * time.Minute)
	late.useLinkFails(link)
	form = with(open.fields("/console/link"), "credential", late.device.create(open.options()))
	late.post("/console/link", form, link).must(http.StatusGone)
	second.open("/console/link?t=made-up").must(http.StatusGone)
	if n := s.Count(t, `SELECT count(*) FROM people`); n != 1 {
		t.Errorf("%d people", n)
	}
}

func (v *visitor) useLinkFails(link string) {
	v.t.Helper()
	v.open(link).must(http.StatusGone, "does not work")
}

// Two posts of one link at the same moment make one person.
func TestLinksWorkOnceInParallel(t *testing.T) {
	s := newSite(t)
	a, b := s.visitor(t), s.visitor(t)
	link := a.signUp("ann@example.com")
	var both sync.WaitGroup
	var won atomic.Int32
	forms := make(map[*visitor]url.Values)
	for _, v := range []*visitor{a, b} { // both look before either posts
		p := v.open(link)
		forms[v] = with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	}
	for v, form := range forms {
		both.Go(func() {
			if v.post("/console/link", form, link).status == http.StatusSeeOther {
				won.Add(1)
			}
		})
	}
	both.Wait()
	if n := s.Count(t, `SELECT count(*) FROM passkeys`); n != 1 || won.Load() != 1 {
		t.Errorf("%d passkeys, %d winners", n, won.Load())
	}
}

// A passkey made for one browser's page is nothing in another browser, nor for
// another link.
func TestCeremoniesStayInTheirBrowser(t *testing.T) {
	s := newSite(t)
	ann, eve := s.visitor(t), s.visitor(t)
	link := ann.signUp("ann@example.com")
	p := ann.open(link)
	form := with(p.fields("/console/link"), "credential", ann.device.create(p.options()))
	eve.open(link)
	eve.post("/console/link", form, link).must(http.StatusForbidden)
	s.visitor(t).post("/console/link", form, link).must(http.StatusBadRequest)

	other := eve.signUp("eve@example.com")
	p = eve.open(other)
	answer := eve.device.create(p.options())
	form = with(eve.open(other).fields("/console/link"), "credential", answer, "t", strings.TrimPrefix(link, "/console/link?t="))
	eve.post("/console/link", form, other).must(http.StatusBadRequest)
	// An answer that is ten minutes old is too old.
	p = ann.open(link)
	form = with(p.fields("/console/link"), "credential", ann.device.create(p.options()))
	s.Clock.Advance(10 * time.Minute)
	ann.post("/console/link", form, link).must(http.StatusBadRequest)
	if n := s.Count(t, `SELECT count(*) FROM people`); n != 0 {
		t.Errorf("%d people", n)
	}
}

// B99: whether there is an account changes neither words nor status nor what is
// asked of the database; the mail tells.
func TestNobodyLearnsWhoIsHere(t *testing.T) {
	s := newSite(t)
	s.become(t, "known@example.com", "Kim")
	s.drain(t)
	shape := func(p page, email string) string {
		return strings.ReplaceAll(p.body, email, "X") + p.header.Get("Set-Cookie")
	}
	for _, door := range []struct {
		path string
		form url.Values
		mail map[string]string
	}{
		{"/console/signup", url.Values{"organisation": {"L"}, "brand": {"B"}}, map[string]string{"known@example.com": "account already", "xnown@example.com": "link works once"}},
		{"/console/recover", url.Values{}, map[string]string{"known@example.com": "recovery code", "xnown@example.com": "There is none"}},
	} {
		var answers []string
		var links []int
		for _, email := range []string{"known@example.com", "xnown@example.com"} {
			before := s.Count(t, `SELECT count(*) FROM one_time_links`)
			p := s.visitor(t).post(door.path, with(door.form, "email", email), door.path)
			answers = append(answers, shape(p.must(http.StatusOK), email))
			links = append(links, s.Count(t, `SELECT count(*) FROM one_time_links`)-before)
			if m := s.letter(t); m.To != email || !strings.Contains(m.Text, door.mail[email]) {
				t.Errorf("%s to %s: %s", door.path, m.To, m.Text)
			}
		}
		if answers[0] != answers[1] {
			t.Errorf("%s tells the two apart:\n%s\n%s", door.path, answers[0], answers[1])
		}
		if links[0] != links[1] {
			t.Errorf("%s does more for one of them: %v", door.path, links)
		}
	}
}

// B95: one account's mailbox is not flooded, from however many addresses; and the
// next account is not concerned.
func TestOneMailboxIsNotFlooded(t *testing.T) {
	s := newSite(t)
	form := url.Values{"organisation": {"L"}, "brand": {"B"}, "email": {"ann@example.com"}}
	for i := range console.MailBurst + 1 {
		v := s.visitor(t)
		v.remote = fmt.Sprintf("192.0.2.%d:1", i+1)
		p := v.post("/console/signup", form, "/console/signup")
		if refused := p.status == http.StatusTooManyRequests; refused != (i == console.MailBurst) {
			t.Errorf("try %d: %d", i+1, p.status)
		} else if refused && p.header.Get("Retry-After") == "" {
			t.Error("not told when to come again")
		}
	}
	s.visitor(t).post("/console/signup", with(form, "email", "ben@example.com"), "").must(http.StatusOK)
	s.Clock.Advance(time.Hour)
	s.visitor(t).post("/console/signup", with(form, "email", "ANN@example.com"), "").must(http.StatusOK)
}

var idShape = regexp.MustCompile(`[0-9A-Z]{26}|[0-9a-f-]{36}`)

// B95: one address has us write to few people whom it names, whoever they are and by
// whichever door; a made-up header buys nothing, an IPv6 household is one, and all
// addresses together are bounded, each door by itself.
func TestStrangersHaveUsWriteToFew(t *testing.T) {
	s := newSite(t)
	s.become(t, "known@example.com", "Kim")
	s.Clock.Advance(time.Hour)
	sent := 0
	ask := func(remote, door, email string) page {
		v := s.visitor(t)
		v.remote = remote
		v.header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", sent%200))
		sent++
		return v.post("/console/"+door, url.Values{"organisation": {"L"}, "brand": {"B"}, "email": {email}}, "")
	}
	someone := func() string { return fmt.Sprintf("victim%d@example.com", sent) }
	for i := range console.Writers {
		ask(fmt.Sprintf("[2001:db8::%x]:1", i+1), []string{"signup", "recover"}[i%2], someone()).must(http.StatusOK)
	}
	letters := s.Count(t, `SELECT count(*) FROM one_time_links`)
	var refused []string
	for _, door := range []string{"signup", "recover"} {
		for _, email := range []string{"known@example.com", someone()} {
			p := ask("[2001:db8::ffff]:1", door, email).must(http.StatusTooManyRequests, "Too often")
			if p.header.Get("Retry-After") == "" {
				t.Error("not told when to come again")
			}
			main := p.body[strings.Index(p.body, "<main"):strings.Index(p.body, "</main>")]
			refused = append(refused, idShape.ReplaceAllString(main, ""))
		}
	}
	for _, one := range refused {
		if one != refused[0] {
			t.Errorf("two who are refused are told different things:\n%s\n%s", refused[0], one)
		}
	}
	if n := s.Count(t, `SELECT count(*) FROM one_time_links`); n != letters {
		t.Errorf("%d links for whoever was refused", n-letters)
	}
	ask("[2001:db8:0:1::1]:1", "signup", someone()).must(http.StatusOK) // the neighbours
	s.Clock.Advance(time.Hour / time.Duration(console.Writers))
	ask("[2001:db8::1]:1", "recover", someone()).must(http.StatusOK)

	s.Clock.Advance(time.Hour)
	for i := range console.AllWriters {
		ask(fmt.Sprintf("192.0.2.%d:1", i/console.Writers), "signup", someone()).must(http.StatusOK)
	}
	ask("192.0.2.200:1", "signup", someone()).must(http.StatusTooManyRequests)
	ask("192.0.2.201:1", "recover", "known@example.com").must(http.StatusOK)
}

// What is typed is checked, and never becomes part of a mail's head.
func TestSignUpIsChecked(t *testing.T) {
	s := newSite(t)
	v := s.visitor(t)
	good := func() url.Values {
		return url.Values{"organisation": {"L"}, "brand": {"B"}, "email": {"a@example.com"}}
	}
	for _, wrong := range [][]string{
		{"organisation", " \t "},
		{"brand", ""},
		{"brand", "\u200b\u202e"},
		{"email", ""},
		{"email", "ann"},
		{"email", "Ann <a@example.com>"},
		{"email", "a@example.com\r\nBcc: b@example.com"},
		{"email", "a@example.com,b@example.com"},
		{"email", strings.Repeat("a", 250) + "@example.com"},
	} {
		v.post("/console/signup", with(good(), wrong...), "").must(http.StatusUnprocessableEntity, "There is a problem")
	}
	twice := good()
	twice.Add("email", "b@example.com") // B100
	v.post("/console/signup", twice, "").must(http.StatusBadRequest)
	if n := s.Count(t, `SELECT count(*) FROM one_time_links`); n != 0 {
		t.Errorf("%d links", n)
	}
}

// An id is told to be taken, stays as it is, and is never taken over.
func TestBrandIDsAreUniqueForEver(t *testing.T) {
	s := newSite(t)
	v := s.become(t, "ann@example.com", "Ann")
	for id, words := range map[string]string{
		"harbor-hotel": "is taken", "Big": "small letters", "": "small letters", "a b": "small letters", "-a": "small letters", "../x": "small letters",
	} {
		form := url.Values{"organisation": {"L"}, "brand": {"B"}, "id": {id}}
		v.post("/console/new", form, "").must(http.StatusUnprocessableEntity, words)
	}
	if got := s.Reload(t, "harbor-hotel").Name; got != "Harbor Hotel" {
		t.Errorf("the hotel is called %s now", got)
	}
	v.open("/console/b/harbor-hotel/").must(http.StatusNotFound)
	if err := tenants.SetState(t.Context(), s.DB, "harbor-hotel", tenants.Closed); err != nil {
		t.Fatal(err)
	}
	v.post("/console/new", url.Values{"organisation": {"L"}, "brand": {"B"}, "id": {"harbor-hotel"}}, "").must(http.StatusUnprocessableEntity)
}

// away is a key store that can be away.
type away struct {
	signing.Backend
	down atomic.Bool
}

func (a *away) Create(ctx context.Context, b tenants.BrandID, v signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	if a.down.Load() {
		return nil, signing.ErrUnavailable
	}
	return a.Backend.Create(ctx, b, v, alg)
}

// R60, R83 (in part): with the signer away the Brand is made and waits; agents do
// not find it; upkeep makes the key when the signer is back.
func TestBrandWaitsForItsKey(t *testing.T) {
	store := &away{}
	s := newSite(t, func(c *console.Config) {
		store.Backend = local.New(c.DB, signing.NewMaster(), c.Now)
		c.Keys = signing.NewKeys(signing.Config{DB: c.DB, Backends: []signing.Backend{store}, Log: c.Log, Now: c.Now})
	})
	v := s.become(t, "ann@example.com", "Ann")
	store.down.Store(true)
	brand := v.found("lake")
	v.open("/console/b/lake/").must(http.StatusOK, "could not be made yet")
	if b := s.Reload(t, brand); b.State != tenants.Pending {
		t.Fatalf("state %s", b.State)
	}
	mux := http.NewServeMux()
	oauth.New(oauth.Config{Brands: s.Brands, Authority: s.Authority(nil), Keys: s.Keys, PublicURL: origin, Log: slog.New(slog.DiscardHandler)}).Routes(mux)
	a2a.New(s.Brands, slog.New(slog.DiscardHandler)).Routes(mux)
	found := func(want int) {
		t.Helper()
		for _, path := range []string{"/oauth/jwks.json", "/oauth/.well-known/oauth-authorization-server", "/.well-known/agent-card.json"} {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/a2a/lake"+path, nil))
			if w.Code != want {
				t.Errorf("%s: %d, want %d", path, w.Code, want)
			}
		}
		if want == http.StatusNotFound {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/a2a/lake/oauth/token", nil))
			if w.Code != want {
				t.Errorf("token: %d", w.Code)
			}
		}
	}
	found(http.StatusNotFound)
	// Nobody but the key opens it.
	if err := tenants.SetState(t.Context(), s.DB, brand, tenants.Active); err == nil {
		t.Error("an operator opened it without a key")
	}
	if err := s.console.Upkeep(t.Context(), brand); err == nil {
		t.Error("upkeep was content")
	}
	store.down.Store(false)
	if err := s.console.Upkeep(t.Context(), brand); err != nil {
		t.Fatal(err)
	}
	if b := s.Reload(t, brand); b.State != tenants.Active {
		t.Errorf("state %s", b.State)
	}
	found(http.StatusOK)
	// Also with a key: pending is pending.
	s.Exec(t, `UPDATE brands SET state = 'pending' WHERE id = 'lake'`)
	s.Reload(t, brand)
	found(http.StatusNotFound)
}

// Without a mail server nobody is sent to look into their mail.
func TestWithoutMailNobodySignsUp(t *testing.T) {
	s := newSite(t, func(c *console.Config) { c.Mail = nil })
	v := s.visitor(t)
	for _, path := range []string{"/console/signup", "/console/recover"} {
		v.open(path).must(http.StatusServiceUnavailable)
		v.post(path, url.Values{"organisation": {"L"}, "brand": {"B"}, "email": {"a@example.com"}}, "").must(http.StatusServiceUnavailable)
	}
}

// Names of all kinds make an id or none, and always one that may be used.
func TestProposedIDs(t *testing.T) {
	for name, want := range map[string]tenants.BrandID{
		"Harbor Hotel": "harbor-hotel", "Café du Nord": "cafe-du-nord", "Fern & Fell": "fern-fell", "Joe’s": "joes",
		"  --A--  ": "a", "東京": "", "": "", "Straße 7": "stra-e-7", strings.Repeat("ab ", 40): "ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-a",
	} {
		if got := tenants.ProposeID(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
