package agent_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"net/http"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/migrations/pgtest"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5"
)

const applyAudience = "https://countersign.example"

func application(p *agenttest.PA) agent.Application {
	return agent.Application{Issuer: p.Issuer, JWKSURI: p.JWKSURI, Name: "Aria", Contact: "ops@aria.example"}
}

// An agent proves with the key that it publishes at home that it is who it says,
// and waits for the operator; nothing is let in before.
func TestAgentAppliesAndWaits(t *testing.T) {
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pgtest.New(t).App(t), AllowLoopback: true})
	fetch := egress.New(egress.Config{AllowLoopback: true})
	p, stranger := agenttest.New(t), agenttest.New(t)
	token := func(p *agenttest.PA, c agenttest.Claims) string { return p.Token(t, c) }
	good := agenttest.Claims{Sub: "operator", Aud: applyAudience}
	for name, tt := range map[string]struct {
		change func(*agent.Application)
		token  string
		want   error
	}{
		"another's name":                 {nil, token(stranger, good), agent.ErrIssuer},
		"another audience":               {nil, token(p, agenttest.Claims{Sub: "x", Aud: "https://provider.example"}), agent.ErrAudience},
		"an old proof":                   {nil, token(p, agenttest.Claims{Sub: "x", Aud: applyAudience, IssuedAt: time.Now().Add(-time.Hour)}), agent.ErrExpired},
		"no proof":                       {nil, "", agent.ErrMalformed},
		"keys elsewhere":                 {func(a *agent.Application) { a.JWKSURI = stranger.JWKSURI }, token(p, good), agent.ErrForeignKeys},
		"keys that are no keys":          {func(a *agent.Application) { a.JWKSURI = p.Issuer + "/x#y" }, token(p, good), agent.ErrBadJWKSURI},
		"nobody sees all of the contact": {func(a *agent.Application) { a.Contact = "ops@\u202eagent.example" }, token(p, good), agent.ErrBadContact},
		"no name":                        {func(a *agent.Application) { a.Name = "" }, token(p, good), agent.ErrBadName},
		"no contact":                     {func(a *agent.Application) { a.Contact = "x" }, token(p, good), agent.ErrBadContact},
	} {
		a := application(p)
		if tt.change != nil {
			tt.change(&a)
		}
		if err := registry.Apply(t.Context(), fetch, a, tt.token, applyAudience); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	// A key that the agent does not publish.
	imposter := agenttest.New(t)
	if err := registry.Apply(t.Context(), fetch, application(p), imposter.Token(t, agenttest.Claims{Sub: "x", Aud: applyAudience, Extra: map[string]any{"iss": p.Issuer}}), applyAudience); !errors.Is(err, agent.ErrUnknownKey) && !errors.Is(err, agent.ErrSignature) {
		t.Errorf("an unpublished key: %v", err)
	}
	apply := func() error { return registry.Apply(t.Context(), fetch, application(p), token(p, good), applyAudience) }
	for range 2 { // asking again changes nothing
		if err := apply(); err != nil {
			t.Fatal(err)
		}
	}
	waiting, err := registry.Applications(t.Context())
	if err != nil || len(waiting) != 1 || waiting[0].Issuer != p.Issuer {
		t.Fatalf("%+v, %v", waiting, err)
	}
	if _, err := registry.Find(t.Context(), p.Issuer); !errors.Is(err, agent.ErrNotRegistered) {
		t.Errorf("let in before the operator said so: %v", err)
	}
	if err := registry.Approve(t.Context(), p.Issuer, digest(t, registry, p.Issuer)); err != nil {
		t.Fatal(err)
	}
	if a, err := registry.Find(t.Context(), p.Issuer); err != nil || !a.Enabled || a.Test || a.Contact != "ops@aria.example" {
		t.Errorf("%+v, %v", a, err)
	}
	for what, err := range map[string]error{
		"approve twice": registry.Approve(t.Context(), p.Issuer, waiting[0].Digest()), "reject after": registry.Reject(t.Context(), p.Issuer),
		"approve nobody": registry.Approve(t.Context(), "https://nobody.example", ""),
	} {
		if !errors.Is(err, agent.ErrNoApplication) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := apply(); !errors.Is(err, agent.ErrRegistered) {
		t.Errorf("a registered agent applies: %v", err)
	}
	if err := registry.Apply(t.Context(), fetch, application(stranger), token(stranger, good), applyAudience); err != nil {
		t.Fatal(err)
	}
	if err := registry.Reject(t.Context(), stranger.Issuer); err != nil {
		t.Fatal(err)
	}
	if err := registry.Apply(t.Context(), fetch, application(stranger), token(stranger, good), applyAudience); !errors.Is(err, agent.ErrRegistered) {
		t.Errorf("a refused agent applies again: %v", err)
	}
}

// The operator sees which published keys are of use, and which are not.
func TestInspectTellsEachKey(t *testing.T) {
	fetch := egress.New(egress.Config{AllowLoopback: true})
	p := agenttest.New(t)
	p.Publish(p.PublicJWK(), map[string]any{"kty": "oct", "kid": "s", "k": "c2VjcmV0"}, map[string]any{"kty": "EC", "crv": "P-521", "kid": "big"})
	keys, err := agent.Inspect(context.Background(), fetch, p.JWKSURI)
	if err != nil || len(keys) != 3 || !keys[0].Usable || keys[0].Kind != "EC P-256" || keys[1].Usable || keys[2].Usable || keys[2].Kind != "EC P-521" {
		t.Errorf("%+v, %v", keys, err)
	}
	p.Break()
	if _, err := agent.Inspect(context.Background(), fetch, p.JWKSURI); !errors.Is(err, agent.ErrKeysUnfetched) {
		t.Errorf("a broken server: %v", err)
	}
	p.Serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":"none"}`)) })
	if _, err := agent.Inspect(context.Background(), fetch, p.JWKSURI); !errors.Is(err, agent.ErrKeysUnfetched) {
		t.Errorf("no set: %v", err)
	}
}

func square(t *testing.T, side int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// An application may bring a picture, which is made anew; it becomes the agent's
// when the operator approves, and is forgotten when the operator refuses.
func TestAnApplicationBringsAPicture(t *testing.T) {
	pool := pgtest.New(t).App(t)
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pool, AllowLoopback: true})
	fetch := egress.New(egress.Config{AllowLoopback: true})
	p, other := agenttest.New(t), agenttest.New(t)
	apply := func(p *agenttest.PA, logo []byte, aud string) error {
		a := application(p)
		a.Logo = logo
		return registry.Apply(t.Context(), fetch, a, p.Token(t, agenttest.Claims{Sub: "x", Aud: aud}), applyAudience)
	}
	for name, logo := range map[string][]byte{
		"SVG": []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "half": square(t, 64)[:50],
		"too many bytes": append(square(t, 8), make([]byte, tenants.LargestLogo)...),
	} {
		if err := apply(p, logo, applyAudience); !errors.Is(err, agent.ErrBadLogo) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nothing of a stranger's is unfolded.
	if err := apply(p, []byte("<svg>"), "https://elsewhere.example"); !errors.Is(err, agent.ErrAudience) {
		t.Errorf("without a proof: %v", err)
	}
	for _, one := range []*agenttest.PA{p, other} {
		if err := apply(one, append(square(t, 400), "<script>"...), applyAudience); err != nil {
			t.Fatal(err)
		}
	}
	waits, err := registry.Logo(t.Context(), p.Issuer)
	if err != nil || bytes.Contains(waits, []byte("script")) {
		t.Fatalf("%d bytes, %v", len(waits), err)
	}
	if m, err := png.DecodeConfig(bytes.NewReader(waits)); err != nil || m.Width != 256 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := registry.Approve(t.Context(), p.Issuer, digest(t, registry, p.Issuer)); err != nil {
		t.Fatal(err)
	}
	if err := registry.Reject(t.Context(), other.Issuer); err != nil {
		t.Fatal(err)
	}
	now, err := registry.Logo(t.Context(), p.Issuer)
	known, errFind := registry.Find(t.Context(), p.Issuer)
	if err != nil || errFind != nil || !bytes.Equal(now, waits) || known.Logo == "" {
		t.Errorf("after approval: %d bytes, %+v, %v, %v", len(now), known, err, errFind)
	}
	if _, err := registry.Logo(t.Context(), other.Issuer); !errors.Is(err, agent.ErrNoLogo) {
		t.Errorf("of a refused one: %v", err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM agent_applications WHERE logo_png IS NOT NULL`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d pictures are kept twice, %v", left, err)
	}
}

// The operator sets a registered agent's picture and takes it away. One that was
// only discovered shows its address alone.
func TestTheOperatorSetsThePicture(t *testing.T) {
	pool := pgtest.New(t).App(t)
	var notes []string
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pool, Note: func(_ context.Context, _ pgx.Tx, issuer, what string) error {
		notes = append(notes, issuer+" "+what)
		return nil
	}})
	const known, met = "https://agent.example", "https://met.example"
	if err := registry.Register(t.Context(), agent.Agent{Issuer: known, JWKSURI: known + "/k", Name: "Aria", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	const discovered = `INSERT INTO agents (issuer, jwks_uri, name, enabled, discovered, created_at, updated_at) VALUES ($1, $1, 'met.example', true, true, now(), now())`
	if _, err := pool.Exec(t.Context(), discovered, met); err != nil {
		t.Fatal(err)
	}
	for _, issuer := range []string{met, "https://nobody.example"} {
		if err := registry.SetLogo(t.Context(), issuer, square(t, 8)); !errors.Is(err, agent.ErrNotRegistered) {
			t.Errorf("%s: %v", issuer, err)
		}
	}
	notes = nil
	for _, raw := range [][]byte{square(t, 8), square(t, 8), square(t, 16), nil, nil} {
		if err := registry.SetLogo(t.Context(), known, raw); err != nil {
			t.Fatal(err)
		}
	}
	if len(notes) != 3 { // set, set anew, taken away; twice is once
		t.Errorf("%q", notes)
	}
	if _, err := registry.Logo(t.Context(), known); !errors.Is(err, agent.ErrNoLogo) {
		t.Errorf("taken away: %v", err)
	}
}

// digest is that of the application as it waits now.
func digest(t *testing.T, r *agent.Registry, issuer string) string {
	t.Helper()
	waiting, err := r.Applications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range waiting {
		if a.Issuer == issuer {
			return a.Digest()
		}
	}
	t.Fatalf("%s does not wait", issuer)
	return ""
}

// Whoever applies may change everything of it while it waits. What the operator did
// not see is not approved.
func TestOnlyWhatWasSeenIsApproved(t *testing.T) {
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pgtest.New(t).App(t), AllowLoopback: true})
	fetch := egress.New(egress.Config{AllowLoopback: true})
	p := agenttest.New(t)
	apply := func(change func(*agent.Application)) {
		t.Helper()
		a := application(p)
		change(&a)
		if err := registry.Apply(t.Context(), fetch, a, p.Token(t, agenttest.Claims{Sub: "x", Aud: applyAudience}), applyAudience); err != nil {
			t.Fatal(err)
		}
	}
	apply(func(*agent.Application) {})
	seen := digest(t, registry, p.Issuer)
	for what, change := range map[string]func(*agent.Application){
		"name": func(a *agent.Application) { a.Name = "Your Bank" }, "contact": func(a *agent.Application) { a.Contact = "ops@bank.example" },
		"keys": func(a *agent.Application) { a.JWKSURI += "?other" }, "logo": func(a *agent.Application) { a.Logo = square(t, 64) },
	} {
		apply(change)
		for _, said := range []string{seen, ""} {
			if err := registry.Approve(t.Context(), p.Issuer, said); !errors.Is(err, agent.ErrOtherwise) {
				t.Errorf("another %s, seen %q: %v", what, said, err)
			}
		}
		if _, err := registry.Find(t.Context(), p.Issuer); !errors.Is(err, agent.ErrNotRegistered) {
			t.Errorf("another %s is let in: %v", what, err)
		}
	}
	apply(func(*agent.Application) {}) // as it was
	if err := registry.Approve(t.Context(), p.Issuer, seen); err != nil {
		t.Fatal(err)
	}
}
