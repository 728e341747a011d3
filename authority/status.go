package authority

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// StatusListSize is how many indexes a status list has. It is a fixed size, so
// that a list tells nobody how many grants there are.
const StatusListSize = 1 << 17

// statusFill is how many of them are taken before the next list is begun: with
// half of them free, a random one is soon found.
const statusFill = StatusListSize / 2

// statusRef is where a token's status stands.
type statusRef struct{ List, Index int }

func statusOf(list, index *int) *statusRef {
	if list == nil || index == nil {
		return nil
	}
	return &statusRef{List: *list, Index: *index}
}

// allot gives the grant's new version a random free index of the Brand's newest
// list. Random, because neighbouring indexes would tell a reader which grants
// were made one after the other.
func (c *change) allot(ctx context.Context, draws []int32, grant uuid.UUID) (bool, error) {
	const q = `
		WITH room AS (
			INSERT INTO status_lists AS l (brand_id, list, used, version)
			SELECT @brand, coalesce(max(list) FILTER (WHERE used < @fill), max(list) + 1, 0), 1, 0
			  FROM status_lists WHERE brand_id = @brand
			ON CONFLICT (brand_id, list) DO UPDATE SET used = l.used + 1
			RETURNING list
		), taken AS (
			INSERT INTO status_entries (brand_id, list, idx, grant_id)
			SELECT @brand, room.list, draw.idx, @grant
			  FROM room, unnest(@draws::int[]) WITH ORDINALITY AS draw (idx, n)
			 WHERE NOT EXISTS (SELECT FROM status_entries e
			                    WHERE e.brand_id = @brand AND e.list = room.list AND e.idx = draw.idx)
			 ORDER BY draw.n LIMIT 1
			ON CONFLICT DO NOTHING
			RETURNING list, idx
		)
		UPDATE grants g SET status_list = taken.list, status_idx = taken.idx
		  FROM taken
		 WHERE g.brand_id = @brand AND g.id = @grant`
	tag, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": c.brand, "grant": grant, "draws": draws, "fill": statusFill})
	return err == nil && tag.RowsAffected() == 1, err
}

// settleStatus gives new versions their index, makes former ones INVALID, and
// has the lists judged anew that speak of the noted Brand users.
func (a *Authority) settleStatus(ctx context.Context, c *change) error {
	if len(c.fresh) == 0 && len(c.gone) == 0 && len(c.moved) == 0 {
		return nil
	}
	if err := lockLists(ctx, c, c.brand); err != nil {
		return err
	}
	for _, grant := range c.fresh {
		if err := a.mustAllot(ctx, c, grant); err != nil {
			return fmt.Errorf("allot a status index at %s: %w", c.brand, err)
		}
	}
	return c.voidStatus(ctx)
}

func (a *Authority) mustAllot(ctx context.Context, c *change, grant uuid.UUID) error {
	const turns = 4 // somebody else may take the drawn index while we wait for the list
	for range turns {
		draws, err := a.draws()
		if err != nil {
			return err
		}
		if done, err := c.allot(ctx, draws, grant); done || err != nil {
			return err
		}
	}
	return errors.New("none found")
}

// draws returns random indexes, enough that one of them is free in a list that
// is half full.
func (a *Authority) draws() ([]int32, error) {
	const many = 32
	var raw [4 * many]byte
	if _, err := io.ReadFull(a.rand, raw[:]); err != nil {
		return nil, fmt.Errorf("draw randomness: %w", err)
	}
	out := make([]int32, many)
	for i := range out {
		out[i] = int32(binary.BigEndian.Uint32(raw[4*i:]) % StatusListSize) // a power of two: no bias
	}
	return out, nil
}

// lockLists makes whoever touches several of a Brand's lists come one after the
// other: each locks those that it happens to need, and two could wait for one
// another. By a lock of its own, since which lists it will be is known late.
func lockLists(ctx context.Context, tx pgx.Tx, brand tenants.BrandID) error {
	const q = `SELECT pg_advisory_xact_lock(hashtextextended('countersign status lists of ' || @brand, 0))`
	if _, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": string(brand)}); err != nil {
		return fmt.Errorf("lock the status lists of %s: %w", brand, err)
	}
	return nil
}

func (c *change) voidStatus(ctx context.Context) error {
	if len(c.gone) == 0 && len(c.moved) == 0 {
		return nil
	}
	// An index that still stands in its grant's row is that grant's present one:
	// invalid only where the grant is over.
	const q = `
		WITH voided AS (
			UPDATE status_entries e SET invalid_at = @now
			  FROM grants g
			 WHERE e.brand_id = @brand AND e.grant_id = ANY (@gone) AND e.invalid_at IS NULL
			   AND g.brand_id = @brand AND g.id = e.grant_id
			   AND (g.ended_at IS NOT NULL OR (g.status_list, g.status_idx) IS DISTINCT FROM (e.list, e.idx))
			RETURNING e.list
		)
		UPDATE status_lists SET version = version + 1
		 WHERE brand_id = @brand
		   AND list IN (SELECT list FROM voided UNION
		                SELECT status_list FROM grants WHERE brand_id = @brand AND subject = ANY (@moved))`
	_, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": c.brand, "gone": c.gone, "moved": c.moved, "now": c.now})
	if err != nil {
		return fmt.Errorf("void status indexes: %w", err)
	}
	return nil
}
