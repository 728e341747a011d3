package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"countersign.dev/tenants/egress"
	"github.com/prometheus/client_golang/prometheus"
)

// defaultRemember is some 40 MB of proven tokens.
const defaultRemember = 100_000

// Caller is who a pa-jwt proved to be calling. The User, as the agent knows
// them, is the pair of Issuer and Subject.
type Caller struct {
	Issuer  string
	Subject string
	Expires time.Time // the token's exp; it is accepted for 30 s beyond
}

// Config is what a Verifier needs.
type Config struct {
	Registry *Registry
	Fetch    *egress.Client        // fetches agents' published keys
	Now      func() time.Time      // nil: time.Now
	Log      *slog.Logger          // hears of fetches that fail; nil: nobody
	Metrics  prometheus.Registerer // nil: none
	Remember int                   // how many proven tokens; 0: 100,000
}

// Verifier tells who is calling. It may be used by many goroutines at once, and
// any number of Verifiers may share a database.
type Verifier struct {
	registry *Registry
	fetch    *egress.Client
	now      func() time.Time
	log      *slog.Logger
	metrics  *metrics
	proven   *proven
	searches *searches

	mu    sync.Mutex
	rings map[string]*keyring // by issuer; only of agents that we know
}

// NewVerifier returns a Verifier.
func NewVerifier(c Config) *Verifier {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Remember == 0 {
		c.Remember = defaultRemember
	}
	v := &Verifier{
		registry: c.Registry,
		fetch:    c.Fetch,
		now:      c.Now,
		log:      c.Log,
		metrics:  newMetrics(c.Metrics),
		proven:   newProven(c.Remember),
		rings:    map[string]*keyring{},
	}
	v.searches = &searches{lookUp: v.lookUp, now: c.Now, known: map[string]*search{}, asked: map[string]int{}}
	return v
}

// Verify tells who made the pa-jwt, which must be meant for the audience (rules
// M1 to M6). An error that is not ErrRefused is no verdict: try again later.
func (v *Verifier) Verify(ctx context.Context, text, audience string) (Caller, error) {
	said, outcome, err := v.verify(ctx, text, audience)
	v.metrics.count(outcome, err)
	if err != nil {
		return Caller{}, fmt.Errorf("verify pa-jwt: %w", err)
	}
	v.came(ctx, said.issuer)
	return said.caller(), nil
}

// came has the registry know that the agent is still there. That this fails keeps
// nobody out: it is written down at the next call.
func (v *Verifier) came(ctx context.Context, issuer string) {
	if err := v.registry.came(ctx, issuer); err != nil && ctx.Err() == nil {
		v.log.WarnContext(ctx, "a visit was not taken down", "agent", issuer, "error", err)
	}
}

func (v *Verifier) verify(ctx context.Context, text, audience string) (claims, string, error) {
	if len(text) > maxToken {
		return claims{}, "", ErrTooLong
	}
	now := v.now()
	id := tokenID(sha256.Sum256([]byte(text)))
	if known, ok := v.proven.find(id, now); ok {
		_, set, err := v.admit(ctx, known.claims, now, audience)
		if err != nil {
			return claims{}, "", err
		}
		if set.holds(known.key) {
			return known.claims, remembered, nil
		}
		// Its key is gone: only looking again can tell.
	}
	t, err := parse(text)
	if err != nil {
		return claims{}, "", err
	}
	ring, set, err := v.admit(ctx, t.claims, now, audience)
	if err != nil {
		return claims{}, "", err
	}
	key, err := prove(ctx, ring, set, t)
	if err != nil {
		return claims{}, "", err
	}
	v.proven.remember(id, proof{claims: t.claims, key: key}, now)
	return t.claims, verified, nil
}

// admit is everything about a token but its signature. It returns the keys that
// its agent publishes.
func (v *Verifier) admit(ctx context.Context, said claims, now time.Time, audience string) (*keyring, *keySet, error) {
	if err := said.valid(now, audience); err != nil {
		return nil, nil, err
	}
	a, err := v.Known(ctx, said.issuer)
	if err != nil {
		return nil, nil, err
	}
	ring := v.ring(a)
	set, err := ring.usable(ctx)
	if err != nil {
		return nil, nil, err
	}
	return ring, set, nil
}

// Known is the agent with that issuer, which may be a moment old: ErrIssuer where it
// is not registered and ErrDisabled where it may not act, both ErrRefused.
func (v *Verifier) Known(ctx context.Context, issuer string) (Agent, error) {
	a, err := v.registry.current(ctx, issuer)
	switch {
	case errors.Is(err, ErrNotRegistered):
		return Agent{}, ErrIssuer
	case err != nil:
		return Agent{}, err
	case !a.Enabled:
		return Agent{}, ErrDisabled
	}
	return a, nil
}

// prove checks the signature, with keys fetched anew if none of set made it.
func prove(ctx context.Context, ring *keyring, set *keySet, t token) (keyID, error) {
	for {
		key, err := set.prove(t)
		if !errors.Is(err, ErrUnknownKey) {
			return key, err
		}
		if set, err = ring.beyond(ctx, set); err != nil {
			return keyID{}, err
		}
	}
}

// ring is the keyring of a. An agent that moved its key set begins anew: what it
// published at the old place counts no more.
func (v *Verifier) ring(a Agent) *keyring {
	v.mu.Lock()
	defer v.mu.Unlock()
	ring := v.rings[a.Issuer]
	if ring == nil || ring.uri != a.JWKSURI {
		ring = &keyring{
			uri:   a.JWKSURI,
			fetch: func(ctx context.Context) (*keySet, error) { return v.fetchKeys(ctx, a) },
			now:   v.now,
			stale: v.metrics.stale.Inc,
		}
		v.rings[a.Issuer] = ring
	}
	return ring
}

func (v *Verifier) fetchKeys(ctx context.Context, a Agent) (*keySet, error) {
	raw, err := v.fetch.GetJSON(ctx, a.JWKSURI)
	var set *keySet
	if err == nil {
		set, err = parseKeySet(raw)
	}
	v.metrics.fetched(err)
	if err != nil {
		// Nobody waits for a fetch in the background: this is its only trace.
		v.log.WarnContext(ctx, "agent's keys cannot be fetched", "agent", a.Issuer, "error", err)
	}
	return set, err
}
