package authority

import (
	"context"
	"fmt"
	"slices"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// NoteKeys writes what becomes of a Brand's signing keys into its trail. Why a
// key was revoked is what somebody typed: it stands in the archive of keys.
func (a *Authority) NoteKeys(by By) signing.Note {
	return func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, moves []signing.Move) error {
		c := &change{Tx: tx, brand: brand, now: a.clock(), by: by}
		for _, m := range moves {
			detail := map[string]any{"kid": m.KID}
			if m.Before != "" {
				detail["before"] = m.Before
			}
			c.note(fact{event: "key." + m.After, detail: detail})
		}
		_, err := c.record(ctx, a.trace(ctx))
		return err
	}
}

// NoteKeysTelling is NoteKeys for somebody who is no member: every owner hears of
// the keys that are revoked.
func (a *Authority) NoteKeysTelling(by By, asker tenants.Asker) signing.Note {
	note := a.NoteKeys(by)
	return func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, moves []signing.Move) error {
		if slices.ContainsFunc(moves, func(m signing.Move) bool { return m.After == "revoked" }) {
			if err := asker.TellOwners(ctx, tx, brand, "key.revoked", a.clock()); err != nil {
				return err
			}
		}
		return note(ctx, tx, brand, moves)
	}
}

// NoteAgent writes what was done to an agent into the trail of every Brand: an
// agent is the same for all of them, and what it may do changes at each. Every
// Brand's trail is locked in one order, so that two who do so cannot wait for
// one another.
func (a *Authority) NoteAgent(by By) func(ctx context.Context, tx pgx.Tx, issuer, what string) error {
	return func(ctx context.Context, tx pgx.Tx, issuer, what string) error {
		const q = `SELECT id FROM brand_ids`
		rows, err := tx.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("list brands: %w", err)
		}
		brands, err := pgx.CollectRows(rows, pgx.RowTo[tenants.BrandID])
		if err != nil {
			return fmt.Errorf("list brands: %w", err)
		}
		slices.Sort(brands) // the order of recordAll, whatever the database sorts by
		for _, brand := range brands {
			if err := tenants.Enter(ctx, tx, brand); err != nil {
				return err
			}
			c := &change{Tx: tx, brand: brand, now: a.clock(), by: by}
			c.note(fact{event: "agent." + what, detail: map[string]any{"agent": issuer}})
			if _, err := c.record(ctx, a.trace(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
}

// NoteMet writes into the trail of the Brand where an agent was met that nobody
// has registered. Strangers bring it about, so no other Brand's trail is touched.
func (a *Authority) NoteMet() func(ctx context.Context, tx pgx.Tx, at tenants.BrandID, issuer, what string) error {
	return func(ctx context.Context, tx pgx.Tx, at tenants.BrandID, issuer, what string) error {
		if err := tenants.Enter(ctx, tx, at); err != nil {
			return err
		}
		c := &change{Tx: tx, brand: at, now: a.clock(), by: byAgent(Caller{Agent: issuer})}
		c.note(fact{event: "agent." + what, detail: map[string]any{"agent": issuer}})
		_, err := c.record(ctx, a.trace(ctx))
		return err
	}
}
