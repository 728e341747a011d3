package transit

import (
	"context"
	"errors"
	"sync"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// laneKey names one private key. Only signatures of one key can share a call.
type laneKey struct {
	brand   tenants.BrandID
	alg     signing.Alg
	version signing.Version
}

// item is one signature that somebody waits for.
type item struct {
	ctx    context.Context // of whoever waits
	digest [32]byte
	result chan signing.Result // holds one, so that answering never blocks
}

// lane is what waits for one key, oldest first.
type lane struct {
	key      laneKey
	waiting  []*item
	inFlight int
	ready    bool // stands in the gatherer's line
}

// gatherer turns concurrent signatures into few calls. There is no clock in it:
// who comes while nothing is under way goes at once, alone; who comes while calls
// of that key are under way waits for the first of them to end and goes with all
// who came meanwhile. So an idle server adds nothing, and the busier it is, the
// larger the batches.
//
// Lanes stand in line for the calls that may be under way at all and each takes
// one turn, whatever waits behind it; and no lane may have more than perLane
// calls. A Brand that floods, or whose key is slow, fills its own queue.
type gatherer struct {
	limits  limits
	metrics *metrics
	send    func(laneKey, []*item) // answers every item

	mu       sync.Mutex
	lanes    map[laneKey]*lane
	line     []*lane
	inFlight int
	queued   int
}

type limits struct {
	inFlight  int // calls, over all lanes
	perLane   int // calls of one lane
	batch     int // signatures in one call
	slowBatch int // the same for RS256, whose signatures take thirty times as long
	laneQueue int // waiting signatures of one lane
	queue     int // of all lanes
}

func (l limits) complete() limits {
	setDefault(&l.inFlight, defaultInFlight)
	setDefault(&l.perLane, 2) // one is answered while the other travels
	setDefault(&l.batch, 250)
	setDefault(&l.slowBatch, 25)
	setDefault(&l.laneQueue, 2_000)
	setDefault(&l.queue, 20_000)
	return l
}

func newGatherer(l limits, m *metrics, send func(laneKey, []*item)) *gatherer {
	return &gatherer{limits: l.complete(), metrics: m, send: send, lanes: make(map[laneKey]*lane)}
}

var errFull = &failure{kind: full, err: errors.New("too many signatures wait already")}

// add queues the items, or none of them when the queue has no room: waiting
// longer than a caller can is worse than being told to come again.
func (g *gatherer) add(key laneKey, items ...*item) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[key]
	waiting := 0
	if l != nil {
		waiting = len(l.waiting)
	}
	if waiting+len(items) > g.limits.laneQueue || g.queued+len(items) > g.limits.queue {
		g.metrics.failed(full)
		return errFull
	}
	if l == nil {
		l = &lane{key: key}
		g.lanes[key] = l
	}
	l.waiting = append(l.waiting, items...)
	g.queued += len(items)
	g.lineUp(l)
	g.dispatch()
	return nil
}

// lineUp gives the lane a place at the end of the line if it can use a turn; mu
// is held.
func (g *gatherer) lineUp(l *lane) {
	if !l.ready && len(l.waiting) > 0 && l.inFlight < g.limits.perLane {
		l.ready = true
		g.line = append(g.line, l)
	}
}

// dispatch starts as many calls as may be under way; mu is held.
func (g *gatherer) dispatch() {
	for g.inFlight < g.limits.inFlight && len(g.line) > 0 {
		l := g.line[0]
		g.line[0] = nil
		g.line = g.line[1:]
		l.ready = false
		batch := g.take(l)
		g.lineUp(l)
		if len(batch) == 0 {
			g.forget(l)
			continue
		}
		l.inFlight++
		g.inFlight++
		go g.run(l, batch)
	}
	g.metrics.queue.Set(float64(g.queued))
	g.metrics.flying.Set(float64(g.inFlight))
}

// take removes the next batch, without those whose caller has gone; mu is held.
func (g *gatherer) take(l *lane) []*item {
	most := g.limits.batch
	if l.key.alg == signing.RS256 {
		most = g.limits.slowBatch
	}
	var batch []*item
	n := 0
	for n < len(l.waiting) && len(batch) < most {
		if it := l.waiting[n]; it.ctx.Err() == nil {
			batch = append(batch, it)
		}
		l.waiting[n] = nil
		n++
	}
	l.waiting = l.waiting[n:]
	g.queued -= n
	return batch
}

func (g *gatherer) run(l *lane, batch []*item) {
	g.metrics.batch.Observe(float64(len(batch)))
	g.send(l.key, batch)
	g.mu.Lock()
	defer g.mu.Unlock()
	l.inFlight--
	g.inFlight--
	g.lineUp(l)
	g.forget(l)
	g.dispatch()
}

// forget drops a lane that has nothing to do: keys come and go; mu is held.
func (g *gatherer) forget(l *lane) {
	if l.inFlight == 0 && len(l.waiting) == 0 {
		delete(g.lanes, l.key)
	}
}
