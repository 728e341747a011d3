package events

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// slack is by how much clocks of instances may differ without a delivery being
// taken for one of the future.
const slack = time.Second

// set has the endpoint looked at when something will be due, unless a job is set
// for no later already.
func (c *Courier) set(ctx context.Context, l line, at time.Time) error {
	const q = `
		INSERT INTO webhook_lines AS l (brand_id, endpoint_id, wake_at) VALUES (@brand, @endpoint, @at)
		ON CONFLICT (brand_id, endpoint_id) DO UPDATE SET wake_at = excluded.wake_at
		 WHERE l.wake_at IS NULL OR l.wake_at <= @now OR l.wake_at > excluded.wake_at`
	now := c.now()
	err := c.db.Tx(ctx, l.brand, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": l.brand, "endpoint": l.endpoint, "at": at, "now": now.Add(slack)})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		// The queue has a clock of its own. At least a second, so that a difference
		// between the two cannot become a circle.
		job := wake{Brand: l.brand, Endpoint: l.endpoint, At: at.UnixMicro()}
		_, err = c.jobs.InsertTx(ctx, tx, job, &river.InsertOpts{ScheduledAt: time.Now().Add(max(at.Sub(now), slack))})
		return err
	})
	if err != nil {
		return fmt.Errorf("set a clock for an endpoint of %s: %w", l.brand, err)
	}
	return nil
}

// unset notes that the job that was set for the time has come.
func (c *Courier) unset(ctx context.Context, l line, at time.Time) error {
	const q = `UPDATE webhook_lines SET wake_at = NULL WHERE brand_id = @brand AND endpoint_id = @endpoint AND wake_at = @at`
	_, err := c.db.Exec(ctx, l.brand, q, pgx.NamedArgs{"brand": l.brand, "endpoint": l.endpoint, "at": at})
	if err != nil {
		return fmt.Errorf("unset the clock of an endpoint of %s: %w", l.brand, err)
	}
	return nil
}

// Tidy removes what was delivered a week ago or died a season ago, ends what an
// endpoint in trouble never had the time for, and rings for what is long due, as
// after a backup was put back whose jobs were lost. What somebody is at is looked at
// when his claim runs out: he may have been killed, and the queue learns it late.
func (c *Courier) Tidy(ctx context.Context, brand tenants.BrandID) error {
	const (
		day       = 24 * time.Hour
		delivered = 7 * day
		dead      = 90 * day
		overdue   = 10 * time.Minute
	)
	const remove = `
		DELETE FROM webhook_deliveries
		 WHERE brand_id = @brand AND (state = 'delivered' AND since < @delivered OR state = 'dead' AND since < @dead)`
	const end = `
		UPDATE webhook_deliveries
		   SET state = 'dead', claimed_until = NULL,
		       last_error = CASE WHEN last_error = '' THEN 'the endpoint failed for too long' ELSE last_error END
		 WHERE brand_id = @brand AND state = 'pending' AND since < @old AND (claimed_until IS NULL OR claimed_until < @now)`
	const late = `
		WITH late AS (
			SELECT DISTINCT d.endpoint_id
			  FROM webhook_deliveries d
			  LEFT JOIN webhook_lines l ON l.brand_id = @brand AND l.endpoint_id = d.endpoint_id
			 WHERE d.brand_id = @brand AND d.state = 'pending' AND d.due_at < @late
			   AND (d.claimed_until IS NULL OR d.claimed_until < @now)
			   AND (l.wake_at IS NULL OR l.wake_at < @late)
		)
		INSERT INTO webhook_lines (brand_id, endpoint_id, wake_at) SELECT @brand, endpoint_id, @now FROM late
		ON CONFLICT (brand_id, endpoint_id) DO UPDATE SET wake_at = excluded.wake_at
		RETURNING endpoint_id`
	now := c.now()
	args := pgx.NamedArgs{
		"brand": brand, "now": now, "old": now.Add(-giveUp), "late": now.Add(-overdue),
		"delivered": now.Add(-delivered), "dead": now.Add(-dead),
	}
	err := c.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		for _, q := range []string{remove, end} {
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, late, args)
		if err != nil {
			return err
		}
		endpoints, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		return c.ring(ctx, tx, brand, endpoints)
	})
	if err != nil {
		return fmt.Errorf("tidy the outbox of %s: %w", brand, err)
	}
	return c.watch(ctx, brand)
}

// watch has every endpoint looked at when the first claim on its deliveries runs out.
func (c *Courier) watch(ctx context.Context, brand tenants.BrandID) error {
	const q = `
		SELECT endpoint_id, min(claimed_until) AS at FROM webhook_deliveries
		 WHERE brand_id = @brand AND state = 'pending' AND claimed_until IS NOT NULL
		 GROUP BY endpoint_id`
	type row struct {
		EndpointID string
		At         time.Time
	}
	claims, err := tenants.All[row](ctx, c.db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return fmt.Errorf("look for claims on deliveries of %s: %w", brand, err)
	}
	for _, claim := range claims {
		if err := c.set(ctx, line{brand, claim.EndpointID}, claim.At); err != nil {
			return err
		}
	}
	return nil
}
