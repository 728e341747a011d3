package agent_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
)

const fetchesTotal = "countersign_agent_jwks_fetches_total"

// eventually waits for what a fetch in the background brings about. It yields
// and does not sleep; the test's own deadline ends it.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !happened() {
		if ctx.Err() != nil {
			t.Fatalf("%s did not happen", what)
		}
		runtime.Gosched()
	}
}

// strange is a token that names a key nobody has.
func strange(t testing.TB, pa *agenttest.PA) string {
	return agenttest.Forge(t, members{"alg": "ES256", "kid": rand.Text()}, pa.Members(agenttest.Claims{}), pa.ES256(t))
}

// R22: a thousand unknown kids, alone or at once, cause one fetch per cooldown.
func TestUnknownKeysFetchOncePerCooldown(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	for round := range 3 {
		before := pa.Fetches()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 125 {
					w.refuses(t, strange(t, pa), agent.ErrUnknownKey)
				}
			})
		}
		wg.Wait()
		if n := pa.Fetches() - before; n != 1 {
			t.Errorf("round %d: 1,000 unknown kids caused %d fetches, want 1", round, n)
		}
		w.clock.Advance(10 * time.Second)
	}
}

// R26: a new key is found at once though the cached set is young, and also while
// strangers fill the air with unknown kids, one cooldown later.
func TestNewKeyIsFoundWithinOneFetch(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	pa.Rotate(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))

	w.clock.Advance(10 * time.Second)
	w.refuses(t, strange(t, pa), agent.ErrUnknownKey) // spends the fetch
	pa.Rotate(t)
	w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrUnknownKey)
	w.clock.Advance(10 * time.Second)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

func TestNewKeyWithoutKidIsFound(t *testing.T) { // R26, M1
	w := newWorld(t)
	pa := w.pa(t)
	without := func() string {
		return agenttest.Forge(t, members{"alg": "ES256"}, pa.Members(agenttest.Claims{}), pa.ES256(t))
	}
	w.accepts(t, without())
	pa.Rotate(t)
	w.accepts(t, without())
}

// R26: rotating under load turns away no token of the new key.
func TestRotationUnderLoad(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	for range 5 {
		w.clock.Advance(10 * time.Second)
		pa.Rotate(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					w.accepts(t, pa.Token(t, agenttest.Claims{}))
				}
			})
		}
		wg.Wait()
	}
}

// R26: a removed key is refused when the TTL is over, whether or not its tokens
// are remembered and whether or not anybody called in between.
func TestRemovedKeyIsRefusedWithinTheTTL(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	oldKey, oldKID := pa.Key()
	w.clock.Advance(3 * time.Minute)
	pa.Rotate(t)
	newKey, newKID := pa.Key()
	pa.Use(oldKey, oldKID)
	token := pa.Token(t, agenttest.Claims{Expires: w.clock.Now().Add(5 * time.Minute)})
	w.accepts(t, token) // cached, and not known to be gone
	w.clock.Advance(2*time.Minute + time.Second)
	w.refuses(t, token, agent.ErrUnknownKey)
	w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrUnknownKey)
	pa.Use(newKey, newKID)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

func TestEmptiedKeySetLocksTheAgentOut(t *testing.T) { // R26: an agent's own emergency brake
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	pa.Publish()
	w.clock.Advance(5*time.Minute + time.Second)
	w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrUnknownKey)
}

// A busy agent never waits: its keys are fetched before they are too old.
func TestKeysAreRefreshedInTheBackground(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	release := make(chan struct{})
	pa.Serve(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.WriteHeader(http.StatusInternalServerError)
	})
	w.clock.Advance(4*time.Minute + time.Second)
	w.accepts(t, pa.Token(t, agenttest.Claims{})) // would hang if it waited
	eventually(t, "the fetch in the background", func() bool { return pa.Fetches() == 2 })
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	close(release)
	eventually(t, "its failure", func() bool { return w.counted(t, fetchesTotal, "failed") == 1 })
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

// R27, B67: an outage keeps the old keys, for 24 hours after the last success,
// and there is a number to see it by.
func TestOutageKeepsTheOldKeysForADay(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	begun := w.clock.Now()
	pa.Break()
	for _, after := range []time.Duration{10 * time.Minute, time.Hour, 23 * time.Hour, 24 * time.Hour} {
		w.clock.Advance(begun.Add(after).Sub(w.clock.Now()))
		w.accepts(t, pa.Token(t, agenttest.Claims{}))
		w.refuses(t, strange(t, pa), agent.ErrUnknownKey)
		w.accepts(t, pa.Token(t, agenttest.Claims{}))
	}
	if n := w.counted(t, "countersign_agent_stale_keys_total", ""); n < 8 {
		t.Errorf("counted %v uses of stale keys, want at least 8", n)
	}
	if n := w.counted(t, fetchesTotal, "failed"); n == 0 {
		t.Error("no failed fetch was counted")
	}
	w.clock.Advance(time.Second)
	w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrKeysMissing)

	pa.Publish(pa.PublicJWK())
	w.clock.Advance(10 * time.Second)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

// B67: whatever the server answers instead of a key set, the keys stay.
func TestOnlyASuccessfulFetchReplacesTheKeys(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"500":             status(500),
		"404":             status(404),
		"204":             status(204),
		"a redirect":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
		"nothing":         body(""),
		"not JSON":        body("<html>maintenance</html>"),
		"null":            body("null"),
		"an error object": body(`{"error":"maintenance"}`),
		"keys null":       body(`{"keys":null}`),
		"keys an object":  body(`{"keys":{}}`),
		"keys twice":      body(`{"keys":[],"keys":[]}`),
		"Keys":            body(`{"Keys":[]}`),
		"a hang-up": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
	}
	w := newWorld(t)
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			pa := w.pa(t)
			w.accepts(t, pa.Token(t, agenttest.Claims{}))
			pa.Serve(answer)
			w.clock.Advance(10 * time.Minute)
			w.accepts(t, pa.Token(t, agenttest.Claims{}))
			w.refuses(t, strange(t, pa), agent.ErrUnknownKey)
			w.accepts(t, pa.Token(t, agenttest.Claims{}))
		})
	}
}

// R25: hostile servers cost bounded memory and give no keys.
func TestHostileKeySetsAreNotTakenOver(t *testing.T) {
	w := newWorld(t)
	one := mustJSON(t, ecJWK(agenttest.NewKey(t), "k", nil))
	for name, answer := range map[string]http.HandlerFunc{
		"10,000 keys":       body(`{"keys":[` + strings.Repeat(one+",", 9999) + one + `]}`),
		"10,000 small keys": body(`{"keys":[` + strings.Repeat("{},", 9999) + `{}]}`),
		"101 keys":          body(`{"keys":[` + strings.Repeat(one+",", 100) + one + `]}`),
		"a gigabyte": func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 32<<10)
			for range (1 << 30) / len(block) {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
		"nesting": body(`{"keys":[` + strings.Repeat("[", 30000) + strings.Repeat("]", 30000) + `]}`),
	} {
		t.Run(name, func(t *testing.T) {
			pa := w.pa(t)
			token := pa.Token(t, agenttest.Claims{})
			pa.Serve(answer)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w.refuses(t, token, agent.ErrKeysMissing)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
				t.Errorf("allocated %d bytes, want < 2 MiB", used)
			}
		})
	}
}

// R25, M1: a hundred keys are not too many.
func TestHundredKeysAreTried(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	keys := make([]any, 0, 100)
	for i := range 99 {
		keys = append(keys, ecJWK(agenttest.NewKey(t), fmt.Sprint(i), nil))
	}
	pa.Publish(append(keys, pa.PublicJWK())...)
	w.accepts(t, agenttest.Forge(t, members{"alg": "ES256"}, pa.Members(agenttest.Claims{}), pa.ES256(t)))
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

func TestKeysOfOneKidAreAllTried(t *testing.T) { // M1
	w := newWorld(t)
	pa := w.pa(t)
	_, kid := pa.Key()
	pa.Publish(
		ecJWK(agenttest.NewKey(t), kid, nil),
		members{"kty": "oct", "kid": kid, "k": "AAAA"},
		pa.PublicJWK(),
		ecJWK(agenttest.NewKey(t), kid, nil),
	)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

// R25, B67: while one agent's server hangs, others are served, and so are that
// agent's own calls with keys we have; a caller who gives up is let go.
func TestOneAgentsTroubleIsNobodyElses(t *testing.T) {
	w := newWorld(t)
	slow, cold, good := w.pa(t), w.pa(t), w.pa(t)
	w.accepts(t, slow.Token(t, agenttest.Claims{}))
	w.accepts(t, good.Token(t, agenttest.Claims{}))
	release := make(chan struct{})
	hang := func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.WriteHeader(http.StatusInternalServerError)
	}
	slow.Serve(hang)
	cold.Serve(hang)

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { w.refuses(t, strange(t, slow), agent.ErrUnknownKey) })
		wg.Go(func() { w.refuses(t, cold.Token(t, agenttest.Claims{}), agent.ErrKeysMissing) })
	}
	eventually(t, "both fetches", func() bool { return slow.Fetches() == 2 && cold.Fetches() == 1 })
	for range 20 { // each of these would hang if it waited for one of those
		w.accepts(t, slow.Token(t, agenttest.Claims{}))
		w.accepts(t, good.Token(t, agenttest.Claims{}))
		w.refuses(t, strange(t, good), agent.ErrUnknownKey)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	token := cold.Token(t, agenttest.Claims{})
	go func() {
		_, err := w.verifier.Verify(ctx, token, audience)
		gone <- err
	}()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrRefused) {
		t.Errorf("the caller who gave up got %v", err)
	}
	close(release)
	wg.Wait()
	if slow.Fetches() != 2 || cold.Fetches() != 1 {
		t.Errorf("%d and %d fetches, want 2 and 1", slow.Fetches(), cold.Fetches())
	}
}

// A server that fails from the start is asked once per cooldown.
func TestColdFailureIsNotHammered(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	pa.Break()
	for range 50 {
		w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrKeysMissing)
	}
	if pa.Fetches() != 1 {
		t.Errorf("%d fetches, want 1", pa.Fetches())
	}
	pa.Publish(pa.PublicJWK())
	w.clock.Advance(10 * time.Second)
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

// An agent that moves its key set leaves the old one behind.
func TestMovedKeySetCountsAlone(t *testing.T) {
	w := newWorld(t)
	pa, elsewhere := w.pa(t), agenttest.New(t)
	token := pa.Token(t, agenttest.Claims{})
	w.accepts(t, token)
	moved := pa.Agent()
	moved.JWKSURI = elsewhere.JWKSURI
	if err := w.registry.Register(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	w.refuses(t, token, agent.ErrUnknownKey)
	pa.Use(elsewhere.Key())
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func body(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}
