package transit_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
)

// One caller at a time gets one call each; many at once share few.
func TestConcurrentSignaturesAreGathered(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	for range 20 {
		if err := b.sign(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if calls, signed := b.number(t, "countersign_vault_batch_size"); calls != 20 || signed != 20 {
		t.Errorf("alone: %d calls for %.0f signatures", calls, signed)
	}
	const callers, each = 100, 20
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if err := b.sign(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	calls, signed := b.number(t, "countersign_vault_batch_size")
	if average := (signed - 20) / float64(calls-20); average < 10 {
		t.Errorf("together: %.1f signatures in a call", average)
	} else {
		t.Logf("together: %.1f signatures in a call", average)
	}
}

// One Brand signs as fast as it can from hundreds of callers; another's single
// signatures all come, each within its deadline.
func TestNoisyBrandStarvesNobody(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	signingtest.Create(t, b, signingtest.Shop, 1, signing.ES256)
	stop := make(chan struct{})
	var noise atomic.Int64
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if b.sign(t.Context()) == nil {
					noise.Add(1)
				}
			}
		})
	}
	var worst time.Duration
	for range 50 {
		start := time.Now()
		if r := b.Sign(t.Context(), signingtest.Shop, []signing.Job{{Version: 1, Alg: signing.ES256}})[0]; r.Err != nil {
			t.Error(r.Err)
		}
		worst = max(worst, time.Since(start))
	}
	close(stop)
	wg.Wait()
	t.Logf("the slowest of 50 took %s beside %d of the noisy Brand", worst, noise.Load())
}
