package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// M2 with a registry that changes: it is asked at every call, so that an agent that
// leaves it is out at once; its trouble is no verdict.
func TestFindSaysWhichAgentsMayCall(t *testing.T) {
	var uri string
	var trouble error
	s := newScene(t, func(_ *Config, of *AgentsConfig) {
		of.Known, of.Find = nil, func(context.Context, string) (string, error) { return uri, trouble }
	})
	uri = s.agent.URL + "/jwks.json"
	if _, err := s.call(""); err != nil {
		t.Fatal(err)
	}
	trouble = ErrUnknownAgent
	if _, err := s.call(""); !errors.Is(err, ErrCaller) || !errors.Is(err, ErrUnknownAgent) {
		t.Errorf("gone: %v", err)
	}
	trouble = errors.New("database away")
	if _, err := s.call(""); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCaller) {
		t.Errorf("trouble: %v", err)
	}
	trouble = nil
	for _, bad := range []string{"", "http://aria.example/jwks.json", "https://10.0.0.1/jwks.json", "file:///etc/passwd"} {
		uri = bad
		if _, err := s.call(""); !errors.Is(err, ErrCaller) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// Keys at a new place: those of the old one count no more.
	other := newSite(t)
	other.text("/jwks.json", s.jwks("p1", newSigner(t)))
	uri = other.URL + "/jwks.json"
	if _, err := s.call(""); !errors.Is(err, ErrCaller) {
		t.Errorf("moved: %v", err)
	}
}

func openPolicy(_ *Config, of *AgentsConfig) { of.Known, of.Open = nil, true }

// M2 open: whoever publishes keys through discovery may call, as itself alone.
func TestOpenFindsKeysThroughDiscovery(t *testing.T) {
	s := newScene(t, openPolicy)
	const at = "/.well-known/openid-configuration"
	s.agent.text(at, fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, s.agent.URL, s.agent.URL+"/jwks.json"))
	if _, err := s.call(s.token(nil)); err != nil {
		t.Fatal(err)
	}
	for what, document := range map[string]string{
		"another issuer":    `{"issuer":"https://aria.example","jwks_uri":"HERE/jwks.json"}`,
		"a slash behind":    `{"issuer":"HERE/","jwks_uri":"HERE/jwks.json"}`,
		"no issuer":         `{"jwks_uri":"HERE/jwks.json"}`,
		"two issuers":       `{"issuer":"https://aria.example","issuer":"HERE","jwks_uri":"HERE/jwks.json"}`,
		"no keys":           `{"issuer":"HERE"}`,
		"private addresses": `{"issuer":"HERE","jwks_uri":"https://169.254.169.254/jwks.json"}`,
		"a file":            `{"issuer":"HERE","jwks_uri":"file:///etc/passwd"}`,
		"a page":            `<html>`,
	} {
		s := newScene(t, openPolicy)
		s.agent.text(at, strings.ReplaceAll(document, "HERE", s.agent.URL))
		if _, err := s.call(""); !errors.Is(err, ErrCaller) {
			t.Errorf("%s: %v", what, err)
		}
		if n := s.agent.times("/jwks.json"); n != 0 {
			t.Errorf("%s: the keys were fetched", what)
		}
	}
	for _, issuer := range []string{
		"http://aria.example", "https://10.0.0.1", "https://[::1]", "https://user@aria.example", "https://aria.example?x", "aria", "https://aria.example:8443",
	} {
		if _, err := s.door.Call(t.Context(), shown(s.proof(map[string]any{"iss": issuer}), "")); !errors.Is(err, ErrCaller) {
			t.Errorf("%q: %v", issuer, err)
		}
	}
}

// Without loopback allowed, no agent has us fetch from this machine.
func TestStrangersNameNoPrivateAddress(t *testing.T) {
	s := newScene(t, openPolicy)
	agents, err := NewAgents(AgentsConfig{Audience: provider, Open: true, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agents.Verify(t.Context(), s.proof(nil)); err == nil {
		t.Error("accepted")
	}
	if _, _, err := get(t.Context(), agents.HTTP, s.agent.URL+"/jwks.json", "", maxKeySet); err == nil {
		t.Error("the client reaches this machine")
	}
	for _, path := range []string{"/.well-known/openid-configuration", "/jwks.json"} {
		if n := s.agent.times(path); n != 0 {
			t.Errorf("%s: asked %d times", path, n)
		}
	}
}

// Whatever client a Brand brings, keys come over TLS.
func TestKeysComeOverTLSByWhateverClient(t *testing.T) {
	s := newScene(t)
	for uri, ok := range map[string]bool{"https://aria.example/jwks.json": true, "http://aria.example/jwks.json": false, "https://10.0.0.1/jwks.json": false} {
		agents, err := NewAgents(AgentsConfig{
			Audience: provider, HTTP: publishing([]byte(s.jwks("p1", s.pa))), Now: s.now,
			Find: func(context.Context, string) (string, error) { return uri, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agents.Verify(t.Context(), s.proof(nil)); (err == nil) != ok {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// Whoever makes up names pushes out no agent that calls, and only so many are
// looked up at once.
func TestMadeUpAgentsTakeNoPlace(t *testing.T) {
	s := newScene(t, openPolicy)
	s.agent.text("/.well-known/openid-configuration", fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, s.agent.URL, s.agent.URL+"/jwks.json"))
	if _, err := s.call(""); err != nil {
		t.Fatal(err)
	}
	agents := s.door.agents
	for i := range maxAgents + 100 {
		if _, err := agents.ring(t.Context(), fmt.Sprintf("https://agent-%d.example", i)); err != nil {
			t.Fatal(err)
		}
		s.clock.Add(1)
		if i > 200 {
			s.clock.Add(-1)
		}
	}
	if n := len(agents.rings); n != maxAgents {
		t.Errorf("%d are remembered", n)
	}
	if agents.rings[s.agent.URL] == nil {
		t.Error("the one that calls was forgotten")
	}
	for range maxDiscovery {
		agents.discovering <- struct{}{}
	}
	if _, err := agents.discover(t.Context(), s.agent.URL); err == nil {
		t.Error("one more is looked up")
	}
}

// FuzzDiscovery: whatever a stranger's document says, keys are fetched for the
// issuer that was asked for, over TLS.
func FuzzDiscovery(f *testing.F) {
	f.Add(`{"issuer":"https://aria.example","jwks_uri":"https://aria.example/jwks.json"}`)
	f.Add(`{"issuer":"https://aria.example","jwks_uri":"http://aria.example/jwks.json"}`)
	f.Add(`{"Issuer":"https://aria.example"}`)
	f.Fuzz(func(t *testing.T, body string) {
		uri, err := readDiscovery([]byte(body), aria, false)
		if err != nil {
			return
		}
		said, err := parseObject([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if issuer, err := said.text("issuer"); err != nil || issuer != aria || !strings.HasPrefix(strings.ToLower(uri), "https://") {
			t.Errorf("%q from %q", uri, body)
		}
	})
}
