package console_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/consent"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"countersign.dev/tenants/mail"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"golang.org/x/net/html"
)

const (
	origin     = authoritytest.PublicURL
	relying    = "countersign.example"
	cookieName = "__Host-countersign-console"
)

// site is the dashboard over a World, with a mail server that hands everything to
// the test.
type site struct {
	*authoritytest.World
	console *console.Handler
	handler http.Handler
	letters chan mail.Message
	log     *lockedBuffer

	published *outside
	asks      *tenants.Asks
	trials    tenants.Trials
	tried     tenants.AgentTried // what a test call of the Brand's agent comes to
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Send implements mail.Sender.
func (s *site) Send(_ context.Context, m mail.Message) error {
	s.letters <- m
	return nil
}

func newSite(t *testing.T, change ...func(*console.Config)) *site {
	t.Helper()
	s := &site{World: authoritytest.New(t), letters: make(chan mail.Message, 1000), log: &lockedBuffer{}}
	catalogue, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := console.Config{
		Authority: authority.New(authority.Config{DB: s.DB, Signer: s.Keys, Verifier: s.Keys, Master: s.Master, Now: s.Clock.Now, Trace: web.RequestID}),
		Brands:    s.Brands, DB: s.DB, Keys: s.Keys,
		Policy: func(*tenants.Brand) signing.Policy {
			return signing.Policy{Every: time.Hour, Alg: signing.ES256, Backend: "local"}
		},
		Sessions: web.NewConsoleStore(s.DB.Pool(), s.Clock.Now), Catalogue: catalogue, Mail: s, Provider: "demo",
		Site:    tenants.Site{PublicURL: origin},
		Preview: consent.New(consent.Config{Catalogue: catalogue, PublicURL: origin, Now: s.Clock.Now}).Preview,
		TryAgent: func(ctx context.Context, brand tenants.BrandID) (tenants.AgentTried, error) {
			_, err := tenants.AgentEndpointOf(ctx, s.DB, brand)
			return s.tried, err
		},
		PublicURL: origin, CookieName: cookieName, Now: s.Clock.Now, Log: log,
	}
	s.setUp(t, &c)
	s.wireTry(t, &c)
	for _, f := range change {
		f(&c)
	}
	if s.console, err = console.New(c); err != nil {
		t.Fatal(err)
	}
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(origin); err != nil {
		t.Fatal(err)
	}
	s.handler = web.Chain(s.console, web.Record(log, s.Clock.Now), web.PageHeaders, protection.Handler)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.console.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// letter waits for the next mail.
func (s *site) letter(t *testing.T) mail.Message {
	t.Helper()
	select {
	case m := <-s.letters:
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("no mail came")
		return mail.Message{}
	}
}

var linkShape = regexp.MustCompile(`https://countersign\.example(/console/link\?t=\w+)`)

// linkTo waits for mail to the address that holds a one-time link, whatever other
// mail comes before, and returns the link's path.
func (s *site) linkTo(t *testing.T, email string) string {
	t.Helper()
	for {
		m := s.letter(t)
		if found := linkShape.FindStringSubmatch(m.Text); found != nil && strings.EqualFold(m.To, email) {
			return found[1]
		}
	}
}

// visitor is somebody with a browser and a device of their own.
type visitor struct {
	t      *testing.T
	site   *site
	jar    *cookiejar.Jar
	device *authenticator
	header http.Header // on every request
	remote string
}

func (s *site) visitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, site: s, jar: jar, device: newAuthenticator(t, origin, relying), header: http.Header{}, remote: "192.0.2.1:4000"}
}

// page is what the browser shows.
type page struct {
	t        *testing.T
	status   int
	header   http.Header
	location string
	body     string
	root     *html.Node
}

func (v *visitor) do(r *http.Request) page {
	v.t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.jar.Cookies(u) {
		r.AddCookie(c)
	}
	for name, values := range v.header {
		r.Header[name] = values
	}
	r.RemoteAddr = v.remote
	w := httptest.NewRecorder()
	v.site.handler.ServeHTTP(w, r)
	resp := w.Result()
	defer resp.Body.Close()
	v.jar.SetCookies(u, resp.Cookies())
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	said := strings.ReplaceAll(string(body), "<wbr>", "") // where long words may break
	return page{v.t, resp.StatusCode, resp.Header, resp.Header.Get("Location"), said, root}
}

func (v *visitor) open(path string) page {
	v.t.Helper()
	return v.do(httptest.NewRequestWithContext(v.t.Context(), http.MethodGet, origin+path, nil))
}

// post sends a form as a page of ours would. from is that page; it may be empty.
func (v *visitor) post(path string, form url.Values, from string) page {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), http.MethodPost, origin+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if from != "" {
		r.Header.Set("Referer", origin+from)
	}
	return v.do(r)
}

// find returns the first element with the tag that has the attribute; a value is
// not demanded where it is empty.
func (p page) find(tag, attribute, value string) *html.Node {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == tag {
			if got, ok := attr(n, attribute); ok && (value == "" || got == value) {
				return n
			}
		}
	}
	return nil
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// options are what the page's passkey form hands to the browser.
func (p page) options() string {
	p.t.Helper()
	n := p.find("form", "data-options", "")
	if n == nil {
		p.t.Fatalf("status %d: no passkey is asked for\n%s", p.status, p.body)
	}
	v, _ := attr(n, "data-options")
	return v
}

// fields are the form's hidden and filled values.
func (p page) fields(action string) url.Values {
	p.t.Helper()
	form := p.find("form", "action", action)
	if form == nil {
		p.t.Fatalf("status %d: no form for %s\n%s", p.status, action, p.body)
	}
	out := url.Values{}
	for n := range form.Descendants() {
		if name, ok := attr(n, "name"); ok && n.Data == "input" {
			value, _ := attr(n, "value")
			out.Set(name, value)
		}
	}
	return out
}

// with sets values and returns the form.
func with(form url.Values, pairs ...string) url.Values {
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

func (p page) must(status int, words ...string) page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("status %d (to %s), want %d\n%s", p.status, p.location, status, p.body)
	}
	for _, w := range words {
		if !strings.Contains(p.body, w) {
			p.t.Errorf("%q is not on the page\n%s", w, p.body)
		}
	}
	return p
}

func (p page) mustGo(to string) page {
	p.t.Helper()
	if p.must(http.StatusSeeOther); p.location != to {
		p.t.Fatalf("sent to %s, want %s", p.location, to)
	}
	return p
}

// signUp asks for a link and returns its path.
func (v *visitor) signUp(email string) string {
	v.t.Helper()
	form := url.Values{"organisation": {"Lake Ltd"}, "brand": {"Café du Lac"}, "email": {email}}
	v.post("/console/signup", form, "/console/signup").must(http.StatusOK, "Look into your mail")
	return v.site.linkTo(v.t, email)
}

// useLink makes a passkey by the link.
func (v *visitor) useLink(link, name string) page {
	v.t.Helper()
	p := v.open(link).must(http.StatusOK)
	form := with(p.fields("/console/link"), "name", name, "credential", v.device.create(p.options()))
	return v.post("/console/link", form, link)
}

// secure prints codes and says so.
func (v *visitor) secure() (codes []string) {
	v.t.Helper()
	p := v.post("/console/keys/codes", nil, "/console/keys").must(http.StatusOK)
	list := p.find("ul", "class", "codes")
	for n := range list.Descendants() {
		if n.Type == html.TextNode && strings.Contains(n.Data, "-") {
			codes = append(codes, n.Data)
		}
	}
	v.post("/console/keys/kept", url.Values{"kept": {"yes"}}, "/console/keys").must(http.StatusSeeOther)
	return codes
}

// become takes a newcomer all the way to an account of their own.
func (s *site) become(t *testing.T, email, name string) *visitor {
	t.Helper()
	v := s.visitor(t)
	v.useLink(v.signUp(email), name).mustGo("/console/keys")
	v.secure()
	return v
}

// found makes the visitor's Brand.
func (v *visitor) found(id string) tenants.BrandID {
	v.t.Helper()
	form := url.Values{"organisation": {"Lake Ltd"}, "brand": {"Café du Lac"}, "id": {id}}
	v.post("/console/new", form, "/console/new").mustGo("/console/b/" + id + "/")
	v.site.Brands.Forget(tenants.BrandID(id))
	return tenants.BrandID(id)
}

func (v *visitor) login() page {
	v.t.Helper()
	p := v.open("/console/login").must(http.StatusOK)
	return v.post("/console/login", with(p.fields("/console/login"), "credential", v.device.get(p.options())), "/console/login")
}

// touch makes the passkey's touch a fresh one.
func (v *visitor) touch() page {
	v.t.Helper()
	p := v.open("/console/touch").must(http.StatusOK)
	return v.post("/console/touch", with(p.fields("/console/touch"), "credential", v.device.get(p.options())), "/console/touch")
}

// invite asks somebody else in and returns the link.
func (v *visitor) invite(brand tenants.BrandID, email string, role tenants.Role) string {
	v.t.Helper()
	at := "/console/b/" + string(brand) + "/members"
	v.post(at, url.Values{"email": {email}, "role": {string(role)}}, at).mustGo(at + "?invited")
	return v.site.linkTo(v.t, email)
}

// drain forgets the mail that has come so far.
func (s *site) drain(t *testing.T) {
	t.Helper()
	// A notice that is on its way would come after.
	for s.Count(t, `SELECT count(*) FROM notices WHERE sent_at IS NULL`) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	for {
		select {
		case <-s.letters:
		default:
			return
		}
	}
}

// cookie is the session's, as the browser keeps it.
func (v *visitor) cookie() string {
	v.t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.jar.Cookies(u) {
		if c.Name == cookieName {
			return c.Value
		}
	}
	return ""
}
