package agent

import (
	"context"
	"sync"
	"time"
)

const (
	// How old the keys may be that we go by: a key that its agent has removed
	// is refused at the latest then.
	keysTTL = 5 * time.Minute
	// From here on a use of the keys has them fetched anew in the background,
	// so that a busy agent never waits for a fetch.
	refreshAfter = 4 * time.Minute
	// How long keys serve, counted from the last fetch that succeeded, while
	// the agent's server fails.
	keepKeys = 24 * time.Hour
	// How long a failed fetch excuses keys older than keysTTL. Whoever comes
	// later waits for another attempt.
	excuse = time.Minute
	// How often a token can make us fetch by naming a key we do not know, and
	// how often a server that fails is tried.
	cooldown = 10 * time.Second
)

// keyring is the published keys of one agent. It has a lock of its own, held
// over no fetch, so that one agent's slow server is nobody else's trouble.
type keyring struct {
	uri   string
	fetch func(ctx context.Context) (*keySet, error)
	now   func() time.Time
	stale func() // counts a use of keys older than keysTTL

	mu      sync.Mutex
	set     *keySet       // nil before the first success; replaced whole
	fetched time.Time     // when the fetch of set began
	tried   time.Time     // when the last attempt ended, or set was fetched
	forced  time.Time     // when a token last made us fetch
	running chan struct{} // closed when the attempt under way ends; nil if none is
}

// usable returns the keys to go by now. It waits for a fetch only if there are
// no keys, or none young enough and no recent attempt to excuse them.
func (r *keyring) usable(ctx context.Context) (*keySet, error) {
	for waited := false; ; waited = true {
		set, done, err := r.look(waited)
		if done == nil {
			return set, err
		}
		if err := wait(ctx, done); err != nil {
			return nil, err
		}
	}
}

// look returns keys or a refusal, or else what to wait for before looking again.
func (r *keyring) look(waited bool) (*keySet, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	age, sinceTry := now.Sub(r.fetched), now.Sub(r.tried)
	switch {
	case r.set != nil && age <= keysTTL:
		if age > refreshAfter && sinceTry >= cooldown {
			r.begin(now)
		}
		return r.set, nil, nil
	case r.set != nil && age <= keepKeys && (waited || sinceTry <= excuse):
		if sinceTry >= cooldown {
			r.begin(now)
		}
		r.stale()
		return r.set, nil, nil
	case waited || r.running == nil && sinceTry < cooldown:
		return nil, nil, ErrKeysMissing
	}
	return nil, r.begin(now), nil
}

// beyond returns keys newer than seen, in which a token's key was not found. A
// fetch for that purpose begins at most once per cooldown, however many tokens
// name however many keys; in between, the answer is ErrUnknownKey at once.
func (r *keyring) beyond(ctx context.Context, seen *keySet) (*keySet, error) {
	for {
		set, done, err := r.lookBeyond(seen)
		if done == nil {
			return set, err
		}
		if err := wait(ctx, done); err != nil {
			return nil, err
		}
	}
}

func (r *keyring) lookBeyond(seen *keySet) (*keySet, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set != seen {
		return r.set, nil, nil
	}
	now := r.now()
	if r.running == nil {
		if now.Sub(r.forced) < cooldown {
			return nil, nil, ErrUnknownKey
		}
		r.forced = now
	}
	return nil, r.begin(now), nil
}

// begin starts a fetch unless one is under way. r.mu is held. The fetch belongs
// to no caller: whoever started it may go away, the others wait on.
func (r *keyring) begin(now time.Time) <-chan struct{} {
	if r.running == nil {
		r.running = make(chan struct{})
		go r.refresh(now)
	}
	return r.running
}

func (r *keyring) refresh(began time.Time) {
	set, err := r.fetch(context.Background()) // bounded by the egress client
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.set, r.fetched, r.tried = set, began, began
	} else {
		// The keys we have stay: otherwise a stranger who disturbs one fetch
		// would lock the agent out.
		r.tried = r.now()
	}
	close(r.running)
	r.running = nil
}

// seed takes keys that were fetched for a discovery, if they are newer than those
// it has.
func (r *keyring) seed(set *keySet, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set == nil || began.After(r.fetched) {
		r.set, r.fetched, r.tried = set, began, began
	}
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
