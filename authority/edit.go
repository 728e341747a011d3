package authority

import (
	"cmp"
	"context"
	"slices"

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
				NoteAt:    c.noteAt,
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

// noteAt has a fact stand in another Brand's trail too.
func (c *change) noteAt(other tenants.BrandID, event string, detail map[string]any) {
	there := &change{Tx: c.Tx, brand: other, now: c.now, by: c.by}
	there.note(fact{event: event, detail: detail})
	c.elsewhere = append(c.elsewhere, there)
}

// recordAll is record in every trail that the change has to do with, in the order
// of the Brands' ids: whoever writes into several trails locks them in that order,
// so that no two wait for one another. It returns what this Brand is told, and ends
// in its fence.
func (c *change) recordAll(ctx context.Context, trace string) ([]Event, error) {
	if len(c.elsewhere) == 0 {
		return c.record(ctx, trace)
	}
	all := append(slices.Clone(c.elsewhere), c)
	slices.SortStableFunc(all, func(x, y *change) int { return cmp.Compare(x.brand, y.brand) })
	var told []Event
	for _, one := range all {
		if err := tenants.Enter(ctx, c.Tx, one.brand); err != nil {
			return nil, err
		}
		events, err := one.record(ctx, trace)
		if err != nil {
			return nil, err
		}
		if one == c {
			told = events
		}
	}
	return told, tenants.Enter(ctx, c.Tx, c.brand)
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
