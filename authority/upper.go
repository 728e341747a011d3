package authority

import (
	"sync"

	"countersign.dev/tenants"
	"golang.org/x/mod/sumdb/tlog"
)

// From where on hashes of the tree are remembered, and how many: each stands for
// 256 lines or more, never changes, and is needed by every proof in a large log.
// Those below are next to one another, and read in one look.
const (
	upperLevel = 8
	upperMost  = 1 << 16
)

// upper are hashes high in the trees of Brands' logs. Only proofs are made of them,
// which their readers verify: what is signed reads the database.
type upper struct {
	mu sync.RWMutex
	by map[upperPlace]tlog.Hash
}

type upperPlace struct {
	brand tenants.BrandID
	index int64 // tlog's
}

func (u *upper) find(brand tenants.BrandID, index int64) (tlog.Hash, bool) {
	if u == nil {
		return tlog.Hash{}, false
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	h, known := u.by[upperPlace{brand, index}]
	return h, known
}

func (u *upper) remember(brand tenants.BrandID, index int64, h tlog.Hash) {
	if level, _ := tlog.SplitStoredHashIndex(index); u == nil || level < upperLevel {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil || len(u.by) >= upperMost {
		u.by = make(map[upperPlace]tlog.Hash)
	}
	u.by[upperPlace{brand, index}] = h
}
