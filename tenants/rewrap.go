package tenants

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Rewrapper brings a sealed value under the newest key of its keeper. changed is
// false where it is under that key already.
type Rewrapper interface {
	Rewrap(ctx context.Context, brand BrandID, purpose string, sealed []byte) (fresh []byte, changed bool, err error)
}

// Rewrap brings every secret of the Brand that lasts under the newest key, and
// returns how many changed. After an error, those before it have.
func Rewrap(ctx context.Context, db *DB, to Rewrapper, brand BrandID) (int, error) {
	total := 0
	for _, rewrap := range []func(context.Context, *DB, Rewrapper, BrandID) (int, error){
		RewrapLogins, RewrapWebhooks, RewrapAgentSecrets, RewrapChanges,
	} {
		n, err := rewrap(ctx, db, to, brand)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// RewrapChanges is RewrapLogins for what waits for an owner, also where the time
// for that is over.
func RewrapChanges(ctx context.Context, db *DB, to Rewrapper, brand BrandID) (int, error) {
	const list = `
		SELECT id, kind, diff::text AS diff, payload_sealed AS sealed FROM pending_changes
		 WHERE brand_id = @brand AND payload_sealed IS NOT NULL ORDER BY id`
	type row struct {
		ID         uuid.UUID `db:"id"`
		Kind, Diff string
		Sealed     []byte
	}
	rows, err := All[row](ctx, db, brand, list, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return 0, fmt.Errorf("list changes of %s: %w", brand, err)
	}
	// Decided meanwhile: it is gone.
	const save = `
		UPDATE pending_changes SET payload_sealed = @fresh
		 WHERE brand_id = @brand AND id = @id AND payload_sealed = @sealed`
	total := 0
	for _, r := range rows {
		fresh, changed, err := to.Rewrap(ctx, brand, purposeOf(r.ID, r.Kind, []byte(r.Diff)), r.Sealed)
		if err != nil {
			return total, fmt.Errorf("rewrap change of %s: %w", brand, err)
		}
		if !changed {
			continue
		}
		n, err := db.Exec(ctx, brand, save, pgx.NamedArgs{"brand": brand, "id": r.ID, "fresh": fresh, "sealed": r.Sealed})
		if err != nil {
			return total, fmt.Errorf("rewrap change of %s: %w", brand, err)
		}
		total += int(n)
	}
	return total, nil
}
