package a2a

import (
	"sync"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

const (
	// callsPerBrand bounds the calls that one instance has under way to one Brand's
	// agent: a Brand whose agent hangs costs the others nothing. All Brands together
	// are not bounded here, or hanging ones could use that up for the rest.
	callsPerBrand = 64
	// callsPerAgent bounds those of one personal agent among them: it invents people,
	// each with calls of their own, and all other agents of the Brand find the rest.
	callsPerAgent = callsPerBrand / 2
	// callsOfStrangers bounds those of callsPerAgent that come without a delegation
	// token: the people of an agent who have signed in at the Brand find the rest.
	callsOfStrangers = callsPerAgent * 3 / 4
)

// busy counts calls under way. The zero value is ready.
type busy struct {
	mu     sync.Mutex
	brands map[tenants.BrandID]int
	agents map[agentAt]underWay
}

type agentAt struct {
	brand tenants.BrandID
	agent string // its issuer
}

type underWay struct{ all, strangers int }

// begin reports whether there is room for one more; if so, end is called once, with
// the same.
func (b *busy) begin(brand tenants.BrandID, who authority.Caller, stranger bool) bool {
	at := agentAt{brand, who.Agent}
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := b.agents[at]
	if b.brands[brand] >= callsPerBrand || mine.all >= callsPerAgent || stranger && mine.strangers >= callsOfStrangers {
		return false
	}
	b.add(at, stranger, 1)
	return true
}

func (b *busy) end(brand tenants.BrandID, who authority.Caller, stranger bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(agentAt{brand, who.Agent}, stranger, -1)
}

func (b *busy) add(at agentAt, stranger bool, n int) {
	if b.brands == nil {
		b.brands, b.agents = make(map[tenants.BrandID]int), make(map[agentAt]underWay)
	}
	mine := b.agents[at]
	mine.all += n
	if stranger {
		mine.strangers += n
	}
	b.agents[at] = mine
	b.brands[at.brand] += n
	// Who has nothing under way is forgotten.
	if mine.all == 0 {
		delete(b.agents, at)
	}
	if b.brands[at.brand] == 0 {
		delete(b.brands, at.brand)
	}
}
