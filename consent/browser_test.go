package consent_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/consent"
	"countersign.dev/consent/federation"
	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"github.com/google/uuid"
	"golang.org/x/net/html"
)

// site is the person's pages over a World, with a real OpenID provider for the
// hotel and another for the shop.
type site struct {
	*authoritytest.World
	rules *authority.Authority
	url   string
	idp   map[tenants.BrandID]*demoidp.Provider
	logs  *lockedBuffer

	handler *consent.Handler
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

const cookieName = "__Host-countersign"

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{World: authoritytest.NewAt(t, time.Now()), idp: make(map[tenants.BrandID]*demoidp.Provider), logs: &lockedBuffer{}}
	s.rules = s.Authority(nil)
	catalogue, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	log := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	handler := consent.New(consent.Config{
		Authority: s.rules, Brands: s.Brands, DB: s.DB, Sealer: s.Master,
		Federation: federation.New(federation.Config{
			HTTP: egress.New(egress.Config{AllowLoopback: true}).HTTP(), Now: s.Clock.Now, Context: t.Context(),
		}),
		Sessions: web.NewStore(s.DB.Pool(), s.Clock.Now), Catalogue: catalogue,
		MAC: func(brand tenants.BrandID, purpose string, data []byte) ([]byte, error) {
			return s.Master.MAC(s.Master.Version(), brand, purpose, data)
		},
		PublicURL: s.url, CookieName: cookieName, DevHTTP: true, Now: s.Clock.Now, Log: log,
		Tried: func(brand tenants.BrandID, answer url.Values) string {
			return "/tried/" + string(brand) + "?" + answer.Encode()
		},
	})
	s.handler = handler
	handler.Routes(mux)
	mux.HandleFunc("/", handler.NotFound)
	server.Config.Handler = web.Chain(mux, web.Record(log, s.Clock.Now), web.Recover(log, handler.Failed), web.PageHeaders)
	for _, b := range []*tenants.Brand{s.Hotel, s.Shop} {
		s.connect(t, b)
	}
	return s
}

// connect gives the Brand a provider with two people.
func (s *site) connect(t *testing.T, b *tenants.Brand) {
	t.Helper()
	idp, err := demoidp.New(demoidp.Config{
		Name: b.Name, ClientID: "countersign", ClientSecret: "secret", RedirectURIs: []string{s.pages(b, "callback")}, Now: s.Clock.Now,
		Users: []demoidp.User{
			{Username: "alex", Password: "demo", Subject: "login-alex", Email: "alex@example.com", Claims: map[string]any{"number": string(b.ID) + "-7"}},
			{Username: "sam", Password: "demo", Subject: "login-sam", Email: "sam@example.com", Claims: map[string]any{"number": string(b.ID) + "-8"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := idp.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = idp.Close() })
	s.idp[b.ID] = idp
	err = tenants.SaveLogin(t.Context(), s.DB, s.Master, b.ID, tenants.LoginConnection{
		ID: uuid.New(), Issuer: idp.Issuer(), ClientID: "countersign", ClientSecret: "secret",
		SubjectClaim: "number", Scopes: []string{"openid", "email"},
	}, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) pages(b *tenants.Brand, name string) string {
	return s.url + "/b/" + string(b.ID) + "/" + name
}

// link is the complete link of a request.
func (s *site) link(b *tenants.Brand, started authority.Started) string {
	return s.pages(b, "device") + "?user_code=" + started.UserCode.String()
}

// person is somebody with a browser that knows no script.
type person struct {
	t      *testing.T
	client *http.Client
	header http.Header
}

func (s *site) person(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test's own server
	t.Cleanup(transport.CloseIdleConnections)
	return &person{t: t, client: &http.Client{Jar: jar, Transport: transport}, header: http.Header{}}
}

// page is what the browser shows.
type page struct {
	status int
	header http.Header
	url    *url.URL
	body   string
	root   *html.Node
}

func (p *person) do(req *http.Request) page {
	p.t.Helper()
	for name, values := range p.header {
		if req.Header.Get(name) == "" {
			req.Header[name] = values
		}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	return page{resp.StatusCode, resp.Header, resp.Request.URL, string(body), root}
}

func (p *person) open(to string) page {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, to, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.do(req)
}

// post sends a form as a page of ours would.
func (p *person) post(to string, form url.Values) page {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.header.Get("Sec-Fetch-Site") == "" && p.header.Get("Origin") == "" {
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return p.do(req)
}

func walk(n *html.Node, see func(*html.Node)) {
	see(n)
	for c := range n.ChildNodes() {
		walk(c, see)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// all returns the elements with the tag.
func (g page) all(tag string) []*html.Node {
	var out []*html.Node
	walk(g.root, func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == tag {
			out = append(out, n)
		}
	})
	return out
}

// way returns the address of the link whose address holds part.
func (g page) way(t *testing.T, part string) string {
	t.Helper()
	for _, a := range g.all("a") {
		if href := attr(a, "href"); strings.Contains(href, part) && !strings.Contains(href, "ui_locales") {
			return g.url.ResolveReference(must(url.Parse(href))).String()
		}
	}
	t.Fatalf("no link with %q on\n%s", part, g.text())
	return ""
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (g page) text() string {
	var b strings.Builder
	walk(g.root, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(strings.TrimSpace(n.Data) + " ")
		}
	})
	return b.String()
}

// form reads the page's form as it would be sent untouched, without a button.
func (g page) form(t *testing.T) (action string, values url.Values) {
	t.Helper()
	values = url.Values{}
	for _, in := range g.all("input") {
		kind := attr(in, "type")
		if (kind == "checkbox" || kind == "radio") && !has(in, "checked") {
			continue
		}
		if name := attr(in, "name"); name != "" {
			values.Add(name, attr(in, "value"))
		}
	}
	for _, f := range g.all("form") {
		if strings.EqualFold(attr(f, "method"), "post") {
			return g.url.ResolveReference(must(url.Parse(attr(f, "action")))).String(), values
		}
	}
	t.Fatalf("no form on\n%s", g.text())
	return "", nil
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// asks reports whether the page holds any decision control or checkbox.
func (g page) asks() bool {
	for _, n := range append(g.all("button"), g.all("input")...) {
		if attr(n, "name") == "decision" || attr(n, "name") == "scope" || attr(n, "type") == "checkbox" {
			return true
		}
	}
	return false
}

// signIn goes through the provider's form; g is the page before it.
func (p *person) signIn(g page, username string) page {
	p.t.Helper()
	there := p.open(g.way(p.t, "/login?"))
	if there.url.Scheme == "https" {
		return there // no sign-in was needed
	}
	action, values := there.form(p.t)
	values.Set("username", username)
	values.Set("password", "demo")
	return p.post(action, values)
}

// ask brings a person from the link to the question.
func (s *site) ask(t *testing.T, p *person, b *tenants.Brand, started authority.Started, username string) page {
	t.Helper()
	g := p.signIn(p.open(s.link(b, started)), username)
	if g.status != http.StatusOK || !g.asks() {
		t.Fatalf("no question: %d %s\n%s", g.status, g.url.Path, g.text())
	}
	return g
}

// state is how a request stands.
func (s *site) state(t *testing.T, b *tenants.Brand, started authority.Started) string {
	t.Helper()
	q, err := s.rules.Ask(t.Context(), b.ID, started.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	return q.State
}
