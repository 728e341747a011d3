package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/migrations/pgtest"
	"github.com/google/go-cmp/cmp"
)

// B103, M2: what could be written in two ways, or carries more than a name, is
// no issuer; the rest is kept byte for byte.
func TestIssuersThatMayBeRegistered(t *testing.T) {
	clock := newClock()
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pgtest.New(t).App(t), Now: clock.Now})
	a := agent.Agent{JWKSURI: "https://keys.agent.example/jwks.json", Name: "Aria", Enabled: true}
	for _, issuer := range []string{
		"", "https://", "agent.example", "http://agent.example", "HTTPS://", "ftp://agent.example",
		"https://user@agent.example", "https://user:secret@agent.example", "https://@agent.example",
		"https://agent.example?x=1", "https://agent.example/?", "https://agent.example#x", "https://agent.example/#",
		"https://agent.example/\x00", "https://agent .example", "https://agent.example/\n", "https://ägent.example",
		"https://127.0.0.1", "http://localhost:8080", "https://agent.example/" + strings.Repeat("x", 2048),
		"https:agent.example", "https:///agent",
	} {
		a.Issuer = issuer
		if err := registry.Register(t.Context(), a); !errors.Is(err, agent.ErrBadIssuer) {
			t.Errorf("%q: %v, want ErrBadIssuer", issuer, err)
		}
	}
	for _, issuer := range []string{
		"https://agent.example", "https://agent.example/", "https://Agent.example", "https://agent.example:8443",
		"https://agent.example/a%252Fb", "https://agent.example/a+b&c", "https://xn--gent-2qa.example",
	} {
		a.Issuer = issuer
		if err := registry.Register(t.Context(), a); err != nil {
			t.Errorf("%q: %v, want it registered", issuer, err)
			continue
		}
		got, err := registry.Find(t.Context(), issuer)
		if err != nil || got.Issuer != issuer {
			t.Errorf("%q: found %q, %v", issuer, got.Issuer, err)
		}
	}
	all, err := registry.List(t.Context())
	if err != nil || len(all) != 7 {
		t.Errorf("listed %d agents, %v; want 7", len(all), err)
	}
}

func TestKeySetsAndNamesThatMayBeRegistered(t *testing.T) { // R24
	clock := newClock()
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pgtest.New(t).App(t), Now: clock.Now})
	good := agent.Agent{Issuer: "https://agent.example", JWKSURI: "https://agent.example/jwks.json", Name: "Aria"}
	for _, uri := range []string{
		"", "http://agent.example/jwks", "https://10.0.0.1/jwks", "https://169.254.169.254/", "https://agent.example:8443/jwks",
		"https://u@agent.example/jwks", "https://agent.example/#x", "http://127.0.0.1/jwks", "https://agent.example/" + strings.Repeat("x", 2048),
	} {
		a := good
		a.JWKSURI = uri
		if err := registry.Register(t.Context(), a); !errors.Is(err, agent.ErrBadJWKSURI) {
			t.Errorf("%q: %v, want ErrBadJWKSURI", uri, err)
		}
	}
	for _, name := range []string{"", " ", "a\x00b", "a\nb", "a\u2028b", "Your\u202eknaB", "Ar\u200bia", "Ar\u2060ia", "Ar\u3164ia", "\xff", strings.Repeat("é", 201)} {
		a := good
		a.Name = name
		if err := registry.Register(t.Context(), a); !errors.Is(err, agent.ErrBadName) {
			t.Errorf("%q: %v, want ErrBadName", name, err)
		}
	}
	good.Name = strings.Repeat("é", 200)
	if err := registry.Register(t.Context(), good); err != nil {
		t.Errorf("a name of 200 characters: %v", err)
	}
}

func TestRegisteringAgainReplaces(t *testing.T) {
	w := newWorld(t)
	began := w.clock.Now()
	first := agent.Agent{Issuer: "https://agent.example", JWKSURI: "https://agent.example/1", Name: "Aria", Enabled: true}
	second := agent.Agent{Issuer: first.Issuer, JWKSURI: "https://agent.example/2", Name: "Aria Two"}
	for _, a := range []agent.Agent{first, second} {
		if err := w.registry.Register(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Second)
	}
	got, err := w.registry.Find(t.Context(), first.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	if !got.CreatedAt.Equal(began) || !got.UpdatedAt.Equal(began.Add(time.Second)) {
		t.Errorf("created %s, updated %s", got.CreatedAt, got.UpdatedAt)
	}
	got.CreatedAt, got.UpdatedAt, got.CameAt = second.CreatedAt, second.UpdatedAt, second.CameAt
	if diff := cmp.Diff(second, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownAgentsAreNotRegistered(t *testing.T) {
	w := newWorld(t)
	if _, err := w.registry.Find(t.Context(), "https://nobody.example"); !errors.Is(err, agent.ErrNotRegistered) {
		t.Errorf("find: %v", err)
	}
	if err := w.registry.SetEnabled(t.Context(), "https://nobody.example", true); !errors.Is(err, agent.ErrNotRegistered) {
		t.Errorf("enable: %v", err)
	}
}

// That an issuer was unknown is forgotten at once: a new agent need not wait.
func TestNewAgentIsLetInAtOnce(t *testing.T) {
	w := newWorld(t)
	pa := agenttest.New(t)
	pa.Now = w.clock.Now
	token := pa.Token(t, agenttest.Claims{})
	w.refuses(t, token, agent.ErrIssuer)
	w.register(t, pa)
	w.accepts(t, token)
}
