package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
)

// What is kept of turns that could not be signed, or not while their Brand was paused.
const (
	acceptedLife = 24 * time.Hour
	acceptedMost = 10_000 // of a Brand
)

// ErrNotKept is an ErrUnavailable of a turn that was not even written down: when it
// comes again it is judged as of then, and may be too late.
var ErrNotKept = fmt.Errorf("%w, and the turn is not written down", ErrUnavailable)

// accept writes down that the turns were good when they came, though nothing could
// be signed, or their Brand was paused: durable and bounded (R77). They get their receipts when their Brand
// comes with them again. Where there is no more room it is ErrNotKept.
func (a *Authority) accept(ctx context.Context, brand tenants.BrandID, turns []*served) error {
	if len(turns) == 0 {
		return nil
	}
	const q = `
		WITH room AS (SELECT count(*) < @most AS free FROM turns_accepted WHERE brand_id = @brand),
		kept AS (
			INSERT INTO turns_accepted (brand_id, grant_id, context_id, message_id, content, accepted_at)
			SELECT @brand, i.*, @now
			  FROM unnest(@grants::uuid[], @contexts::text[], @messages::text[], @contents::bytea[]) i
			 WHERE (SELECT free FROM room)
			ON CONFLICT DO NOTHING)
		SELECT free FROM room`
	args := turnArgs(brand, turns)
	args["now"], args["most"] = turns[0].came, acceptedMost
	// The caller may have gone away, waiting for the signer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	room, err := tenants.One[struct{ Free bool }](ctx, a.db, brand, q, args)
	switch {
	case err != nil:
		return fmt.Errorf("keep turns at %s: %w: %w", brand, ErrNotKept, err)
	case !room.Free:
		return fmt.Errorf("keep turns at %s: %w: %d wait already", brand, ErrNotKept, acceptedMost)
	}
	return nil
}
