package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"github.com/google/go-cmp/cmp"
)

func TestCallerIsTheAgentAndItsUser(t *testing.T) { // M4
	w := newWorld(t)
	pa := w.pa(t)
	got := w.accepts(t, pa.Token(t, agenttest.Claims{Sub: "älex"}))
	want := agent.Caller{Issuer: pa.Issuer, Subject: "älex", Expires: w.clock.Now().Add(2 * time.Minute)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// R20, B78, B79, M6: a poller sends one token many times, to any instance, with
// jti or without; two agents may use one jti. It goes red when somebody switches
// on single use.
func TestOneTokenServesManyCalls(t *testing.T) {
	w := newWorld(t)
	pa, other := w.pa(t), w.pa(t)
	instances := []*agent.Verifier{w.verifier, w.newVerifier(w.newRegistry(), nil)}
	for name, c := range map[string]agenttest.Claims{
		"with jti": {Extra: members{"jti": "one"}}, "without jti": {Without: []string{"jti"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, token := range []string{pa.Token(t, c), other.Token(t, c)} {
				for i := range 24 {
					if _, err := instances[i%2].Verify(t.Context(), token, audience); err != nil {
						t.Fatalf("call %d: %v", i+1, err)
					}
				}
			}
		})
	}
}

// B79: a forgery that comes first, with the same jti, takes nothing from the
// real token.
func TestForgeryDoesNotSpendTheRealToken(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	c := agenttest.Claims{Extra: members{"jti": "one"}}
	_, kid := pa.Key()
	forged := agenttest.Forge(t, members{"alg": "ES256", "kid": kid}, pa.Members(c), agenttest.ES256(t, agenttest.NewKey(t)))
	w.refuses(t, forged, agent.ErrSignature)
	w.accepts(t, pa.Token(t, c))
	w.refuses(t, forged, agent.ErrSignature)
}

func TestRememberedTokenIsHeldToItsAudience(t *testing.T) { // M3, R19
	w := newWorld(t)
	pa := w.pa(t)
	token := pa.Token(t, agenttest.Claims{})
	w.accepts(t, token)
	w.accepts(t, token)
	if n := w.counted(t, "countersign_agent_verifications_total", "remembered"); n != 1 {
		t.Fatalf("remembered %v times, want 1", n)
	}
	caller, err := w.verifier.Verify(t.Context(), token, "https://other.example")
	refusedFor(t, caller, err, agent.ErrAudience)
}

// A Brand without an audience, which would be our own mistake, lets nobody in.
func TestNoAudienceIsNobodysAudience(t *testing.T) { // M3
	w := newWorld(t)
	pa := w.pa(t)
	for _, aud := range []any{"", nil} {
		token := agenttest.Forge(t, members{"alg": "ES256"}, with(pa.Members(agenttest.Claims{}), members{"aud": aud}), pa.ES256(t))
		caller, err := w.verifier.Verify(t.Context(), token, "")
		refusedFor(t, caller, err, agent.ErrAudience)
	}
}

func TestRememberedTokenExpires(t *testing.T) { // M5
	w := newWorld(t)
	pa := w.pa(t)
	token := pa.Token(t, agenttest.Claims{})
	w.accepts(t, token)
	w.clock.Advance(2*time.Minute + 29*time.Second)
	w.accepts(t, token)
	w.clock.Advance(time.Second)
	w.refuses(t, token, agent.ErrExpired)
}

func TestRememberedTokenIsNotAnotherOne(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	token := pa.Token(t, agenttest.Claims{})
	w.accepts(t, token)
	w.refuses(t, token[:len(token)-4]+"AAAA", agent.ErrSignature)
}

// P5, M2: at once in this instance, within two seconds in others.
func TestDisabledAgentIsRefused(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	elsewhere := w.newVerifier(w.newRegistry(), nil)
	token := pa.Token(t, agenttest.Claims{})
	w.accepts(t, token)
	if _, err := elsewhere.Verify(t.Context(), token, audience); err != nil {
		t.Fatal(err)
	}
	if err := w.registry.SetEnabled(t.Context(), pa.Issuer, false); err != nil {
		t.Fatal(err)
	}
	w.refuses(t, token, agent.ErrDisabled)
	w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrDisabled)
	w.clock.Advance(2 * time.Second)
	caller, err := elsewhere.Verify(t.Context(), token, audience)
	refusedFor(t, caller, err, agent.ErrDisabled)

	if err := w.registry.SetEnabled(t.Context(), pa.Issuer, true); err != nil {
		t.Fatal(err)
	}
	w.accepts(t, token)
}

func TestOneAgentCannotSpeakForAnother(t *testing.T) { // M2: the keys tried are those of iss
	w := newWorld(t)
	pa, mallory := w.pa(t), w.pa(t)
	_, kid := pa.Key()
	key, _ := mallory.Key()
	mallory.Use(key, kid)
	mallory.Publish(mallory.PublicJWK())
	w.refuses(t, mallory.Token(t, agenttest.Claims{Extra: members{"iss": pa.Issuer}}), agent.ErrSignature)
	w.accepts(t, mallory.Token(t, agenttest.Claims{}))
}

// A database that does not answer is no verdict: the door says 503, not 401.
func TestDatabaseFailureIsNoRefusal(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	token := pa.Token(t, agenttest.Claims{})
	w.accepts(t, token)
	w.pool.Close()
	w.clock.Advance(3 * time.Second)
	for range 2 {
		caller, err := w.verifier.Verify(t.Context(), token, audience)
		if err == nil || errors.Is(err, agent.ErrRefused) || caller != (agent.Caller{}) {
			t.Errorf("got %+v, %v; want an error that is no refusal", caller, err)
		}
	}
	if n := w.counted(t, "countersign_agent_verifications_total", "failed"); n != 2 {
		t.Errorf("counted %v failures, want 2", n)
	}
}

// What would never be let in reaches neither the database nor the agent.
func TestNothingIsAskedForATokenThatIsRefusedAnyway(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.pool.Close()
	w.refuses(t, pa.Token(t, agenttest.Claims{Aud: "https://other.example"}), agent.ErrAudience)
	w.refuses(t, pa.Token(t, agenttest.Claims{IssuedAt: w.clock.Now().Add(-time.Hour)}), agent.ErrExpired)
	w.refuses(t, pa.Token(t, agenttest.Claims{Extra: members{"iss": "\x00\x00\x00\x00\x00\x00\x00\x00"}}), agent.ErrIssuer)
	if pa.Fetches() != 0 {
		t.Errorf("%d fetches, want 0", pa.Fetches())
	}
}

func TestCallerWhoLeavesIsNotRefused(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.verifier.Verify(ctx, pa.Token(t, agenttest.Claims{}), audience)
	if !errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrRefused) {
		t.Errorf("got %v, want context.Canceled alone", err)
	}
}

// With room for four tokens, fifty are still told apart and accepted.
func TestMemoryIsBoundedAndForgetsHarmlessly(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	small := agent.NewVerifier(agent.Config{Registry: w.registry, Fetch: devFetch(), Now: w.clock.Now, Remember: 4})
	var tokens []string
	for i := range 50 {
		tokens = append(tokens, pa.Token(t, agenttest.Claims{Sub: fmt.Sprint("user-", i)}))
	}
	for range 2 {
		for i, token := range tokens {
			caller, err := small.Verify(t.Context(), token, audience)
			if want := fmt.Sprint("user-", i); err != nil || caller.Subject != want {
				t.Fatalf("got %+v, %v; want %s", caller, err, want)
			}
		}
	}
}

func TestManyAtOnce(t *testing.T) { // for the race detector
	w := newWorld(t)
	pas := []*agenttest.PA{w.pa(t), w.pa(t), w.pa(t)}
	tokens := make([]string, 0, 30)
	for i := range 30 {
		tokens = append(tokens, pas[i%3].Token(t, agenttest.Claims{Sub: fmt.Sprint("user-", i)}))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 60 {
				at := (g*7 + i) % 30
				caller, err := w.verifier.Verify(t.Context(), tokens[at], audience)
				if want := fmt.Sprint("user-", at); err != nil || caller.Subject != want {
					t.Errorf("got %+v, %v; want %s", caller, err, want)
				}
			}
		})
	}
	wg.Wait()
	for _, pa := range pas {
		if pa.Fetches() != 1 {
			t.Errorf("%d fetches, want 1 for all callers together", pa.Fetches())
		}
	}
}
