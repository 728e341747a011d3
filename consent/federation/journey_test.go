package federation

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/consent/federation/demoidp"
)

const (
	redirectURI  = "http://localhost:1/callback"
	clientSecret = "our-client-secret"
)

func startProvider(t *testing.T) *demoidp.Provider {
	t.Helper()
	p, err := demoidp.New(demoidp.Config{
		Name: "Harbor Hotel", ClientID: "countersign", ClientSecret: clientSecret, RedirectURIs: []string{redirectURI},
		Users: []demoidp.User{{
			Username: "alex", Password: "tide", Subject: "u-1", Name: "Alex Reed", Email: "alex@harbor.example",
			Claims: map[string]any{"customer_id": "C-77"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func connectionTo(p *demoidp.Provider) Connection {
	return Connection{
		Issuer: p.Issuer(), ClientID: "countersign", ClientSecret: clientSecret,
		Scopes: []string{"profile", "email"}, AllowLoopbackHTTP: true,
	}
}

// clock is turned by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClient(t *testing.T, now *clock) *Client {
	t.Helper()
	life, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return New(Config{HTTP: &http.Client{Transport: transport}, Now: now.Now, Context: life})
}

func begin() BeginParams {
	return BeginParams{RedirectURI: redirectURI, State: "the-state", Nonce: "the-nonce", Verifier: strings.Repeat("v", 43)}
}

func finish(b BeginParams, query url.Values, now *clock) FinishParams {
	return FinishParams{
		Query: query, State: b.State, Nonce: b.Nonce, Verifier: b.Verifier,
		RedirectURI: b.RedirectURI, Fresh: b.Fresh, StartedAt: now.Now(),
	}
}

// answer takes a person through Begin and the provider, and returns what comes back.
func answer(t *testing.T, c *Client, conn Connection, b BeginParams, v *demoidp.Visitor) url.Values {
	t.Helper()
	to, err := c.Begin(t.Context(), conn, b)
	if err != nil {
		t.Fatal(err)
	}
	back, err := v.SignIn(t.Context(), to, "alex", "tide")
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

// logIn goes the whole way.
func logIn(t *testing.T, c *Client, conn Connection, now *clock) (Identity, error) {
	t.Helper()
	b := begin()
	query := answer(t, c, conn, b, demoidp.NewVisitor())
	id, err := c.Finish(t.Context(), conn, finish(b, query, now))
	quiet(t, err, query.Get("code"))
	return id, err
}

// quiet holds the package to its promise: errors may be logged (R40).
func quiet(t *testing.T, err error, more ...string) {
	t.Helper()
	if err == nil {
		return
	}
	for _, secret := range append(more, clientSecret, "the-state", "the-nonce", "vvvv", "alex", "u-1", "C-77", "CANARY") {
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("the error says %q: %v", secret, err)
		}
	}
}

func is(t *testing.T, what string, err, want error) {
	t.Helper()
	quiet(t, err)
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

func TestAPersonLogsInAtTheirBrand(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)

	id, err := logIn(t, c, conn, now)
	if err != nil {
		t.Fatal(err)
	}
	if id.Subject != "u-1" || id.Account != "alex@harbor.example" || id.AuthTime.IsZero() {
		t.Errorf("got %+v", id)
	}
	// The Brand's settings say which claim is its id of the person.
	conn.SubjectClaim = "customer_id"
	if id, err = logIn(t, c, conn, now); err != nil || id.Subject != "C-77" {
		t.Errorf("got %+v, error %v", id, err)
	}
	conn.SubjectClaim = "loyalty_number"
	_, err = logIn(t, c, conn, now)
	is(t, "a claim that is not sent", err, ErrMisconfigured)
	// R68: addresses change hands.
	conn.SubjectClaim = "email"
	_, err = c.Finish(t.Context(), conn, FinishParams{Nonce: "n", Verifier: "v"})
	is(t, "e-mail as id", err, ErrMisconfigured)
	is(t, "e-mail as id at set-up", c.Check(t.Context(), conn), ErrMisconfigured)
}

func TestBeginAsksForWhatTheLoginNeeds(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) {
		d["authorization_endpoint"] = p.Issuer() + "/authorize?realm=hotel"
	}})
	c, conn := newClient(t, now), connectionTo(p)
	conn.Scopes = []string{"email", "openid", "email"}
	b := begin()
	b.UILocales = "de en"
	to, err := c.Begin(t.Context(), conn, b)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"realm": "hotel", "client_id": "countersign", "response_type": "code", "redirect_uri": redirectURI, "scope": "openid email",
		"state": b.State, "nonce": b.Nonce, "code_challenge_method": "S256", "ui_locales": "de en", "prompt": "", "max_age": "",
	} {
		if got := q.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if q.Get("code_challenge") == b.Verifier || strings.Contains(to, clientSecret) {
		t.Errorf("a secret is in %s", to)
	}
	b.Fresh = true
	to, err = c.Begin(t.Context(), conn, b)
	if err != nil || !strings.Contains(to, "prompt=login") || !strings.Contains(to, "max_age=0") {
		t.Errorf("fresh: %s, error %v", to, err)
	}
	b.Nonce = ""
	if _, err := c.Begin(t.Context(), conn, b); err == nil {
		t.Error("began without a nonce")
	}
}

// R72: what the browser was sent with can be changed on the way; auth_time cannot.
func TestAFreshLoginIsProvedByTheProvider(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn, v := newClient(t, now), connectionTo(p), demoidp.NewVisitor()
	b := begin()
	answer(t, c, conn, b, v) // there is a session at the provider now
	b.Fresh = true
	if _, err := c.Finish(t.Context(), conn, finish(b, answer(t, c, conn, b, v), now)); err != nil {
		t.Fatalf("a fresh login: %v", err)
	}
	started := now.Now()
	for _, tt := range []struct {
		name string
		at   any
		want error
	}{
		{"29 s before", started.Add(-29 * time.Second).Unix(), nil},
		{"32 s before", started.Add(-32 * time.Second).Unix(), ErrInvalid},
		{"an hour before", started.Add(-time.Hour).Unix(), ErrInvalid},
		{"32 s after", started.Add(32 * time.Second).Unix(), ErrInvalid},
		{"not said", nil, ErrInvalid},
		{"as text", "now", ErrInvalid},
	} {
		p.SetFaults(demoidp.Faults{EditIDToken: func(c map[string]any) {
			c["auth_time"] = tt.at
			if tt.at == nil {
				delete(c, "auth_time")
			}
		}})
		_, err := c.Finish(t.Context(), conn, finish(b, answer(t, c, conn, b, v), now))
		is(t, tt.name, err, tt.want)
	}
	// Without Fresh an old session is good enough.
	b.Fresh = false
	p.SetFaults(demoidp.Faults{EditIDToken: func(c map[string]any) { c["auth_time"] = started.Add(-time.Hour).Unix() }})
	_, err := c.Finish(t.Context(), conn, finish(b, answer(t, c, conn, b, v), now))
	is(t, "an old session", err, nil)
	b.Fresh = true
	if _, err := c.Finish(t.Context(), conn, FinishParams{Query: url.Values{}, Nonce: "n", Verifier: "v", Fresh: true}); err == nil {
		t.Error("a fresh login without its start")
	}
}

// R67: state, nonce and verifier bind the answer to this browser's login.
func TestAnAnswerCountsForItsOwnLoginOnly(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	b := begin()
	for _, tt := range []struct {
		name string
		edit func(*FinishParams)
		want error
		sent bool // whether the code reached the provider
	}{
		{"another state", func(f *FinishParams) { f.State = "other" }, ErrInvalid, false},
		{"no state kept", func(f *FinishParams) { f.State = ""; f.Query.Del("state") }, ErrInvalid, false},
		{"no state", func(f *FinishParams) { f.Query.Del("state") }, ErrInvalid, false},
		{"two states", func(f *FinishParams) { f.Query.Add("state", f.State) }, ErrInvalid, false},
		{"two codes", func(f *FinishParams) { f.Query.Add("code", "x") }, ErrInvalid, false},
		{"no code", func(f *FinishParams) { f.Query.Del("code") }, ErrInvalid, false},
		{"a huge code", func(f *FinishParams) { f.Query.Set("code", strings.Repeat("x", longestCode+1)) }, ErrInvalid, false},
		{"another provider's iss", func(f *FinishParams) { f.Query.Set("iss", "https://other.example") }, ErrInvalid, false},
		{"iss with a slash", func(f *FinishParams) { f.Query.Set("iss", p.Issuer()+"/") }, ErrInvalid, false},
		{"iss left out", func(f *FinishParams) { f.Query.Del("iss") }, ErrInvalid, false},
		{"another nonce", func(f *FinishParams) { f.Nonce = "other" }, ErrInvalid, true},
		{"another verifier", func(f *FinishParams) { f.Verifier = strings.Repeat("w", 43) }, ErrRefused, true},
		{"another redirect", func(f *FinishParams) { f.RedirectURI += "/" }, ErrRefused, true},
		{"a made-up code", func(f *FinishParams) { f.Query.Set("code", "CANARY") }, ErrRefused, true},
		{"nothing wrong", func(*FinishParams) {}, nil, true},
	} {
		f := finish(b, answer(t, c, conn, b, demoidp.NewVisitor()), now)
		before := p.Hits(demoidp.PathToken)
		tt.edit(&f)
		_, err := c.Finish(t.Context(), conn, f)
		is(t, tt.name, err, tt.want)
		if sent := p.Hits(demoidp.PathToken) > before; sent != tt.sent {
			t.Errorf("%s: code sent is %v", tt.name, sent)
		}
	}
	f := finish(b, answer(t, c, conn, b, demoidp.NewVisitor()), now)
	if _, err := c.Finish(t.Context(), conn, f); err != nil {
		t.Fatal(err)
	}
	_, err := c.Finish(t.Context(), conn, f)
	is(t, "the same answer again", err, ErrRefused)

	// A provider that does not promise iss may leave it out.
	p.SetFaults(demoidp.Faults{OmitIssuer: true, EditDiscovery: func(d map[string]any) {
		delete(d, "authorization_response_iss_parameter_supported")
	}})
	_, err = logIn(t, newClient(t, now), conn, now)
	is(t, "no iss promised", err, nil)
}

// R67: with two Brands, the code of one must not be carried to the other.
func TestProvidersAreNotMixedUp(t *testing.T) {
	t.Parallel()
	harbor, attacker, now := startProvider(t), startProvider(t), newClock()
	c := newClient(t, now)
	b := begin()
	query := answer(t, c, connectionTo(harbor), b, demoidp.NewVisitor())
	_, err := c.Finish(t.Context(), connectionTo(attacker), finish(b, query, now))
	is(t, "harbor's answer at the attacker's", err, ErrInvalid)
	if attacker.Hits(demoidp.PathToken) != 0 {
		t.Error("the attacker got harbor's code")
	}
}

// B01, B56: whatever the provider answers becomes one of few codes.
func TestARefusalCarriesACodeAndNoWords(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	b := begin()
	for sent, want := range map[string]string{
		"access_denied": "access_denied", "server_error": "server_error", "login_required": "login_required",
		"temporarily_unavailable": "temporarily_unavailable", "CANARY": "other", "<script>": "other", "": "other",
	} {
		query := url.Values{"error": {sent}, "error_description": {"CANARY <b>alex</b>"}, "state": {b.State}, "iss": {p.Issuer()}}
		_, err := c.Finish(t.Context(), conn, finish(b, query, now))
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Code != want || !errors.Is(err, ErrRefused) {
			t.Errorf("%q: error %v", sent, err)
		}
		quiet(t, err)
	}
	_, err := c.Finish(t.Context(), conn, finish(b, url.Values{"error": {"access_denied"}}, now))
	is(t, "an error without state", err, ErrInvalid)
	p.SetFaults(demoidp.Faults{AuthorizeError: "access_denied", AuthorizeErrorDescription: "CANARY"})
	_, err = logIn(t, c, conn, now)
	is(t, "refused there", err, ErrRefused)
}
