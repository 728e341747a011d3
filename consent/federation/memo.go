package federation

import (
	"context"
	"sync"
	"time"
)

// memo remembers something fetched: a result for a while, a failure for a moment. At
// most one fetch runs at a time; all who ask meanwhile wait for it, each no longer
// than their own context allows.
type memo[T any] struct {
	mu     sync.Mutex
	value  T
	number int       // of the fetch that brought value; 0 is none yet
	at     time.Time // of that fetch
	err    error     // of the last fetch, if it failed
	failed time.Time
	flight chan struct{} // closed when the running fetch has ended
}

type limits struct {
	now               func() time.Time
	base              context.Context
	patience          time.Duration // of one fetch
	life, failureLife time.Duration
}

// get returns the value and its number. The value is younger than l.life and its
// number is above after: whoever found value 3 wanting asks for one after 3.
func (m *memo[T]) get(ctx context.Context, l limits, after int, fetch func(context.Context) (T, error)) (T, int, error) {
	var none T
	for {
		m.mu.Lock()
		now := l.now()
		if m.number > after && now.Sub(m.at) < l.life {
			defer m.mu.Unlock()
			return m.value, m.number, nil
		}
		if m.err != nil && now.Sub(m.failed) < l.failureLife {
			defer m.mu.Unlock()
			return none, 0, m.err
		}
		if m.flight == nil {
			m.flight = make(chan struct{})
			go m.run(l, m.flight, fetch)
		}
		landed := m.flight
		m.mu.Unlock()
		select {
		case <-landed:
		case <-ctx.Done():
			return none, 0, unreachable("wait for the provider", ctx.Err())
		}
	}
}

// run does not use the asking request's context: if that person leaves, the others
// who wait still want the answer.
func (m *memo[T]) run(l limits, landed chan struct{}, fetch func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(l.base, l.patience)
	defer cancel()
	value, err := fetch(ctx)

	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.err, m.failed = err, l.now()
	} else {
		m.value, m.at, m.err = value, l.now(), nil
		m.number++
	}
	m.flight = nil
	close(landed)
}

// latest is what the last fetch that succeeded brought, however old it is; number
// 0 is none.
func (m *memo[T]) latest() (value T, number int, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value, m.number, m.at
}

// flying reports whether a fetch is under way.
func (m *memo[T]) flying() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flight != nil
}
