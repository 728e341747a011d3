package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Done is a receipt as it is listed: what was done under a grant, and when.
type Done struct {
	Receipt
	At        time.Time // its ts; no two of a grant are equal
	ContextID string
	MessageID string
	Scopes    []string
	Actions   []receiptlog.Action
}

// Done returns what was done under the grant, the latest first: up to limit
// receipts from before the given time (zero: all), leaving out what was erased.
// Whose grant it is, the caller has asked.
func (a *Authority) Done(ctx context.Context, brand tenants.BrandID, grant uuid.UUID, before time.Time, limit int) ([]Done, error) {
	const q = `
		SELECT seq, late, at, context_id, message_id, jws FROM receipts
		 WHERE brand_id = @brand AND grant_id = @grant AND (@before::timestamptz IS NULL OR at < @before) AND jws IS NOT NULL
		 ORDER BY at DESC LIMIT @limit`
	var until *time.Time
	if !before.IsZero() {
		until = &before
	}
	rows, err := tenants.All[storedReceipt](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "grant": grant, "before": until, "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list receipts at %s: %w", brand, err)
	}
	out := make([]Done, len(rows))
	for i, r := range rows {
		if out[i], err = r.done(); err != nil {
			return nil, fmt.Errorf("read receipt %d of %s: %w", r.Seq, brand, err)
		}
	}
	return out, nil
}

type storedReceipt struct {
	Seq       int64
	Late      bool
	At        time.Time
	ContextID string `db:"context_id"`
	MessageID string `db:"message_id"`
	JWS       string `db:"jws"`
}

func (r storedReceipt) done() (Done, error) {
	d := Done{
		Receipt: Receipt{JWS: r.JWS, Claims: payloadOf(r.JWS), Seq: r.Seq, Late: r.Late, Again: true},
		At:      r.At.UTC(), ContextID: r.ContextID, MessageID: r.MessageID,
	}
	var c receiptlog.Claims
	err := json.Unmarshal(d.Claims, &c)
	d.Scopes, d.Actions = c.ScopesUsed, c.Actions
	return d, err
}

// CountDone is how many receipts the grant has.
func (a *Authority) CountDone(ctx context.Context, brand tenants.BrandID, grant uuid.UUID) (int, error) {
	const q = `SELECT count(*) AS n FROM receipts WHERE brand_id = @brand AND grant_id = @grant AND jws IS NOT NULL`
	r, err := tenants.One[struct{ N int }](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "grant": grant})
	if err != nil {
		return 0, fmt.Errorf("count receipts at %s: %w", brand, err)
	}
	return r.N, nil
}
