package verify

import (
	"context"
	"sync"
	"time"
)

// policy says how long a document of somebody else's is gone by.
type policy struct {
	fresh time.Duration // so old, it is used without a question
	renew time.Duration // older than this, a use has it fetched anew in the background
	most  time.Duration // so old, it still serves while it cannot be had anew
	pause time.Duration // between attempts that fail
	// cooldown is how often somebody who misses something in the document has it
	// fetched anew.
	cooldown time.Duration
	// patience is how long a caller waits for a fetch while an older document may
	// serve.
	patience time.Duration
}

// lateAfter is the patience there is with everybody. A variable for tests, which
// must not depend on how fast a machine is.
var lateAfter = 300 * time.Millisecond

// kept is a document of somebody else's. Its lock is held over no fetch, so that
// one slow server is nobody else's trouble.
type kept[T any] struct {
	policy
	// fetch gets the document anew. It is told what there was before, if anything,
	// and returns that again where nothing has changed. It is bounded in time.
	fetch func(ctx context.Context, last *T) (*T, error)
	now   func() time.Time
	// age is how old the document was when it was fetched, as its server says. nil:
	// servers speak of the moment.
	age func(*T) time.Duration
	// until is when the document is over by its own word: from then on it serves as
	// little as one that is too old. nil: such documents have no end.
	until func(*T) time.Time

	mu      sync.Mutex
	value   *T            // nil before the first success; replaced whole
	asOf    time.Time     // when the fetch of value began, less its age
	tried   time.Time     // when the last attempt ended
	failure error         // of the last attempt; nil: it succeeded
	forced  time.Time     // when somebody last missed something
	running chan struct{} // closed when the attempt under way ends; nil: none is
}

// get returns the document to go by now, and since when it is known to be true.
// It waits for a fetch only where what there is is too old.
func (k *kept[T]) get(ctx context.Context) (*T, time.Time, error) {
	k.mu.Lock()
	now := k.now()
	age, rested := now.Sub(k.asOf), now.Sub(k.tried) >= k.pause || now.Before(k.tried)
	if k.value != nil && age >= 0 && age <= k.fresh && !k.over(now) {
		defer k.mu.Unlock()
		if age > k.renew && rested {
			k.begin(now)
		}
		return k.value, k.asOf, nil
	}
	if k.running == nil && !rested {
		defer k.mu.Unlock()
		return k.serving(now)
	}
	done, late := k.begin(now), make(<-chan time.Time)
	if _, _, err := k.serving(now); err == nil {
		timer := time.NewTimer(k.patience)
		defer timer.Stop()
		late = timer.C
	}
	k.mu.Unlock()
	select {
	case <-done:
	case <-late:
	case <-ctx.Done():
		return nil, time.Time{}, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.serving(k.now())
}

// serving is the document as long as it may serve at all. k.mu is held.
func (k *kept[T]) serving(now time.Time) (*T, time.Time, error) {
	if age := now.Sub(k.asOf); k.value != nil && age >= 0 && age <= k.most && !k.over(now) {
		return k.value, k.asOf, nil
	}
	switch {
	case k.failure != nil:
		return nil, time.Time{}, k.failure
	case k.value != nil:
		return nil, time.Time{}, errOld
	}
	return nil, time.Time{}, errNotFetched
}

// over reports whether the document says so of itself. k.mu is held, and there is one.
func (k *kept[T]) over(now time.Time) bool { return k.until != nil && !now.Before(k.until(k.value)) }

// last is the newest document there ever was, however old; nil: none.
func (k *kept[T]) last() (*T, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value, k.asOf
}

// beyond returns a document newer than seen, in which something was missed; nil
// where there is none to be had. However many miss however much, a fetch for
// that purpose begins once per cooldown.
func (k *kept[T]) beyond(ctx context.Context, seen *T) *T {
	k.mu.Lock()
	if k.value != seen {
		defer k.mu.Unlock()
		return k.value
	}
	now := k.now()
	if k.running == nil {
		if since := now.Sub(k.forced); since >= 0 && since < k.cooldown {
			k.mu.Unlock()
			return nil
		}
		k.forced = now
	}
	done := k.begin(now)
	k.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.value == seen {
		return nil
	}
	return k.value
}

// begin starts a fetch unless one is under way. k.mu is held. The fetch belongs to
// no caller: whoever started it may go away, the others wait on.
func (k *kept[T]) begin(now time.Time) <-chan struct{} {
	if k.running == nil {
		k.running = make(chan struct{})
		go k.refresh(now, k.value)
	}
	return k.running
}

func (k *kept[T]) refresh(began time.Time, last *T) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	value, err := k.fetch(ctx, last)
	k.mu.Lock()
	defer k.mu.Unlock()
	// What there was stays when a fetch fails: otherwise a stranger who disturbs
	// one would shut everybody out.
	if k.failure = err; err == nil {
		k.value, k.asOf = value, began
		if k.age != nil {
			k.asOf = began.Add(-k.age(value))
		}
	}
	k.tried = k.now()
	close(k.running)
	k.running = nil
}
