package verify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/statuslist"
)

// site is a server on loopback, what it serves, and how often it was asked. It
// plays the authority or an agent: a double with real keys. What the real ones
// answer is tested against the product itself, in e2e.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]http.HandlerFunc
	asked map[string]int
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{pages: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.Path]++
		page := s.pages[r.URL.Path]
		s.mu.Unlock()
		if page == nil {
			http.NotFound(w, r)
			return
		}
		page(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) serve(path string, page http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
}

func (s *site) text(path, body string) {
	s.serve(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
}

func (s *site) fails(path string) {
	s.serve(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
}

func (s *site) times(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// scene is a Brand's door with a kit, an authority and an agent.
type scene struct {
	t         testing.TB
	clock     atomic.Int64 // seconds after noon
	authority *site
	brand     signer
	agent     *site
	pa        signer
	list      statuslist.List
	door      *Verifier
}

const provider = "https://provider.example"

func newScene(t testing.TB, change ...func(*Config, *AgentsConfig)) *scene {
	t.Helper()
	s := &scene{t: t, authority: newSite(t), brand: newSigner(t), agent: newSite(t), pa: newSigner(t), list: statuslist.New(64, statuslist.Valid)}
	s.publish("k1", s.brand)
	s.publishPA("p1", s.pa)
	s.authority.serve("/oauth/status/0", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, s.statusList(s.brand, nil))
	})
	of := AgentsConfig{
		Audience: provider, Known: []KnownAgent{{s.agent.URL, s.agent.URL + "/jwks.json"}}, AllowLoopback: true, Now: s.now,
	}
	c := Config{Issuer: s.issuer(), Interface: brandURL, AllowLoopback: true, Now: s.now, Credential: "cs_key_secret"}
	for _, one := range change {
		one(&c, &of)
	}
	var err error
	if c.Agents, err = NewAgents(of); err != nil {
		t.Fatal(err)
	}
	if s.door, err = New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) now() time.Time          { return noon.Add(time.Duration(s.clock.Load()) * time.Second) }
func (s *scene) advance(d time.Duration) { s.clock.Add(int64(d / time.Second)) }
func (s *scene) issuer() string          { return s.authority.URL + "/oauth" }
func (s *scene) jwks(kid string, of signer) string {
	return `{"keys":[` + of.jwk(fmt.Sprintf(`,"kid":%q`, kid)) + `]}`
}

func (s *scene) publish(kid string, of signer)   { s.authority.text("/oauth/jwks.json", s.jwks(kid, of)) }
func (s *scene) publishPA(kid string, of signer) { s.agent.text("/jwks.json", s.jwks(kid, of)) }

func (s *scene) statusList(by signer, change map[string]any) string {
	s.t.Helper()
	lst, err := s.list.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	claims := map[string]any{
		"sub": s.issuer() + "/status/0", "iat": s.now().Unix(), "exp": s.now().Add(10 * time.Minute).Unix(),
		"status_list": map[string]any{"bits": 2, "lst": lst},
	}
	for name, value := range change {
		claims[name] = value
	}
	return by.sign(s.t, listHeader, marshal(s.t, claims))
}

// proof is a pa-jwt made now, with changes.
func (s *scene) proof(change map[string]any) string {
	s.t.Helper()
	claims := map[string]any{"iss": s.agent.URL, "aud": provider, "sub": "alex", "iat": s.now().Unix(), "exp": s.now().Unix() + 300}
	for name, value := range change {
		claims[name] = value
	}
	return s.pa.sign(s.t, `{"alg":"ES256","kid":"p1"}`, marshal(s.t, claims))
}

// token is a delegation token made now, with changes.
func (s *scene) token(change map[string]any) string {
	s.t.Helper()
	claims := delegationClaims()
	claims["iss"], claims["client_id"] = s.issuer(), s.agent.URL
	claims["iat"], claims["exp"] = s.now().Unix(), s.now().Add(time.Hour).Unix()
	claims["status"] = at(0, s.issuer()+"/status/0")
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return s.brand.sign(s.t, tokenHeader, marshal(s.t, claims))
}

// shown are the headers of a call; an empty token is not shown.
func shown(proof, token string) http.Header {
	h := http.Header{}
	if proof != "" {
		h.Set("Authorization", "Bearer "+proof)
	}
	if token != "" {
		h.Set("X-A2A-User-Delegation", "Bearer "+token)
	}
	return h
}

// call is a good pa-jwt with this token.
func (s *scene) call(token string) (Call, error) {
	s.t.Helper()
	return s.door.Call(s.t.Context(), shown(s.proof(nil), token))
}

// through sends the call through the middleware. reached: the handler ran.
func (s *scene) through(h http.Header) (answer *http.Response, seen Call, reached bool) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, brandURL+"/message:send", strings.NewReader("{}"))
	r.Header = h
	w := httptest.NewRecorder()
	s.door.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, reached = CallFrom(r.Context())
		w.WriteHeader(http.StatusTeapot)
	})).ServeHTTP(w, r)
	return w.Result(), seen, reached
}
