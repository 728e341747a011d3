package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// fact is one line of the audit trail. Detail holds ids and counts, never a
// code, a token or anything a person typed; of a Brand's settings, what they were
// and what they are.
type fact struct {
	by      By // who, if not whoever makes the change
	event   string
	request uuid.UUID // may be zero
	grant   uuid.UUID // may be zero
	detail  map[string]any
	// values are the authorization_details that the Brand is told beside the detail.
	// The trail holds their digests.
	values []json.RawMessage
}

// Event is a change of a grant, for those who must hear of it: the Brand.
type Event struct {
	Seq   int64 // its place in the Brand's trail: strictly rising, without gaps in time
	Brand tenants.BrandID
	Type  string // grant.created, widened, narrowed, revoked, expired or reuse_detected
	At    time.Time
	Grant uuid.UUID
	Data  json.RawMessage // EventData
	// Details say more exactly what the scopes allow, as the token does.
	Details []json.RawMessage
}

// EventData is what is told of a change.
type EventData struct {
	Agent   string   `json:"agent"`
	Subject string   `json:"subject"`
	Scopes  []string `json:"scopes"` // from now on
	// Details say more exactly what the scopes allow. They are no part of the trail.
	Details  []json.RawMessage `json:"-"`
	Before   []string          `json:"before,omitempty"` // until now
	Until    time.Time         `json:"until"`
	WasUntil time.Time         `json:"before_until,omitzero"` // the end until now; zero of a new grant
	Reason   string            `json:"reason,omitempty"`
	Consent  string            `json:"consent,omitempty"` // id of what the person saw
	AgentSub string            `json:"-"`
}

// Announce hands events to whoever tells the Brand, in the transaction that
// makes them true: an outbox.
type Announce func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, events []Event) error

// grantEvents are the facts that the Brand is told.
const grantEvents = "grant."

// record writes the facts in the transaction that makes them true, and returns
// those that the Brand is told. The table chains them by itself.
func (c *change) record(ctx context.Context, trace string) ([]Event, error) {
	const q = `
		INSERT INTO audit_events (brand_id, at, actor, actor_id, channel, event, request_id, grant_id, trace, detail)
		VALUES (@brand, @at, @actor, @id, @channel, @event, nullif(@request, '00000000-0000-0000-0000-000000000000'::uuid),
		        nullif(@grant, '00000000-0000-0000-0000-000000000000'::uuid), @trace, @detail)
		RETURNING seq`
	const withValues = `
		WITH e AS (` + q + `), kept AS (
			INSERT INTO event_details (brand_id, seq, salt, details) SELECT @brand, seq, @salt, @values FROM e
		)
		SELECT seq FROM e`
	var batch pgx.Batch
	details := make([]json.RawMessage, len(c.facts))
	for i, f := range c.facts {
		if f.detail == nil {
			f.detail = map[string]any{}
		}
		args := pgx.NamedArgs{
			"brand": c.brand, "at": c.now, "actor": f.by.Actor, "id": f.by.ID, "channel": f.by.Channel,
			"event": f.event, "request": f.request, "grant": f.grant, "trace": trace,
		}
		write := q
		if len(f.values) > 0 {
			salt, err := f.setAside()
			if err != nil {
				return nil, fmt.Errorf("audit %s: %w", f.event, err)
			}
			write, args["salt"], args["values"] = withValues, salt, f.values
		}
		detail, err := json.Marshal(f.detail)
		if err != nil {
			return nil, fmt.Errorf("audit %s: %w", f.event, err)
		}
		details[i] = detail
		args["detail"] = details[i]
		batch.Queue(write, args)
	}
	if batch.Len() == 0 {
		return nil, nil
	}
	res := c.SendBatch(ctx, &batch)
	defer res.Close()
	var told []Event
	for i, f := range c.facts {
		e := Event{Brand: c.brand, Type: f.event, At: c.now, Grant: f.grant, Data: details[i], Details: f.values}
		if err := res.QueryRow().Scan(&e.Seq); err != nil {
			return nil, fmt.Errorf("audit %s: %w: %w", f.event, ErrTrail, err)
		}
		if strings.HasPrefix(f.event, grantEvents) {
			told = append(told, e)
		}
	}
	return told, res.Close()
}
