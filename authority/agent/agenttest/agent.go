package agenttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"github.com/go-jose/go-jose/v4"
)

// Audience is what tokens are for unless they say otherwise.
const Audience = "https://provider.example"

// PA is a personal agent. Its fields may be changed before it is used.
type PA struct {
	Issuer   string
	JWKSURI  string
	Name     string
	Audience string           // default of Claims.Aud
	Now      func() time.Time // default of Claims.IssuedAt

	mu      sync.Mutex
	key     *ecdsa.PrivateKey
	kid     string
	serve   http.HandlerFunc
	fetches int
	config  map[string]any
	looks   int
}

// New starts an agent that publishes one ES256 key. It ends with the test.
func New(t testing.TB) *PA {
	t.Helper()
	p := &PA{Name: "Aria", Audience: Audience, Now: time.Now}
	server := httptest.NewServer(http.HandlerFunc(p.serveJWKS))
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	p.JWKSURI = server.URL + "/jwks.json"
	p.Rotate(t)
	return p
}

// Agent is the agent as one registers it, enabled.
func (p *PA) Agent() agent.Agent {
	return agent.Agent{Issuer: p.Issuer, JWKSURI: p.JWKSURI, Name: p.Name, Enabled: true}
}

// Rotate makes a new key, signs with it from now on and publishes it alone.
func (p *PA) Rotate(t testing.TB) {
	t.Helper()
	key := NewKey(t)
	p.Use(key, rand.Text())
	p.Publish(p.PublicJWK())
}

// Use signs with the key from now on. It does not publish it.
func (p *PA) Use(key *ecdsa.PrivateKey, kid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, kid
}

// Key is the key that signs, and its kid.
func (p *PA) Key() (*ecdsa.PrivateKey, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key, p.kid
}

// PublicJWK is the public half of the key that signs.
func (p *PA) PublicJWK() jose.JSONWebKey {
	key, kid := p.Key()
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"}
}

// Publish makes these the published keys: a jose.JSONWebKey, or a map where a
// strange one is wanted.
func (p *PA) Publish(keys ...any) {
	if keys == nil {
		keys = []any{}
	}
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err) // only a test can have caused it
	}
	p.Serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(body)
	})
}

// Serve answers requests for the published keys with h from now on.
func (p *PA) Serve(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve = h
}

// Break answers requests for the published keys with 500 from now on.
func (p *PA) Break() {
	p.Serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
}

// Fetches is how often the published keys have been asked for.
func (p *PA) Fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// Describe publishes OpenID Provider metadata: issuer and jwks_uri, as changed by
// the members given. nil ones are left out.
func (p *PA) Describe(members map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config = map[string]any{"issuer": p.Issuer, "jwks_uri": p.JWKSURI}
	for name, value := range members {
		if p.config[name] = value; value == nil {
			delete(p.config, name)
		}
	}
}

// Looks is how often the metadata has been asked for.
func (p *PA) Looks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks
}

func (p *PA) serveConfig(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.looks++
	config := p.config
	p.mu.Unlock()
	if config == nil {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(config)
}

func (p *PA) serveJWKS(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/.well-known/openid-configuration" {
		p.serveConfig(w, r)
		return
	}
	p.mu.Lock()
	p.fetches++
	serve := p.serve
	p.mu.Unlock()
	serve(w, r)
}

// NewKey makes a P-256 key.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
