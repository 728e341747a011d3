package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// fact is one line of the audit trail. Detail holds ids and counts, never a
// code, a token or anything a person typed.
type fact struct {
	actor   string // user, agent, admin, operator, system
	event   string
	request uuid.UUID // may be zero
	grant   uuid.UUID // may be zero
	detail  map[string]any
}

// record writes the fact in the transaction that makes it true.
func record(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, at time.Time, f fact) error {
	const q = `
		INSERT INTO audit_events (brand_id, at, actor, event, request_id, grant_id, detail)
		VALUES (@brand, @at, @actor, @event, nullif(@request, '00000000-0000-0000-0000-000000000000'::uuid),
		        nullif(@grant, '00000000-0000-0000-0000-000000000000'::uuid), @detail)`
	if f.detail == nil {
		f.detail = map[string]any{}
	}
	detail, err := json.Marshal(f.detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", f.event, err)
	}
	_, err = tx.Exec(ctx, q, pgx.NamedArgs{
		"brand": brand, "at": at, "actor": f.actor, "event": f.event,
		"request": f.request, "grant": f.grant, "detail": detail,
	})
	if err != nil {
		return fmt.Errorf("audit %s: %w", f.event, err)
	}
	return nil
}
