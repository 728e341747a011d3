package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Flush countersigns the turns that a Brand's own server handed in while nothing
// could be signed, or while the Brand was paused, in the order in which they came,
// judged as of then (R77). Whoever comes again with one gets that receipt. It returns
// how many got theirs, and stops at one that has to wait. One that is refused by now
// has none for good, and the trail says so. One that fails while others do not keeps
// them waiting three times; then they go on, and it is tried again ever later.
func (a *Authority) Flush(ctx context.Context, brand *tenants.Brand) (int, error) {
	after := int64(0)
	for done := 0; ; {
		rows, err := a.unsigned(ctx, brand.ID, after)
		if err != nil || len(rows) == 0 {
			return done, err
		}
		after = rows[len(rows)-1].N
		turns := make([]Turn, len(rows))
		for i, r := range rows {
			turns[i] = r.of.turn(r.ContextID, r.MessageID)
		}
		var last error
		waits := 0 // the first that does
		for i, r := range a.CountersignInOrder(ctx, brand, turns) {
			row := rows[i]
			switch {
			case r.Err == nil && r.Receipt.Again:
				err = a.forgetAccepted(ctx, brand.ID, row.N)
			case r.Err == nil:
				done++
			case errors.Is(r.Err, errSettled): // by somebody else, meanwhile
			case IsRefusal(r.Err):
				l := lost{Grant: row.GrantID, Context: row.ContextID, Message: row.MessageID, Agent: row.of.Agent, Why: r.Err}
				err = a.refuse(ctx, brand.ID, l, func(c *change) error { return c.forgetAccepted(ctx, row.N) })
			case errors.Is(r.Err, ErrBehind):
				if err := a.putOff(ctx, brand.ID, rows[waits].N); err != nil {
					return done, err
				}
				return done, fmt.Errorf("%d turns wait: %w", len(rows)-waits, last)
			case last == nil:
				waits, last = i, r.Err
			}
			if err != nil {
				return done, err
			}
		}
		if last != nil {
			return done, fmt.Errorf("%d turns wait: %w", len(rows)-waits, last)
		}
	}
}

// IsRefusal reports whether a turn that was not countersigned never will be: what it
// shows does not allow for it. Whatever else went wrong may go right the next time.
func IsRefusal(err error) bool {
	return errors.Is(err, ErrToken) || errors.Is(err, ErrScope) || errors.Is(err, ErrConflict) || errors.Is(err, ErrMalformed)
}

// acceptedRow is a turn that waits.
type acceptedRow struct {
	N                          int64
	GrantID                    uuid.UUID
	ContextID, MessageID, Turn string
	of                         accepted
}

// unsigned are the oldest turns that wait, after the n-th: up to MaxTurns.
func (a *Authority) unsigned(ctx context.Context, brand tenants.BrandID, after int64) ([]acceptedRow, error) {
	const q = `
		SELECT n, grant_id, context_id, message_id, turn FROM turns_accepted
		 WHERE brand_id = @brand AND n > @after AND turn IS NOT NULL AND coalesce(retry_at <= @now, true)
		 ORDER BY n LIMIT @limit`
	type row struct {
		N                          int64
		GrantID                    uuid.UUID
		ContextID, MessageID, Turn string
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "after": after, "now": a.clock(), "limit": MaxTurns})
	if err != nil {
		return nil, fmt.Errorf("find turns without a receipt at %s: %w", brand, err)
	}
	out := make([]acceptedRow, len(rows))
	for i, r := range rows {
		out[i] = acceptedRow{N: r.N, GrantID: r.GrantID, ContextID: r.ContextID, MessageID: r.MessageID}
		if err := json.Unmarshal([]byte(r.Turn), &out[i].of); err != nil {
			return nil, fmt.Errorf("read turn %d of %s: %w", r.N, brand, err)
		}
	}
	return out, nil
}

func (a *Authority) forgetAccepted(ctx context.Context, brand tenants.BrandID, n int64) error {
	const q = `DELETE FROM turns_accepted WHERE brand_id = @brand AND n = @n`
	if _, err := a.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "n": n}); err != nil {
		return fmt.Errorf("forget a turn at %s: %w", brand, err)
	}
	return nil
}

func (c *change) forgetAccepted(ctx context.Context, n int64) error {
	const q = `DELETE FROM turns_accepted WHERE brand_id = @brand AND n = @n`
	tag, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": c.brand, "n": n})
	if err == nil && tag.RowsAffected() == 0 {
		err = errSettled
	}
	return err
}

// What fails while others do not is tried again a minute later; from the third time on
// others need not wait for it, and it is tried after twice as long each time, up to an
// hour.
const putOff = `
	tries = tries + 1,
	retry_at = CASE WHEN tries < 2 THEN @now::timestamptz ELSE @now::timestamptz + least(interval '1 minute' * power(2, least(tries - 1, 6)), interval '1 hour') END`

// putOff notes that a turn failed while others did not.
func (a *Authority) putOff(ctx context.Context, brand tenants.BrandID, n int64) error {
	const q = `UPDATE turns_accepted SET ` + putOff + ` WHERE brand_id = @brand AND n = @n`
	if _, err := a.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "n": n, "now": a.clock()}); err != nil {
		return fmt.Errorf("put off a turn at %s: %w", brand, err)
	}
	return nil
}
