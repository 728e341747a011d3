package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/events"
	"countersign.dev/authority/oauth"
	"countersign.dev/authority/tryout"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"countersign.dev/tenants/egress"
)

// service stands for the network between the test agent and the Brands' public
// URLs.
type service struct{ handler http.Handler }

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), r.Body)
	in.Header = r.Header
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, in)
	return w.Result(), nil
}

// wireTry gives the dashboard a test agent, and the Brands' machine routes, which
// it calls.
func (s *site) wireTry(t *testing.T, c *console.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	keys := httptest.NewServer(mux)
	t.Cleanup(keys.Close)
	doors := http.NewServeMux()
	tester, err := tryout.New(tryout.Config{Issuer: keys.URL, Key: key, HTTP: &http.Client{Transport: service{doors}}, Now: s.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		jwks, err := tester.JWKS()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(jwks)
	})
	registry := agent.NewRegistry(agent.RegistryConfig{DB: s.DB.Pool(), AllowLoopback: true, Now: s.Clock.Now})
	err = registry.Register(t.Context(), agent.Agent{Issuer: tester.Issuer, JWKSURI: tester.JWKSURI(), Name: "Test agent", Enabled: true, Test: true})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	oauth.New(oauth.Config{
		Brands: s.Brands, Authority: s.Authority(nil), Keys: s.Keys, Credentials: tenants.NewCredentials(s.DB, s.Clock.Now),
		PublicURL: origin, Log: log,
		Agents: agent.NewVerifier(agent.Config{
			Registry: registry, Fetch: egress.New(egress.Config{AllowLoopback: true}), Now: s.Clock.Now, Log: log,
		}),
	}).Routes(doors)
	a2a.New(s.Brands, log).Routes(doors)
	c.Tester = tester
	if c.Outbox, err = events.NewOutbox(s.DB, s.Clock.Now); err != nil {
		t.Fatal(err)
	}
}

// mustNot fails where the page says one of the words.
func (p page) mustNot(words ...string) page {
	p.t.Helper()
	for _, w := range words {
		if strings.Contains(p.body, w) {
			p.t.Errorf("%q is on the page", w)
		}
	}
	return p
}
