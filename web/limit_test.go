package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/web"
)

// ticker is a clock that only the test turns.
type ticker struct {
	mu sync.Mutex
	at time.Time
}

func (c *ticker) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *ticker) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A budget is spent, comes back evenly, and never grows beyond its size.
func TestLimiterKeepsItsBudget(t *testing.T) {
	clock := &ticker{at: time.Unix(1_800_000_000, 0)}
	l := web.NewLimiter(web.Limit{Burst: 5, Per: 10 * time.Second}, clock.Now)
	spend := func(tries int) (got int) {
		for range tries {
			if _, ok := l.Take("a"); ok {
				got++
			}
		}
		return got
	}
	if got := spend(20); got != 5 {
		t.Errorf("%d at once", got)
	}
	wait, ok := l.Take("a")
	if ok || wait != 2*time.Second {
		t.Errorf("wait %s, %v", wait, ok)
	}
	clock.advance(wait)
	if got := spend(3); got != 1 {
		t.Errorf("%d after the wait that was told", got)
	}
	clock.advance(time.Hour)
	if got := spend(20); got != 5 {
		t.Errorf("%d after an hour", got)
	}
	clock.advance(-time.Hour) // a clock that was set back
	if got := spend(5); got != 0 {
		t.Errorf("%d from a clock that was set back", got)
	}
	if _, ok := l.Take("b"); !ok {
		t.Error("one key's spending is another's")
	}
}

// Many at once get no more than one after the other.
func TestLimiterInParallel(t *testing.T) {
	l := web.NewLimiter(web.Limit{Burst: 100, Per: time.Hour}, (&ticker{at: time.Unix(0, 0)}).Now)
	var all sync.WaitGroup
	var got atomic.Int32
	for range 20 {
		all.Go(func() {
			for range 50 {
				if _, ok := l.Take("a"); ok {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got.Load() != 100 {
		t.Errorf("%d of 100", got.Load())
	}
}

// Made-up keys cost bounded memory, and whoever still comes keeps their place.
func TestLimiterForgetsTheOldest(t *testing.T) {
	l := web.NewLimiter(web.Limit{Burst: 3, Per: time.Hour}, (&ticker{at: time.Unix(0, 0)}).Now)
	for i := range 100_000 {
		l.Take(fmt.Sprint("made-up", i))
		if i%1000 == 0 {
			if _, ok := l.Take("here"); ok != (i/1000 < 3) {
				t.Fatalf("after %d keys: %v", i, ok)
			}
		}
	}
	if n := l.Known(); n > 20_000 {
		t.Errorf("%d keys in memory", n)
	}
}

// B95: behind our proxy the last hop counts, not what the visitor wrote before
// it; an IPv6 /64 is one visitor; an unknown proxy's word is nothing.
func TestLimitedByTrustedHop(t *testing.T) {
	addresses := web.Addresses{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, tt := range []struct {
		name   string
		remote func(int) string
		header func(int) string
		passed int
	}{
		{"made-up header before our proxy's", func(int) string { return "10.0.0.1:1" }, func(i int) string { return fmt.Sprintf("203.0.113.%d, 198.51.100.9", i) }, 10},
		{"made-up header, no proxy of ours", func(int) string { return "198.51.100.9:1" }, func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }, 10},
		{"changing low bits", func(i int) string { return fmt.Sprintf("[2001:db8:1:2::%x]:1", i+1) }, func(int) string { return "" }, 10},
		{"changing low bits behind our proxy", func(int) string { return "10.0.0.1:1" }, func(i int) string { return fmt.Sprintf("2001:db8:1:2:%x::1", i) }, 10},
		{"many households", func(i int) string { return fmt.Sprintf("[2001:db8:1:%x::1]:1", i) }, func(int) string { return "" }, 40},
		{"many visitors behind our proxy", func(int) string { return "10.0.0.1:1" }, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := web.NewLimiter(web.Limit{Burst: 10, Per: time.Hour}, (&ticker{at: time.Unix(0, 0)}).Now)
			passed := 0
			h := web.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }),
				web.Limited(l, addresses.Of, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
			for i := range 40 {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.RemoteAddr = tt.remote(i)
				if f := tt.header(i); f != "" {
					r.Header.Set("X-Forwarded-For", f)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "360" {
					t.Fatalf("Retry-After %q", w.Header().Get("Retry-After"))
				}
			}
			if passed != tt.passed {
				t.Errorf("%d of 40 passed, want %d", passed, tt.passed)
			}
		})
	}
}
