package authority

import (
	"context"
	"fmt"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Close ends the Brand for good, and every grant of it; it returns how many. From
// the same moment nothing that was paid out counts any more, even of grants that
// this call has not come to yet: a closed Brand answers for none. Where that was
// broken off, closing again ends the rest. Every member is told. Its keys stay
// published, for what was signed with them; what is personal goes after
// tenants.ClosedFor, in Leave.
//
// There is no way back. Verifiers have read that every token is invalid, which
// the status list's format makes final; and whoever could reopen a Brand for 30
// days would be worth robbing for 30 days.
func (a *Authority) Close(ctx context.Context, brand tenants.BrandID, by By) (ended int, err error) {
	err = a.change(ctx, brand, by, a.clock(), func(c *change) error {
		changed, err := tenants.CloseIn(ctx, c, brand, by.ID, c.now)
		if err == nil && changed {
			c.note(fact{event: tenants.EventClosed})
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("close %s: %w", brand, err)
	}
	return a.EndAll(ctx, brand, by)
}

// Leave does what is due for a Brand that is closed: it ends grants where closing
// was broken off, and when the Brand has been closed for tenants.ClosedFor, takes
// away everything personal. It reports whether the Brand is closed: then nothing
// else is due for it. Broken off anywhere, the next call goes on; any number of
// instances may call it.
func (a *Authority) Leave(ctx context.Context, brand tenants.BrandID) (closed bool, err error) {
	since, err := tenants.ClosedSince(ctx, a.db, brand, a.clock())
	if err != nil || since == nil {
		return false, err
	}
	if since.Emptied {
		return true, nil
	}
	if _, err := a.EndAll(ctx, brand, ByUpkeep()); err != nil {
		return true, err
	}
	if a.clock().Before(since.EmptyAt()) {
		return true, nil
	}
	if err := a.empty(ctx, brand); err != nil {
		return true, fmt.Errorf("empty %s: %w", brand, err)
	}
	return true, nil
}

// empty takes the Brand's personal data away, batch after batch; first all tables,
// then who and what in the trail, and last it says so.
func (a *Authority) empty(ctx context.Context, brand tenants.BrandID) error {
	const batch = 1000
	if err := a.emptyTalk(ctx, brand, batch); err != nil {
		return err
	}
	for _, q := range []string{`SELECT empty_receipts(@batch, @now)`, `SELECT empty_brand(@batch, @now)`} {
		for n := int64(1); n > 0; {
			var err error
			if n, err = a.emptySome(ctx, brand, q, pgx.NamedArgs{"batch": batch, "now": a.clock()}); err != nil {
				return err
			}
		}
	}
	last, err := LastPlace(ctx, a.db, brand)
	if err != nil {
		return err
	}
	for after := int64(0); after < last; after += walk {
		_, err := a.emptySome(ctx, brand, `SELECT audit_empty(@after, @upto, @now)`, pgx.NamedArgs{
			"after": after, "upto": min(after+walk, last), "now": a.clock(),
		})
		if err != nil {
			return err
		}
	}
	return a.change(ctx, brand, ByUpkeep(), a.clock(), func(c *change) error {
		first, err := tenants.EmptiedIn(ctx, c, brand, c.now)
		if err == nil && first {
			c.note(fact{event: tenants.EventEmptied, detail: map[string]any{"events": last}})
		}
		return err
	})
}

func (a *Authority) emptySome(ctx context.Context, brand tenants.BrandID, q string, args pgx.NamedArgs) (n int64, err error) {
	err = a.db.Tx(ctx, brand, func(tx pgx.Tx) error { return tx.QueryRow(ctx, q, args).Scan(&n) })
	return n, err
}
