package verify

import (
	"slices"
	"sync"
	"time"
)

// ended is what the event stream has told of grants lately: which of them ended,
// and what is left of those that became narrower. It only ever takes away; the
// status list has it all within its own bound, so that what does not fit here, or
// came while nobody listened, is late and not lost. It speaks of tokens from before
// the event, and for as long as there are any: a later token has it all in itself.
type ended struct {
	now func() time.Time

	mu   sync.Mutex
	left map[string]remainder
}

// remainder is what holds of a grant.
type remainder struct {
	scopes []string  // none: it has ended
	seq    int64     // a smaller one is old news
	at     time.Time // when it happened, by the clock that tokens are issued by
	heard  time.Time // by our own
}

const (
	maxEnded = 100_000
	// longestToken is how long a token lives at most: those from before the
	// event are gone then.
	longestToken = time.Hour + skew
	// anySeq is smaller than every seq that is told.
	anySeq = -1
)

func newEnded(now func() time.Time) *ended {
	return &ended{now: now, left: map[string]remainder{}}
}

// hear takes an event down. One that does not say when it happened did so now.
func (e *ended) hear(grant string, scopes []string, seq int64, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.left[grant]
	if known && before.seq >= seq {
		return
	}
	now := e.now()
	if at.IsZero() {
		at = now
	}
	if !known && len(e.left) >= maxEnded {
		e.prune(now)
	}
	if !known && len(e.left) >= maxEnded {
		return
	}
	e.left[grant] = remainder{scopes: scopes, seq: seq, at: at, heard: now}
}

// anew has whatever comes be news. A stream that begins now tells of nothing that was
// heard before, and its numbers may be smaller: a backup was put back.
func (e *ended) anew() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for grant, r := range e.left {
		r.seq = anySeq
		e.left[grant] = r
	}
}

func (e *ended) prune(now time.Time) {
	for grant, r := range e.left {
		if r.past(now) {
			delete(e.left, grant)
		}
	}
}

// past reports whether all tokens from before the event are gone.
func (r remainder) past(now time.Time) bool { return now.Sub(r.heard) > longestToken }

// narrow takes off the delegation what holds no longer, and reports whether
// anything is left.
func (e *ended) narrow(d *Delegation) bool {
	e.mu.Lock()
	r, known := e.left[d.Grant]
	if known && r.past(e.now()) {
		delete(e.left, d.Grant)
		known = false
	}
	e.mu.Unlock()
	// Within skew a token may still have been made of what the grant was before: clocks
	// of instances differ, and what happens takes a moment.
	if !known || d.Issued.After(r.at.Add(skew)) {
		return true
	}
	d.Scopes = slices.DeleteFunc(slices.Clone(d.Scopes), func(s string) bool { return !slices.Contains(r.scopes, s) })
	return len(d.Scopes) > 0
}
