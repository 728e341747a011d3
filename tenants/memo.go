package tenants

import (
	"context"
	"errors"
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
	loaded  time.Time // when its load began; zero: never
	retry   time.Time // after a failure, not before
	loading *memoLoad[V]
}

type memoLoad[V any] struct {
	begun time.Time
	done  chan struct{}
	value V
	err   error
}

// memoMax bounds the memory that made-up keys can take.
const memoMax = 10_000

var errMemoPanic = errors.New("a load did not return")

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
	age := now.Sub(e.loaded)
	if !e.loaded.IsZero() && age >= 0 && (age < m.Fresh || age < m.Stale && now.Before(e.retry)) {
		defer m.mu.Unlock()
		return e.value, nil
	}
	l := e.loading
	if l == nil {
		l = &memoLoad[V]{begun: now, done: make(chan struct{})}
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
	l.err = errMemoPanic // what the others hear if Load does not return
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(key, e, l)
		close(l.done)
	}()
	l.value, l.err = m.Load(ctx, key)
}

// keep writes down what came of a load. Its age counts from when the load began:
// what was written after that, a slow load may not have read. A key that never had a value leaves
// nothing behind, or made-up keys would crowd out the real ones; a key that has
// one serves it for a while before the trouble is met again.
func (m *Memo[K, V]) keep(key K, e *memoEntry[V], l *memoLoad[V]) {
	e.loading = nil
	now := m.Now()
	missing := l.err != nil && m.Missing != nil && m.Missing(l.err)
	switch {
	case l.err == nil:
		e.value, e.loaded, e.retry = l.value, l.begun, time.Time{}
	case missing || e.loaded.IsZero():
		if m.entries[key] == e {
			delete(m.entries, key)
		}
	case now.Sub(e.loaded) < m.Stale:
		e.retry = now.Add(m.Fresh)
		l.value, l.err = e.value, nil
	}
}

// Last returns what is remembered for key, however old: for a Load that may find
// that it still stands.
func (m *Memo[K, V]) Last(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil && !e.loaded.IsZero() {
		return e.value, true
	}
	var zero V
	return zero, false
}

// Forget drops what is remembered for key, after a change made here.
func (m *Memo[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}
