package verify

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheHandlerLearnsWhoCallsAndWhatFor(t *testing.T) {
	s := newScene(t)
	answer, c, reached := s.through(shown(s.proof(nil), s.token(nil)))
	if !reached || answer.StatusCode != http.StatusTeapot {
		t.Fatalf("%d", answer.StatusCode)
	}
	want := Call{
		Agent: Agent{Issuer: s.agent.URL, Subject: "alex", Expires: noon.Add(300 * time.Second)},
		Delegation: &Delegation{
			ID: "t1", Grant: "g1", User: "guest-1", Agent: s.agent.URL, Scopes: []string{"orders:read", "orders:cancel"},
			Issued: noon, Expires: noon.Add(time.Hour), Status: &StatusRef{URI: s.issuer() + "/status/0"},
		},
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Call{})); diff != "" {
		t.Error(diff)
	}
	if !c.Allows("orders:read") || c.Allows("orders:pay") || c.Allows("") {
		t.Error("wrong scopes are allowed")
	}
	if diff := cmp.Diff([]string{"orders:pay"}, c.Missing("orders:read", "orders:pay")); diff != "" {
		t.Error(diff)
	}
	ctx := context.WithValue(t.Context(), callKey{}, c)
	if d, ok := DelegationFrom(ctx); !ok || d.User != "guest-1" {
		t.Error("no delegation in the context")
	}
}

// M22: no token is no failure; the handler then has nobody's permission.
func TestWithoutATokenThereIsNoDelegation(t *testing.T) {
	s := newScene(t)
	_, c, reached := s.through(shown(s.proof(nil), ""))
	if !reached || c.Delegation != nil || c.Agent.Subject != "alex" || c.Allows("orders:read") {
		t.Errorf("%v %+v", reached, c)
	}
	if _, ok := DelegationFrom(context.WithValue(t.Context(), callKey{}, c)); ok {
		t.Error("a delegation out of nothing")
	}
	if _, ok := CallFrom(t.Context()); ok {
		t.Error("a call out of nothing")
	}
	if _, ok := DelegationFrom(t.Context()); ok {
		t.Error("a delegation out of nothing")
	}
}

func refusedWith(t *testing.T, what string, answer *http.Response, reached bool, challenge string) {
	t.Helper()
	body, _ := io.ReadAll(answer.Body)
	if reached || answer.StatusCode != http.StatusUnauthorized || len(body) > 0 ||
		answer.Header.Get("Cache-Control") != "no-store" || !cmp.Equal(answer.Header.Values("WWW-Authenticate"), []string{challenge}) {
		t.Errorf("%s: reached %v, %d %q %q", what, reached, answer.StatusCode, answer.Header.Values("WWW-Authenticate"), body)
	}
}

// M1–M5, M7: every failure of the pa-jwt is the bare 401, whatever token is beside it.
func TestEveryFailureOfThePAJWTIsTheBare401(t *testing.T) {
	s := newScene(t)
	stranger := newSigner(t)
	good := s.proof(nil)
	claims := marshal(t, map[string]any{"iss": s.agent.URL, "aud": provider, "sub": "alex", "iat": noon.Unix(), "exp": noon.Unix() + 300})
	for what, h := range map[string]http.Header{
		"none":                   shown("", ""),
		"empty":                  {"Authorization": {""}},
		"basic":                  {"Authorization": {"Basic eDp5"}},
		"no scheme":              {"Authorization": {good}},
		"garbage":                shown("garbage", ""),
		"two":                    {"Authorization": {"Bearer " + good, "Bearer " + good}},
		"joined":                 {"Authorization": {"Bearer " + good + ", Bearer " + good}},
		"too long":               shown(strings.Repeat("x", maxToken+1), ""),
		"M1, another's key":      shown(stranger.sign(t, `{"alg":"ES256","kid":"p1"}`, claims), ""),
		"M1, an unpublished kid": shown(s.pa.sign(t, `{"alg":"ES256","kid":"p2"}`, claims), ""),
		"M1, jwk":                shown(s.pa.sign(t, `{"alg":"ES256","kid":"p1","jwk":{}}`, claims), ""),
		"M2, unknown agent":      shown(s.proof(map[string]any{"iss": "https://other.example"}), ""),
		"M2, slash behind":       shown(s.proof(map[string]any{"iss": s.agent.URL + "/"}), ""),
		"M3, another Provider":   shown(s.proof(map[string]any{"aud": "https://other.example"}), ""),
		"M3, a list":             shown(s.proof(map[string]any{"aud": []string{provider}}), ""),
		"M4, no subject":         shown(s.proof(map[string]any{"sub": ""}), ""),
		"M4, a control":          shown(s.proof(map[string]any{"sub": "a\nb"}), ""),
		"M5, too long a life":    shown(s.proof(map[string]any{"exp": noon.Unix() + 301}), ""),
		"M5, expired":            shown(s.proof(map[string]any{"iat": noon.Unix() - 100, "exp": noon.Unix() - 30}), ""),
		"the delegation token":   shown(s.token(nil), ""),
	} {
		for _, token := range []string{"", s.token(nil), "garbage"} {
			if token != "" {
				h.Set("X-A2A-User-Delegation", "Bearer "+token)
			}
			answer, _, reached := s.through(h)
			refusedWith(t, what, answer, reached, `Bearer realm="a2a"`)
		}
	}
	// The scheme is read without regard to case, and one pa-jwt serves many times (M6).
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER  "} {
		if _, _, reached := s.through(http.Header{"Authorization": {scheme + good}}); !reached {
			t.Errorf("%q was refused", scheme)
		}
	}
}

// M17, M18, M21, P29, P41: a token that is not good, or not the caller's, is the
// 401 that names the token, and never the call without one.
func TestEveryFailureOfTheTokenIsThe401ThatNamesIt(t *testing.T) {
	s := newScene(t)
	stranger := newSigner(t)
	good := s.token(nil)
	for what, value := range map[string][]string{
		"empty":                     {""},
		"no scheme":                 {good},
		"two":                       {"Bearer " + good, "Bearer " + good},
		"joined":                    {"Bearer " + good + ", Bearer " + good},
		"not a jwt":                 {"Bearer not-a-jwt"},
		"a pa-jwt":                  {"Bearer " + s.proof(nil)},
		"another's key":             {"Bearer " + stranger.sign(t, tokenHeader, marshal(t, delegationClaims()))},
		"unknown key":               {"Bearer " + s.brand.sign(t, `{"alg":"ES256","kid":"k2","typ":"at+jwt"}`, marshal(t, delegationClaims()))},
		"a status list":             {"Bearer " + s.statusList(s.brand, nil)},
		"M17, another Brand's":      {"Bearer " + s.token(map[string]any{"aud": "https://ferry.example"})},
		"M17, two Brands'":          {"Bearer " + s.token(map[string]any{"aud": []string{brandURL, "https://ferry.example"}})},
		"iss is the interface":      {"Bearer " + s.token(map[string]any{"iss": brandURL})},
		"M18, another agent's":      {"Bearer " + s.token(map[string]any{"client_id": "https://other.example"})},
		"M18, nobody's":             {"Bearer " + s.token(map[string]any{"client_id": nil})},
		"expired":                   {"Bearer " + s.token(map[string]any{"exp": noon.Unix()})},
		"from the future":           {"Bearer " + s.token(map[string]any{"iat": noon.Unix() + 31})},
		"no scope":                  {"Bearer " + s.token(map[string]any{"scope": ""})},
		"no status list":            {"Bearer " + s.token(map[string]any{"status": nil})},
		"status list of a stranger": {"Bearer " + s.token(map[string]any{"status": at(0, s.agent.URL+"/status/0")})},
		"status list next door":     {"Bearer " + s.token(map[string]any{"status": at(0, s.issuer()+"-other/status/0")})},
	} {
		h := shown(s.proof(nil), "")
		h["X-A2a-User-Delegation"] = value
		answer, _, reached := s.through(h)
		refusedWith(t, what, answer, reached, `Bearer realm="a2a", error="invalid_token"`)
	}
	if n := s.agent.times("/status/0") + s.authority.times("/oauth-other/status/0"); n != 0 {
		t.Errorf("a stranger's status list was fetched")
	}
}

// What cannot be told lets nobody in, and is no 401 that would have an agent throw
// its token away.
func TestWhatCannotBeToldIs503(t *testing.T) {
	s := newScene(t)
	s.authority.fails("/oauth/jwks.json")
	answer, _, reached := s.through(shown(s.proof(nil), s.token(nil)))
	if reached || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "5" || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %d %v", reached, answer.StatusCode, answer.Header)
	}
	if _, _, reached := s.through(shown(s.proof(nil), "")); !reached {
		t.Error("the authority is not needed for a call without a token")
	}
	w := httptest.NewRecorder()
	Respond(w, errors.New("a surprise"))
	if w.Code != http.StatusInternalServerError {
		t.Error(w.Code)
	}
}

// A Verifier that lacks what it must compare with is never made.
func TestAForgottenSettingIsNoVerifier(t *testing.T) {
	agents, err := NewAgents(AgentsConfig{Audience: provider, Open: true})
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Issuer: brandIssuer, Interface: brandURL, Agents: agents}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Config){
		"no agents":      func(c *Config) { c.Agents = nil },
		"no interface":   func(c *Config) { c.Interface = "" },
		"no issuer":      func(c *Config) { c.Issuer = "" },
		"plain http":     func(c *Config) { c.Issuer = "http://harbor.example/oauth" },
		"loopback":       func(c *Config) { c.Issuer = "http://localhost:1/oauth" },
		"a slash behind": func(c *Config) { c.Issuer += "/" },
		"a query":        func(c *Config) { c.Issuer += "?x=y" },
		"negative bound": func(c *Config) { c.Stale = -time.Second },
	} {
		c := good
		change(&c)
		if _, err := New(c); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	known := []KnownAgent{{"https://aria.example", "https://aria.example/jwks.json"}}
	for what, c := range map[string]AgentsConfig{
		"no audience":       {Open: true},
		"nobody":            {Audience: provider},
		"two ways":          {Audience: provider, Open: true, Known: known},
		"keys without TLS":  {Audience: provider, Known: []KnownAgent{{"https://aria.example", "http://aria.example/jwks.json"}}},
		"private addresses": {Audience: provider, Known: []KnownAgent{{"https://aria.example", "https://10.0.0.1/jwks.json"}}},
		"issuer no URL":     {Audience: provider, Known: []KnownAgent{{"aria", "https://aria.example/jwks.json"}}},
	} {
		if _, err := NewAgents(c); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
