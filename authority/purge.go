package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// How long what is over is kept: a dead request so that a late poll still hears
// what became of it, an ended grant's refresh tokens so that a late replay is
// still told from a made-up one.
const (
	keepDead    = 24 * time.Hour
	keepRefresh = 30 * 24 * time.Hour
)

// Purge removes what no rule asks for any more, batch after batch, and returns
// how many rows went. Grants and the audit trail are kept.
//
// Each condition stands twice: the row may have changed while the delete waited
// for it.
func (a *Authority) Purge(ctx context.Context, brand tenants.BrandID) (int64, error) {
	const batch = 1000
	const requests = `
		DELETE FROM device_requests
		 WHERE brand_id = @brand AND expires_at < @before AND id IN (
		       SELECT id FROM device_requests WHERE brand_id = @brand AND expires_at < @before LIMIT @batch)`
	const attempts = `
		DELETE FROM code_attempts
		 WHERE brand_id = @brand AND started_at <= @before AND (kind, key) IN (
		       SELECT kind, key FROM code_attempts WHERE brand_id = @brand AND started_at <= @before LIMIT @batch)`
	const refresh = `
		DELETE FROM refresh_tokens
		 WHERE brand_id = @brand AND hash IN (
		       SELECT t.hash FROM refresh_tokens t
		         JOIN grants g ON g.brand_id = t.brand_id AND g.id = t.grant_id
		        WHERE t.brand_id = @brand AND least(g.ended_at, g.expires_at) < @before LIMIT @batch)`
	now := a.clock()
	var total int64
	for _, p := range []struct {
		q      string
		before time.Time
	}{{requests, now.Add(-keepDead)}, {attempts, now.Add(-codeWindow)}, {refresh, now.Add(-keepRefresh)}} {
		for {
			n, err := a.db.Exec(ctx, brand, p.q, pgx.NamedArgs{"brand": brand, "before": p.before, "batch": batch})
			if err != nil {
				return total, fmt.Errorf("purge %s: %w", brand, err)
			}
			total += n
			if n < batch {
				break
			}
		}
	}
	return total, nil
}
