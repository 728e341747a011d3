package oauth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"countersign.dev/tenants"
)

// shares keeps one Brand from taking all of the service: so many of its calls are
// under way at once, and no more. All of them use the database, whose connections
// are what runs out first.
type shares struct {
	most int
	mu   sync.Mutex
	used map[tenants.BrandID]*share
}

// A share is one Brand's. It exists while somebody holds or awaits a place.
type share struct {
	places chan struct{}
	users  int
}

// patience is how long a call waits for a place. A PA polls again anyway.
const patience = 3 * time.Second

// errCrowded is returned where the Brand's share is used up.
var errCrowded = errors.New("too many calls of the brand at once")

func newShares(most int) *shares {
	return &shares{most: most, used: make(map[tenants.BrandID]*share)}
}

// enter waits for a place and returns how to leave it; false: there is none.
func (s *shares) enter(ctx context.Context, brand tenants.BrandID) (leave func(), ok bool) {
	s.mu.Lock()
	mine := s.used[brand]
	if mine == nil {
		mine = &share{places: make(chan struct{}, s.most)}
		s.used[brand] = mine
	}
	mine.users++
	s.mu.Unlock()
	gone := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(s.used, brand)
		}
	}
	select {
	case mine.places <- struct{}{}:
		return func() { <-mine.places; gone() }, true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case mine.places <- struct{}{}:
		return func() { <-mine.places; gone() }, true
	case <-ctx.Done():
		gone()
		return nil, false
	}
}

// share takes a place for a call to the Brand, or has answered that there is none.
// Who calls is known by then: waiting for the keys of one agent's own server must
// not use up what the Brand's other agents need.
func (h *Handler) share(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) (leave func(), ok bool) {
	if leave, ok = h.shares.enter(r.Context(), brand.ID); !ok {
		h.fail(w, r, nil, errCrowded)
	}
	return leave, ok
}
