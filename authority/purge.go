package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// keepDead is how long a dead request is kept, so that a late poll still hears
// what became of it.
const keepDead = 24 * time.Hour

// Purge removes what no rule asks for any more, in bounded batches, and returns
// how many rows went. Grants and the audit trail are kept.
func (a *Authority) Purge(ctx context.Context, brand tenants.BrandID) (int64, error) {
	const batch = 1000
	const requests = `
		DELETE FROM device_requests
		 WHERE brand_id = @brand AND id IN (
		       SELECT id FROM device_requests WHERE brand_id = @brand AND expires_at < @before LIMIT @batch)`
	const attempts = `
		DELETE FROM code_attempts
		 WHERE brand_id = @brand AND (kind, key) IN (
		       SELECT kind, key FROM code_attempts WHERE brand_id = @brand AND started_at < @before LIMIT @batch)`
	now := a.clock()
	var total int64
	for _, p := range []struct {
		q      string
		before time.Time
	}{{requests, now.Add(-keepDead)}, {attempts, now.Add(-codeWindow)}} {
		n, err := a.db.Exec(ctx, brand, p.q, pgx.NamedArgs{"brand": brand, "before": p.before, "batch": batch})
		if err != nil {
			return total, fmt.Errorf("purge %s: %w", brand, err)
		}
		total += n
	}
	return total, nil
}
