package transit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// The breaker stands before one Vault.
//
//	closed ──(tolerance failures in a row)──▶ open ──(health is good)──▶ trial
//	   ▲                                        ▲                         │  │
//	   └────────────(one call succeeds)─────────┼─────────────────────────┘  │
//	                                            └───────(it fails)───────────┘
//
// Open answers at once. A goroutine asks for the server's health meanwhile, so
// that no caller pays for finding out and recovery needs no traffic. During the
// trial one call at a time may pass.
type breaker struct {
	base    context.Context
	work    *sync.WaitGroup
	probe   func(context.Context) error
	log     *slog.Logger
	metrics *metrics

	mu       sync.Mutex
	state    breakerState
	failures int
	trying   bool  // a call of the trial is under way
	why      error // what opened it
}

type breakerState int

const (
	closed breakerState = iota
	trial
	opened
)

const (
	// tolerance is how many outages in a row open the breaker. One slow answer
	// among good ones never does.
	tolerance = 5
	// probePause is drawn between half of this and this. Two pauses, one hung
	// probe and one call end within two seconds (R84).
	probePause   = 500 * time.Millisecond
	probeTimeout = time.Second
)

func newBreaker(base context.Context, work *sync.WaitGroup, probe func(context.Context) error, log *slog.Logger, m *metrics) *breaker {
	return &breaker{base: base, work: work, probe: probe, log: log, metrics: m}
}

// enter asks to make a call. Whoever gets leave must call it once, with the
// call's end and whether that end says anything about the server.
func (b *breaker) enter() (leave func(end kind, counts bool), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base.Err() != nil {
		return nil, &failure{kind: open, err: errors.New("this backend is closed")}
	}
	if b.state == opened || b.state == trial && b.trying {
		return nil, &failure{kind: open, err: fmt.Errorf("not asked, since before: %w", b.why)}
	}
	tried := b.state == trial
	b.trying = tried
	return func(end kind, counts bool) { b.leave(tried, end, counts) }, nil
}

func (b *breaker) leave(tried bool, end kind, counts bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tried {
		b.trying = false
	}
	switch {
	case !counts || b.state == opened || b.state == trial && !tried:
		// A late answer to a call from before the breaker opened.
	case !end.outage():
		b.failures = 0
		b.become(closed)
	default:
		b.failures++
		if b.failures >= tolerance || tried {
			b.why = fmt.Errorf("%d calls in a row ended with %s", b.failures, end)
			b.become(opened)
			b.work.Go(b.heal)
		}
	}
}

// heal waits until the server says that it is well.
func (b *breaker) heal() {
	for {
		pause := time.NewTimer(probePause/2 + rand.N(probePause/2))
		select {
		case <-b.base.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		ctx, cancel := context.WithTimeout(b.base, probeTimeout)
		err := b.probe(ctx)
		cancel()
		b.mu.Lock()
		if err == nil {
			b.become(trial)
			b.mu.Unlock()
			return
		}
		b.why = err
		b.mu.Unlock()
	}
}

// become changes the state; mu is held.
func (b *breaker) become(s breakerState) {
	if b.state == s {
		return
	}
	b.state = s
	b.metrics.breaker.Set(float64(s))
	switch s {
	case opened:
		b.log.ErrorContext(b.base, "vault does not answer: signatures fail at once until it does", "why", b.why)
	case closed:
		b.log.InfoContext(b.base, "vault answers again")
	}
}

// check is nil unless the breaker is open.
func (b *breaker) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == opened {
		return &failure{kind: open, err: b.why}
	}
	return nil
}
