package authority

import (
	"context"
	"fmt"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Expire ends grants whose time is over, so that the Brand is told and the
// person can read it; no token outlives them in any case. It returns how many.
func (a *Authority) Expire(ctx context.Context, brand tenants.BrandID) (int, error) {
	const batch = 500
	const q = `
		SELECT id FROM grants
		 WHERE brand_id = @brand AND ended_at IS NULL AND expires_at <= @now
		 ORDER BY id LIMIT @batch FOR UPDATE SKIP LOCKED` // one that is being renewed is left to whoever renews it
	total := 0
	for {
		n := 0
		now := a.clock()
		err := a.change(ctx, brand, ByUpkeep(), now, func(c *change) error {
			rows, err := c.Query(ctx, q, pgx.NamedArgs{"brand": brand, "now": now, "batch": batch})
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil || len(ids) == 0 {
				return err
			}
			n, err = c.end(ctx, ids, "expired")
			return err
		})
		if err != nil {
			return total, fmt.Errorf("expire grants at %s: %w", brand, err)
		}
		if total += n; n < batch {
			return total, nil
		}
	}
}
