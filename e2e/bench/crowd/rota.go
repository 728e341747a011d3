package crowd

import (
	"sync"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// Rota hands out waiting tickets in turn, to any number of callers. Each time
// round the clock goes on by one interval, so that every poll is on time,
// however fast the polls come.
type Rota struct {
	Clock   *authoritytest.Clock
	Tickets []Ticket

	mu   sync.Mutex
	turn int
}

// Next is the ticket whose turn it is.
func (r *Rota) Next() Ticket {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.turn % len(r.Tickets)
	if i == 0 {
		// Before anybody holds a ticket of the new round.
		r.Clock.Advance(authority.PollInterval)
	}
	r.turn++
	return r.Tickets[i]
}
