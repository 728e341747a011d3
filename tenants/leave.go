package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ClosedFor is how long a closed Brand's data can still be exported. Then what is
// personal goes. The database holds the same number.
const ClosedFor = 30 * 24 * time.Hour

// ClosedTold is how long a closed Brand's endpoints are still told, of the grants
// that ended with it: as long as a delivery is tried, and a day to end them all.
const ClosedTold = 48 * time.Hour

// The facts of a Brand's end.
const (
	EventClosed   = "brand.closed"
	EventEmptied  = "brand.emptied"  // nothing personal is left
	EventExported = "brand.exported" // somebody took everything along
)

// CloseIn closes the Brand, in a transaction that has more to do, and has every
// member told. by is a member's id; another's names nobody in the mail. It reports
// whether the Brand was open before. Invitations end: nobody joins what is over.
func CloseIn(ctx context.Context, tx pgx.Tx, brand BrandID, by string, now time.Time) (bool, error) {
	changed, err := SetStateIn(ctx, tx, brand, Closed)
	if err != nil {
		return false, err
	}
	const since = `UPDATE brands SET closed_at = @now WHERE id = @brand AND closed_at IS NULL`
	const withdraw = `
		UPDATE invitations SET withdrawn_at = @now
		 WHERE brand_id = @brand AND accepted_at IS NULL AND withdrawn_at IS NULL`
	const tell = `
		INSERT INTO notices (brand_id, id, person_id, kind, detail, created_at)
		SELECT brand_id, gen_random_uuid(), person_id, @event, jsonb_build_object('by', @by::uuid), @now
		  FROM memberships
		 WHERE brand_id = @brand`
	args := pgx.NamedArgs{"brand": brand, "now": now, "event": EventClosed, "by": nil}
	if id, err := uuid.Parse(by); err == nil {
		args["by"] = id
	}
	for _, q := range []string{since, withdraw, tell} {
		if !changed && q != since {
			break
		}
		if _, err := tx.Exec(ctx, q, args); err != nil {
			return false, fmt.Errorf("close %s: %w", brand, err)
		}
	}
	return changed, nil
}

// Closing is how far a closed Brand's end has come.
type Closing struct {
	At      time.Time
	Emptied bool
}

// EmptyAt is when what is personal goes.
func (c Closing) EmptyAt() time.Time { return c.At.Add(ClosedFor) }

// ClosedSince says how far the end of the Brand has come; nil: it is not closed.
// One that was closed by other means than CloseIn is closed since now.
func ClosedSince(ctx context.Context, db *DB, brand BrandID, now time.Time) (*Closing, error) {
	const note = `UPDATE brands SET closed_at = @now WHERE id = @brand AND state = 'closed' AND closed_at IS NULL`
	const q = `SELECT state, closed_at, emptied_at IS NOT NULL AS emptied FROM brands WHERE id = @brand`
	type row struct {
		State    State
		ClosedAt *time.Time
		Emptied  bool
	}
	args := pgx.NamedArgs{"brand": brand, "now": now}
	r, err := One[row](ctx, db, brand, q, args)
	if err == nil && r.State == Closed && r.ClosedAt == nil {
		if _, err = db.Exec(ctx, brand, note, args); err == nil {
			r, err = One[row](ctx, db, brand, q, args)
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoBrand
	}
	if err != nil {
		return nil, fmt.Errorf("see since when %s is closed: %w", brand, err)
	}
	if r.State != Closed {
		return nil, nil //nolint:nilnil // an open Brand is no error
	}
	return &Closing{At: *r.ClosedAt, Emptied: r.Emptied}, nil
}

// EmptiedIn notes that nothing personal is left of the Brand. It reports whether
// that was not noted before.
func EmptiedIn(ctx context.Context, tx pgx.Tx, brand BrandID, now time.Time) (bool, error) {
	const q = `UPDATE brands SET emptied_at = @now WHERE id = @brand AND state = 'closed' AND emptied_at IS NULL`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "now": now})
	if err != nil {
		return false, fmt.Errorf("note that %s is empty: %w", brand, err)
	}
	return tag.RowsAffected() == 1, nil
}
