package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Told returns what the Brand is told after a place in its trail, oldest first.
// Facts of a Brand become visible in the order of their places, so whoever has
// read up to a place has missed nothing before it.
func Told(ctx context.Context, db *tenants.DB, brand tenants.BrandID, after int64, most int) ([]Event, error) {
	const q = `
		SELECT e.seq, e.at, e.event, e.grant_id, e.detail, ` + valuesOf + `
		 WHERE e.brand_id = @brand AND e.seq > @after AND e.event LIKE 'grant.%'
		 ORDER BY e.seq LIMIT @most`
	return readEvents(ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "after": after, "most": most})
}

// EventTest is the fact that somebody had an endpoint called to see whether it
// answers. Only that endpoint hears of it.
const EventTest = "webhook.tested"

// ToldAt returns what the Brand is told at the places, in any order.
func ToldAt(ctx context.Context, db *tenants.DB, brand tenants.BrandID, places []int64) ([]Event, error) {
	const q = `
		SELECT e.seq, e.at, e.event, coalesce(e.grant_id, '00000000-0000-0000-0000-000000000000'::uuid) AS grant_id, e.detail, ` + valuesOf + `
		 WHERE e.brand_id = @brand AND e.seq = ANY (@places) AND (e.event LIKE 'grant.%' OR e.event = '` + EventTest + `')`
	return readEvents(ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "places": places})
}

// valuesOf are the details that an event tells, and where they stand: a fact of
// before they had a table of their own holds them.
const valuesOf = `coalesce(d.details, (e.detail->'authorization_details')::jsonb) AS details
		  FROM audit_events e
		  LEFT JOIN event_details d ON d.brand_id = e.brand_id AND d.seq = e.seq`

func readEvents(ctx context.Context, db *tenants.DB, brand tenants.BrandID, q string, args pgx.NamedArgs) ([]Event, error) {
	type row struct {
		Seq     int64 `db:"seq"`
		At      time.Time
		Event   string
		GrantID uuid.UUID
		Detail  json.RawMessage
		Details []json.RawMessage
	}
	rows, err := tenants.All[row](ctx, db, brand, q, args)
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", brand, err)
	}
	events := make([]Event, len(rows))
	for i, r := range rows {
		events[i] = Event{Seq: r.Seq, Brand: brand, Type: r.Event, At: r.At, Grant: r.GrantID, Data: r.Detail, Details: r.Details}
	}
	return events, nil
}

// LastPlace is where the Brand's trail ends now; 0 if it has none.
func LastPlace(ctx context.Context, db *tenants.DB, brand tenants.BrandID) (int64, error) {
	const q = `SELECT seq FROM audit_heads WHERE brand_id = @brand`
	r, err := tenants.One[struct{ Seq int64 }](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("read the end of %s's trail: %w", brand, err)
	}
	return r.Seq, nil
}
