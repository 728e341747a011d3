package transit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign.dev/authority/signing"
)

// patient is a breaker before a server that is well or not.
type patient struct {
	*breaker
	well   atomic.Bool
	probes atomic.Int32
}

func breaking(t *testing.T, f func(t *testing.T, p *patient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		work := new(sync.WaitGroup)
		p := new(patient)
		p.breaker = newBreaker(ctx, work, func(context.Context) error {
			p.probes.Add(1)
			if !p.well.Load() {
				return errors.New("unwell")
			}
			return nil
		}, slog.New(slog.DiscardHandler), newMetrics(nil, "test"))
		f(t, p)
		cancel()
		work.Wait()
	})
}

// end makes a call that ends so, and tells whether it was let through.
func (p *patient) end(k kind) bool {
	leave, err := p.enter()
	if err != nil {
		return false
	}
	leave(k, k != cancelled)
	return true
}

func (p *patient) open(t *testing.T) {
	t.Helper()
	for range tolerance {
		if !p.end(timedOut) {
			t.Fatal("opened too early")
		}
	}
	if p.end(ok) {
		t.Fatal("did not open")
	}
}

// R85: after some outages in a row nobody waits any more; what one key's call
// ends with is no outage (R86), and a caller's going away says nothing.
func TestBreakerOpensAfterOutagesInARow(t *testing.T) {
	breaking(t, func(t *testing.T, p *patient) {
		for range 3 * tolerance {
			for _, k := range []kind{unreachable, timedOut, sealed, cancelled, broken} {
				if !p.end(k) {
					t.Fatalf("opened by %s", k)
				}
			}
			p.end(ok)
		}
		p.open(t)
		_, err := p.enter()
		if !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if p.check() == nil {
			t.Error("readiness does not know")
		}
	})
}

// R84: found again by itself, without traffic, within two seconds.
func TestBreakerHealsByItself(t *testing.T) {
	breaking(t, func(t *testing.T, p *patient) {
		p.open(t)
		time.Sleep(time.Hour)
		if p.end(ok) {
			t.Fatal("let a call through to a server that is unwell")
		}
		// A probe at most twice a second, for every instance there is.
		if n := p.probes.Load(); n < 7_000 || n > 14_500 {
			t.Errorf("%d probes in an hour", n)
		}
		p.well.Store(true)
		time.Sleep(probePause + time.Millisecond)
		if p.check() != nil || !p.end(ok) || !p.end(ok) {
			t.Fatal("still open")
		}
	})
}

// During the trial one call finds out; the others are answered at once.
func TestTrialLetsOneCallPass(t *testing.T) {
	breaking(t, func(t *testing.T, p *patient) {
		p.open(t)
		p.well.Store(true)
		time.Sleep(probePause + time.Millisecond)
		leave, err := p.enter()
		if err != nil {
			t.Fatal(err)
		}
		if p.end(ok) {
			t.Error("a second call passed")
		}
		leave(timedOut, true)
		if p.end(ok) {
			t.Error("closed though the trial failed")
		}
		time.Sleep(probePause + time.Millisecond)
		// One that is called off frees the place and decides nothing.
		if !p.end(cancelled) || !p.end(ok) || !p.end(ok) {
			t.Error("the next trial did not close it")
		}
	})
}

// Calls that began before it opened end late; they neither close it nor spoil
// the trial.
func TestLateAnswersDoNotCount(t *testing.T) {
	breaking(t, func(t *testing.T, p *patient) {
		var late []func(kind, bool)
		for range 4 {
			leave, err := p.enter()
			if err != nil {
				t.Fatal(err)
			}
			late = append(late, leave)
		}
		p.open(t)
		late[0](ok, true)
		late[1](timedOut, true)
		if p.end(ok) {
			t.Error("a late answer closed it")
		}
		p.well.Store(true)
		time.Sleep(probePause + time.Millisecond)
		trial, err := p.enter()
		if err != nil {
			t.Fatal(err)
		}
		late[2](timedOut, true)
		late[3](ok, true)
		if p.end(ok) {
			t.Error("a late answer ended the trial")
		}
		trial(ok, true)
		if !p.end(ok) {
			t.Error("still open")
		}
	})
}
