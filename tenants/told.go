package tenants

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// In makes the act's notices and its fact true with what else happens in the
// transaction, for changes that other packages make. The fact is written last:
// the trail's head stays locked until the end.
func (a Act) In(ctx context.Context, tx pgx.Tx) error {
	if err := a.Notify(ctx, tx); err != nil {
		return err
	}
	return a.Record(ctx, tx, a.Brand, a.By, a.Event, a.Detail)
}

// Notify is due notices to the owners, if the act is one they hear of.
func (a Act) Notify(ctx context.Context, tx pgx.Tx) error {
	if !a.Tell {
		return nil
	}
	return a.tellOwners(ctx, tx)
}
