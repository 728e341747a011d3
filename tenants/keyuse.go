package tenants

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// usePrecision is how exactly the last use of an API key is known. It bounds the
// writes: one per key, whoever uses it however often.
const usePrecision = time.Minute

// uses remembers which keys' use this instance noted a moment ago. It holds keys
// that opened something only, so strangers do not fill it.
type uses struct {
	mu    sync.Mutex
	noted map[keyRef]time.Time
}

// due reports whether the use is to be written, and takes it that it will be: of
// many calls at once one writes.
func (u *uses) due(ref keyRef, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.noted[ref]; ok && now.Sub(last) < usePrecision {
		return false
	}
	if u.noted == nil {
		u.noted = make(map[keyRef]time.Time)
	}
	u.noted[ref] = now
	return true
}

// used writes down that the key opened something, once a minute over all
// instances. A database that is busy costs the caller a moment and never the
// answer: the key was checked, and this is a note for people.
func (c *Credentials) used(ctx context.Context, ref keyRef) {
	const patience = 500 * time.Millisecond
	const q = `
		UPDATE api_keys SET last_used_at = @now
		 WHERE brand_id = @brand AND id = @id AND (last_used_at IS NULL OR last_used_at <= @before)`
	now := c.memo.Now()
	if !c.uses.due(ref, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, _ = c.db.Exec(ctx, ref.brand, q, pgx.NamedArgs{"brand": ref.brand, "id": ref.id, "now": now, "before": now.Add(-usePrecision)})
}
