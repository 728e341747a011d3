package tenants

import (
	"context"
	"sync"
	"time"
)

// Memo remembers, per key, what load answered, and lets callers that ask for
// the same key at the same time share one load. Errors are never remembered.
type Memo[K comparable, V any] struct {
	// Fresh is how long an answer serves without asking again.
	Fresh time.Duration
	// Stale is how long an answer may still serve when asking again fails.
	Stale time.Duration
	// Load fetches the value. It gets a context that outlives the caller, so
	// that one visitor going away does not fail those who wait with him.
	Load func(context.Context, K) (V, error)
	// Missing tells errors that are answers ("there is none") from failures;
	// an old value never papers over them. May be nil.
	Missing func(error) bool
	Now     func() time.Time

	mu      sync.Mutex
	entries map[K]*memoEntry[V]
}

type memoEntry[V any] struct {
	value   V
	loaded  time.Time // zero: never
	loading *memoLoad[V]
}

type memoLoad[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// memoMax bounds the memory that made-up keys can take.
const memoMax = 10_000

const memoLoadTimeout = 5 * time.Second

// Get returns the value for key.
func (m *Memo[K, V]) Get(ctx context.Context, key K) (V, error) {
	m.mu.Lock()
	e := m.entries[key]
	if e == nil {
		if m.entries == nil || len(m.entries) >= memoMax {
			m.entries = make(map[K]*memoEntry[V])
		}
		e = &memoEntry[V]{}
		m.entries[key] = e
	}
	now := m.Now()
	if age := now.Sub(e.loaded); !e.loaded.IsZero() && age >= 0 && age < m.Fresh {
		defer m.mu.Unlock()
		return e.value, nil
	}
	l := e.loading
	if l == nil {
		l = &memoLoad[V]{done: make(chan struct{})}
		e.loading = l
		m.mu.Unlock()
		m.fill(context.WithoutCancel(ctx), key, e, l)
	} else {
		m.mu.Unlock()
	}
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var zero V
		return zero, ctx.Err()
	}
}

func (m *Memo[K, V]) fill(ctx context.Context, key K, e *memoEntry[V], l *memoLoad[V]) {
	ctx, cancel := context.WithTimeout(ctx, memoLoadTimeout)
	defer cancel()
	l.value, l.err = m.Load(ctx, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	e.loading = nil
	switch now := m.Now(); {
	case l.err == nil:
		e.value, e.loaded = l.value, now
	case m.Missing != nil && m.Missing(l.err):
		if m.entries[key] == e {
			delete(m.entries, key)
		}
	case !e.loaded.IsZero() && now.Sub(e.loaded) < m.Stale:
		l.value, l.err = e.value, nil
	}
	close(l.done)
}

// Forget drops what is remembered for key, after a change made here.
func (m *Memo[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}
