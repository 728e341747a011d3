package authority

import (
	"context"
	"fmt"
	"slices"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Skippable reports whether the Brand may let this person through with one
// Continue, without checkboxes: where it wants that, everything asked for is
// held by the living grant of this very login, nothing that the token will say
// is of high impact, and every word is the one under which it was allowed (B36).
func (q *Question) Skippable(brand *tenants.Brand) bool {
	if !brand.SkipConsent || q.GrantVersion == 0 || q.OtherUser || q.WrongUser {
		return false
	}
	if len(q.Details)+len(q.HeldDetails) > 0 {
		return false // they are said beside a box, and the brief page has none
	}
	return unchanged(brand, q.Requested, q.Held, q.Seen)
}

// unchanged judges all that is held and not only what is asked for, since the
// token carries the whole living grant (M15).
func unchanged(brand *tenants.Brand, requested, held []string, seen map[string]digest) bool {
	for _, id := range requested {
		if _, ok := brand.Scope(id); !ok || !slices.Contains(held, id) {
			return false
		}
	}
	for _, id := range held {
		s, ok := brand.Scope(id)
		if !ok {
			continue // off the card: no token says it
		}
		then, ok := seen[id]
		if !ok || s.Impact == "high" || digestOf(then.Language, SeenAs(s, then.Language)) != then {
			return false
		}
	}
	return len(requested) > 0
}

// Proceed approves a request that asks only for what is held already, after one
// Continue. The grant stays exactly as it is, its end too. Where anything that
// makes it Skippable no longer holds, ErrChanged: ask in full.
func (a *Authority) Proceed(ctx context.Context, brand *tenants.Brand, d Decision) error {
	err := a.change(ctx, brand.ID, ByUser(d.Subject), a.clock(), func(c *change) error {
		r, g, err := lockBoth(ctx, c, d)
		if err != nil {
			return err
		}
		if g.Version == 0 || !brand.SkipConsent || r.OtherUser(d.Subject) || len(r.Details)+len(g.Details) > 0 {
			return ErrChanged
		}
		const q = `SELECT seen FROM grants WHERE brand_id = @brand AND id = @id`
		var agreed map[string]digest
		if err := c.QueryRow(ctx, q, pgx.NamedArgs{"brand": c.brand, "id": g.ID}).Scan(&agreed); err != nil {
			return err
		}
		if !unchanged(brand, r.Scopes, intersect(g.Scopes, r.Offered), agreed) {
			return ErrChanged
		}
		seen, err := c.keepSeen(ctx, d, "continued", g.ID)
		if err != nil {
			return err
		}
		return c.answer(ctx, d, "approved", g.ID, map[string]any{
			"requested": r.Scopes, "granted": g.Scopes, "continued": true,
			"consent": seen.id, "consent_hash": seen.hash, "kind": r.Kind,
		})
	})
	if err != nil && !isRefusal(err) {
		return fmt.Errorf("proceed at %s: %w", brand.ID, err)
	}
	return err
}
