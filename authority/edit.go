package authority

import (
	"context"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Editor returns what runs changes of a Brand's settings in by's name: they are
// changes like any other here, and stand in the same trail.
func (a *Authority) Editor(by By) tenants.Editor {
	return func(ctx context.Context, brand tenants.BrandID, fn func(*tenants.Edit) error) error {
		now := a.clock()
		return a.change(ctx, brand, by, now, func(c *change) error {
			return fn(&tenants.Edit{
				Tx: c.Tx, Brand: brand, Now: now,
				Note: func(event string, detail map[string]any) {
					c.note(fact{event: event, detail: detail})
				},
				NoteAt: func(ctx context.Context, other tenants.BrandID, event string, detail map[string]any) error {
					return a.noteAt(ctx, c, other, event, detail)
				},
				EndGrants: c.endSome, Member: by.member(),
			})
		})
	}
}

// member is whose act it is, on the dashboard; zero: nobody's there.
func (by By) member() uuid.UUID {
	id, err := uuid.Parse(by.ID)
	if err != nil || by != ByMember(by.ID) {
		return uuid.Nil
	}
	return id
}

// noteAt writes a fact into another Brand's trail, in the same transaction.
func (a *Authority) noteAt(ctx context.Context, c *change, other tenants.BrandID, event string, detail map[string]any) error {
	if err := tenants.Enter(ctx, c.Tx, other); err != nil {
		return err
	}
	there := &change{Tx: c.Tx, brand: other, now: c.now, by: c.by}
	there.note(fact{event: event, detail: detail})
	_, err := there.record(ctx, a.trace(ctx))
	return err
}

// endSome ends up to limit living grants, whoever holds them.
func (c *change) endSome(ctx context.Context, reason string, limit int) (int, error) {
	const q = `SELECT id FROM grants WHERE brand_id = @brand AND ended_at IS NULL ORDER BY id LIMIT @limit`
	rows, err := c.Query(ctx, q, pgx.NamedArgs{"brand": c.brand, "limit": limit})
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return c.end(ctx, ids, reason)
}
