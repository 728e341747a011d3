package web

import (
	"container/list"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Limit is a budget: so many at once, and so many again within Per.
type Limit struct {
	Burst int
	Per   time.Duration // in which a whole Burst comes back
}

// limiterKeys bounds the memory that made-up keys can take.
const limiterKeys = 20_000

// Limiter counts per key in the memory of this instance. When it knows too many
// keys it forgets whoever came longest ago: a flood of addresses costs memory
// for a while, and nobody their place.
type Limiter struct {
	limit Limit
	now   func() time.Time

	mu    sync.Mutex
	byKey map[string]*list.Element
	order *list.List // of *bucket, the latest first
}

type bucket struct {
	key  string
	left float64
	at   time.Time
}

// NewLimiter returns a Limiter. It panics without a budget.
func NewLimiter(limit Limit, now func() time.Time) *Limiter {
	if limit.Burst < 1 || limit.Per <= 0 {
		panic("web: a limit without a budget")
	}
	return &Limiter{limit: limit, now: now, byKey: make(map[string]*list.Element), order: list.New()}
}

// Take spends one of the key's budget. When there is none it says how long until
// there is; waiting costs nothing more.
func (l *Limiter) Take(key string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.bucket(key, now)
	rate := float64(l.limit.Burst) / l.limit.Per.Seconds()
	// A clock that was set back gives nothing and takes nothing.
	if past := now.Sub(b.at); past > 0 {
		b.left = min(float64(l.limit.Burst), b.left+past.Seconds()*rate)
		b.at = now
	}
	if b.left < 1 {
		return time.Duration((1 - b.left) / rate * float64(time.Second)), false
	}
	b.left--
	return 0, true
}

func (l *Limiter) bucket(key string, now time.Time) *bucket {
	if e, known := l.byKey[key]; known {
		l.order.MoveToFront(e)
		return e.Value.(*bucket)
	}
	if l.order.Len() >= limiterKeys {
		oldest := l.order.Back()
		delete(l.byKey, oldest.Value.(*bucket).key)
		l.order.Remove(oldest)
	}
	b := &bucket{key: key, left: float64(l.limit.Burst), at: now}
	l.byKey[key] = l.order.PushFront(b)
	return b
}

// Limited spends one of the budget of whatever key names for each request, and
// lets refuse answer, with Retry-After set, when there is none.
func Limited(l *Limiter, key func(*http.Request) string, refuse http.HandlerFunc) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if wait, ok := l.Take(key(r)); !ok {
				RetryAfter(w, wait)
				refuse(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// RetryAfter tells when to come again, in whole seconds and never too early.
func RetryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
}
