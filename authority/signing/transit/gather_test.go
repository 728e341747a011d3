package transit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// journal is a gatherer's other side: each call takes a while and is written down.
type journal struct {
	took  func(laneKey) time.Duration
	began time.Time

	mu    sync.Mutex
	calls []call
}

type call struct {
	key  laneKey
	size int
	at   time.Duration
}

func (j *journal) send(key laneKey, items []*item) {
	j.mu.Lock()
	j.calls = append(j.calls, call{key, len(items), time.Since(j.began)})
	j.mu.Unlock()
	time.Sleep(j.took(key)) // the bubble's clock
	for _, it := range items {
		it.result <- signing.Result{Signature: []byte{1}}
	}
}

// made returns the calls so far, in order.
func (j *journal) made() []call {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls)
}

const callTime = 10 * time.Millisecond

// gathering runs f in a bubble whose clock moves only when everybody waits.
func gathering(t *testing.T, l limits, f func(t *testing.T, g *gatherer, j *journal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{began: time.Now(), took: func(laneKey) time.Duration { return callTime }}
		g := newGatherer(l, newMetrics(nil, "test"), j.send)
		f(t, g, j)
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.lanes) != 0 || len(g.line) != 0 || g.inFlight != 0 || g.queued != 0 {
			t.Errorf("left behind: %d lanes, %d in line, %d in flight, %d queued", len(g.lanes), len(g.line), g.inFlight, g.queued)
		}
	})
}

func lanes(brand tenants.BrandID) laneKey { return laneKey{brand, signing.ES256, 1} }

func ask(t *testing.T, g *gatherer, key laneKey, n int) []*item {
	t.Helper()
	items := make([]*item, n)
	for i := range items {
		items[i] = &item{ctx: t.Context(), result: make(chan signing.Result, 1)}
		if err := g.add(key, items[i]); err != nil {
			t.Fatal(err)
		}
	}
	return items
}

func TestIdleSignatureGoesAtOnce(t *testing.T) {
	gathering(t, limits{}, func(t *testing.T, g *gatherer, j *journal) {
		for range 3 {
			ask(t, g, lanes("a"), 1)
			synctest.Wait()
			time.Sleep(callTime)
			synctest.Wait()
		}
		for i, c := range j.made() {
			if want := time.Duration(i) * callTime; c.size != 1 || c.at != want {
				t.Errorf("call %d: %d signatures at %s, not 1 at %s", i, c.size, c.at, want)
			}
		}
	})
}

func TestThoseWhoComeMeanwhileShareTheNextCall(t *testing.T) {
	gathering(t, limits{perLane: 1}, func(t *testing.T, g *gatherer, j *journal) {
		ask(t, g, lanes("a"), 100)
		time.Sleep(3 * callTime)
		if calls := j.made(); len(calls) != 2 || calls[0].size != 1 || calls[1].size != 99 {
			t.Errorf("%+v", calls)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	gathering(t, limits{perLane: 1, batch: 10, slowBatch: 2}, func(t *testing.T, g *gatherer, j *journal) {
		ask(t, g, lanes("a"), 41)
		ask(t, g, laneKey{"b", signing.RS256, 1}, 9)
		time.Sleep(time.Second)
		var es, rs int
		for _, c := range j.made() {
			if c.key.alg == signing.ES256 && c.size > 10 || c.key.alg == signing.RS256 && c.size > 2 {
				t.Errorf("%d signatures in a call of %s", c.size, c.key.alg)
			}
			if c.key.alg == signing.ES256 {
				es++
			} else {
				rs++
			}
		}
		if es != 5 || rs != 5 {
			t.Errorf("%d and %d calls: %+v", es, rs, j.made())
		}
	})
}

// One Brand floods; another's single signature waits for one call at most, and
// many others' share what there is.
func TestFloodDoesNotStarveOthers(t *testing.T) {
	gathering(t, limits{inFlight: 2, perLane: 2, batch: 10}, func(t *testing.T, g *gatherer, j *journal) {
		ask(t, g, lanes("noisy"), 1000)
		quiet := []tenants.BrandID{"b", "c", "d", "e"}
		for _, brand := range quiet {
			ask(t, g, lanes(brand), 1)
		}
		time.Sleep(time.Hour)
		late := 0
		for i, c := range j.made() {
			if c.key.brand != "noisy" {
				late = i
			}
		}
		// Two calls were under way; then each lane's turn comes once a round.
		if late > 2+2*len(quiet) {
			t.Errorf("the last quiet Brand was call %d", late)
		}
	})
}

// A key whose calls hang holds its own calls and no others'.
func TestSlowKeyHoldsOnlyItself(t *testing.T) {
	gathering(t, limits{inFlight: 4, perLane: 2}, func(t *testing.T, g *gatherer, j *journal) {
		j.took = func(key laneKey) time.Duration {
			if key.brand == "slow" {
				return time.Minute
			}
			return callTime
		}
		ask(t, g, lanes("slow"), 50)
		for _, it := range ask(t, g, lanes("quick"), 50) {
			start := time.Now()
			<-it.result
			if waited := time.Since(start); waited > 2*callTime {
				t.Fatalf("waited %s", waited)
			}
		}
		time.Sleep(time.Hour)
	})
}

func TestFullQueueAnswersAtOnce(t *testing.T) {
	gathering(t, limits{inFlight: 1, perLane: 1, laneQueue: 5, queue: 8}, func(t *testing.T, g *gatherer, j *journal) {
		ask(t, g, lanes("a"), 6) // one travels, five wait
		err := g.add(lanes("a"), &item{ctx: t.Context(), result: make(chan signing.Result, 1)})
		if !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("a full lane: %v", err)
		}
		ask(t, g, lanes("b"), 3) // others have room
		err = g.add(lanes("c"), &item{ctx: t.Context(), result: make(chan signing.Result, 1)})
		if !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("a full queue: %v", err)
		}
		time.Sleep(time.Hour)
	})
}

// Nobody signs for a caller that has gone, and its going takes nothing from those
// it would have travelled with.
func TestGoneCallersAreNotSent(t *testing.T) {
	gathering(t, limits{perLane: 1}, func(t *testing.T, g *gatherer, j *journal) {
		ask(t, g, lanes("a"), 1)
		gone, cancel := context.WithCancel(t.Context())
		left := &item{ctx: gone, result: make(chan signing.Result, 1)}
		if err := g.add(lanes("a"), left); err != nil {
			t.Fatal(err)
		}
		stays := ask(t, g, lanes("a"), 2)
		cancel()
		if r := left.wait(gone); !errors.Is(r.Err, signing.ErrUnavailable) {
			t.Errorf("%+v", r)
		}
		for _, it := range stays {
			if r := it.wait(t.Context()); r.Err != nil {
				t.Error(r.Err)
			}
		}
		if calls := j.made(); len(calls) != 2 || calls[1].size != 2 {
			t.Errorf("%+v", calls)
		}
	})
}
