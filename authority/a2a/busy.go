package a2a

import (
	"sync"

	"countersign.dev/tenants"
)

// callsPerBrand bounds the calls that one instance has under way to one Brand's
// agent: a Brand whose agent hangs costs the others nothing.
const callsPerBrand = 64

// busy counts calls under way.
type busy struct {
	most int
	mu   sync.Mutex
	by   map[tenants.BrandID]int
}

// begin reports whether there is room for one more; if so, end is called once.
func (b *busy) begin(brand tenants.BrandID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = make(map[tenants.BrandID]int)
	}
	if b.by[brand] >= b.most {
		return false
	}
	b.by[brand]++
	return true
}

func (b *busy) end(brand tenants.BrandID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[brand]--; b.by[brand] <= 0 {
		delete(b.by, brand)
	}
}
