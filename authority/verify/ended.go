package verify

import (
	"slices"
	"sync"
	"time"
)

// ended is what the event stream has told of grants lately: which of them ended,
// and what is left of those that became narrower. It only ever takes away; the
// status list has it all within its own bound, so that what does not fit here, or
// came while nobody listened, is late and not lost.
type ended struct {
	now func() time.Time

	mu   sync.Mutex
	left map[string]remainder
}

// remainder is what holds of a grant.
type remainder struct {
	scopes []string // none: it has ended
	seq    int64    // a smaller one is old news
	heard  time.Time
}

const (
	maxEnded = 100_000
	// longestToken is how long a token lives at most: those from before the
	// event are gone then.
	longestToken = time.Hour + skew
)

func newEnded(now func() time.Time) *ended {
	return &ended{now: now, left: map[string]remainder{}}
}

// hear takes an event down.
func (e *ended) hear(grant string, scopes []string, seq int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.left[grant]
	if known && before.seq >= seq {
		return
	}
	now := e.now()
	if !known && len(e.left) >= maxEnded {
		e.prune(now)
	}
	if !known && len(e.left) >= maxEnded {
		return
	}
	e.left[grant] = remainder{scopes: scopes, seq: seq, heard: now}
}

func (e *ended) prune(now time.Time) {
	for grant, r := range e.left {
		if now.Sub(r.heard) > longestToken {
			delete(e.left, grant)
		}
	}
}

// narrow takes off the delegation what holds no longer, and reports whether
// anything is left.
func (e *ended) narrow(d *Delegation) bool {
	e.mu.Lock()
	r, known := e.left[d.Grant]
	e.mu.Unlock()
	if !known {
		return true
	}
	d.Scopes = slices.DeleteFunc(slices.Clone(d.Scopes), func(s string) bool { return !slices.Contains(r.scopes, s) })
	return len(d.Scopes) > 0
}
