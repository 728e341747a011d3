package transit_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
)

// quickest is the best of some tries: what the code costs, not the neighbours.
func quickest(tries int, do func()) time.Duration {
	best := time.Hour
	for range tries {
		start := time.Now()
		do()
		best = min(best, time.Since(start))
	}
	return best
}

// R83: connections refused. Every caller hears so at once, soon without a try;
// after the restart signatures come by themselves.
func TestKilledVault(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	w.Kill()
	took := quickest(3, func() {
		if err := b.sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
	if took > 300*time.Millisecond {
		t.Errorf("took %s to hear that nobody listens", took)
	}
	closes(t, b)
	if err := b.Check(t.Context()); err == nil {
		t.Error("readiness does not know")
	}
	w.Restart(t)
	w.Unseal(t)
	if took := b.recovers(t); took > 2*time.Second {
		t.Errorf("recovered after %s", took)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// closes drives the breaker open and sees that nobody asks Vault any more.
func closes(t *testing.T, b *measured) {
	t.Helper()
	for range 10 {
		_ = b.sign(t.Context())
	}
	if state, _ := b.number(t, "countersign_vault_breaker"); state != 2 {
		t.Errorf("breaker is in state %d", state)
	}
	const tries = 20
	before, _ := b.number(t, "countersign_vault_errors_total", "open")
	took := quickest(tries, func() {
		if err := b.sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
	if after, _ := b.number(t, "countersign_vault_errors_total", "open"); after != before+tries {
		t.Errorf("%d of %d were answered by the breaker", after-before, tries)
	}
	if took > 10*time.Millisecond {
		t.Errorf("an open breaker took %s to answer", took)
	}
}

// R84: sealed. Readiness says that word; unsealing is enough.
func TestSealedVault(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	w.Seal(t)
	if err := b.sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := b.Create(t.Context(), signingtest.Hotel, 1, signing.ES256); !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("create: %v", err)
	}
	if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("readiness says %v", err)
	}
	closes(t, b)
	w.Unseal(t)
	if took := b.recovers(t); took > 2*time.Second {
		t.Errorf("recovered after %s", took)
	}
}

// The service may start before its Vault is unsealed, or is there at all.
func TestStartBeforeVault(t *testing.T) {
	w := newWorld(t)
	w.Kill()
	b := w.backend(t)
	if err := b.sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	w.Restart(t)
	if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("readiness says %v", err)
	}
	w.Unseal(t)
	if _, err := b.Create(t.Context(), signingtest.Hotel, 1, signing.ES256); err != nil {
		t.Fatal(err)
	}
	b.recovers(t)
}

// R85: hung. Callers leave at their deadline, the work behind them is bounded,
// another Vault's Brands notice nothing, and it heals.
func TestHungVault(t *testing.T) {
	w := newWorld(t)
	const deadline = 2 * time.Second
	b := w.backend(t, func(c *transit.Config) { c.Timeout = deadline })
	other := newWorld(t).backend(t, func(c *transit.Config) { c.Name = "vault-2" })
	for _, each := range []*measured{b, other} {
		signingtest.Create(t, each, signingtest.Hotel, 1, signing.ES256)
		each.recovers(t)
	}
	before := runtime.NumGoroutine()
	w.Pause(t)
	const callers = 500
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			start := time.Now()
			if err := b.sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if took := time.Since(start); took > deadline+time.Second {
				t.Errorf("a caller waited %s", took)
			}
		})
	}
	if err := other.sign(t.Context()); err != nil {
		t.Errorf("the other Vault: %v", err)
	}
	// A caller's own deadline is shorter than ours.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.sign(ctx); !errors.Is(err, signing.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if now := runtime.NumGoroutine(); now > before+callers+100 {
		t.Errorf("%d goroutines for %d callers", now-before, callers)
	}
	wg.Wait()
	// The callers are gone; what is left is the calls under way, two of this key.
	if now := runtime.NumGoroutine(); now > before+40 {
		t.Errorf("%d goroutines stay behind", now-before)
	}
	closes(t, b)
	w.Resume(t)
	if took := b.recovers(t); took > 2*time.Second {
		t.Errorf("recovered after %s", took)
	}
}

// R86: a version that may not sign is one call, an error that nobody retries, and
// nothing to the Brand beside it.
func TestForbiddenVersionIsAskedForOnce(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	signingtest.Create(t, b, signingtest.Hotel, 2, signing.ES256)
	w.operator(t, "transit/keys/tenant-harbor-hotel-es256/config", map[string]any{"min_decryption_version": 2, "min_encryption_version": 2})
	before := b.calls(t)
	const asked = 20
	for range asked {
		if err := b.signWith(t.Context(), 1); !errors.Is(err, signing.ErrNoKey) || errors.Is(err, signing.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
	}
	if n := b.calls(t) - before; n != asked {
		t.Errorf("%d calls for %d signatures", n, asked)
	}
	if err := b.signWith(t.Context(), 2); err != nil {
		t.Errorf("the version beside it: %v", err)
	}
}

// A Brand's key that was lost in Vault is an alarm and no outage of the others.
func TestLostKeyIsAnAlarm(t *testing.T) {
	w := newWorld(t)
	var log book
	b := w.backend(t, logTo(&log))
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	signingtest.Create(t, b, signingtest.Shop, 1, signing.ES256)
	w.operator(t, "transit/keys/tenant-harbor-hotel-es256/config", map[string]any{"deletion_allowed": true})
	if _, err := w.root.Logical().DeleteWithContext(t.Context(), "transit/keys/tenant-harbor-hotel-es256"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := b.sign(t.Context()); !errors.Is(err, signing.ErrNoKey) {
			t.Fatalf("%v", err)
		}
	}
	r := b.Sign(t.Context(), signingtest.Shop, []signing.Job{{Version: 1, Alg: signing.ES256}})[0]
	if r.Err != nil {
		t.Errorf("the Brand beside it: %v", r.Err)
	}
	if n := strings.Count(log.String(), "ALARM"); n == 0 || n > 10 {
		t.Errorf("%d alarms:\n%s", n, log.String())
	}
}
