package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// wake is the job that has an endpoint's deliveries looked at. It holds ids and
// a time only: jobs stand outside the Brands' fence.
type wake struct {
	Brand    tenants.BrandID `json:"brand"`
	Endpoint string          `json:"endpoint"`
	At       int64           `json:"at,omitempty"` // of one that was set for later: when, in microseconds
}

// Kind implements river.JobArgs.
func (wake) Kind() string { return "webhook_wake" }

const queue = "webhooks"

// steadfast is more often than a job ever fails: a job gives up for nobody's
// trouble, for a delivery gives up by itself.
const steadfast = 30_000

// InsertOpts implements river.JobArgsWithInsertOpts.
func (wake) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: steadfast}
}

// Outbox takes down what Brands are to be told. It works nothing off, so
// commands that change grants have one too.
type Outbox struct {
	db   *tenants.DB
	jobs *river.Client[pgx.Tx]
	now  func() time.Time
}

// NewOutbox returns an Outbox over db.
func NewOutbox(db *tenants.DB, now func() time.Time) (*Outbox, error) {
	jobs, err := river.NewClient(riverpgxv5.New(db.Pool()), &river.Config{
		Logger: slog.New(slog.DiscardHandler),
		// Whoever inserts tells the workers no more often than this. At the usual
		// tenth of a second, what comes next would wait for their next look.
		FetchCooldown: river.FetchCooldownMin,
	})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return &Outbox{db: db, jobs: jobs, now: now}, nil
}

// Announce is an authority.Announce: in the transaction that makes the events
// true it writes one delivery for each event and endpoint that wants it, and
// one job for each endpoint.
func (o *Outbox) Announce(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, events []authority.Event) error {
	const q = `
		INSERT INTO webhook_deliveries (brand_id, id, endpoint_id, seq, state, since, due_at)
		SELECT @brand, gen_random_uuid(), w.id, e.seq, 'pending', e.at, e.at
		  FROM unnest(@seqs::bigint[], @types::text[], @at::timestamptz[]) AS e (seq, type, at)
		  JOIN webhook_endpoints w ON w.brand_id = @brand AND w.enabled AND e.type = ANY (w.events)
		RETURNING endpoint_id`
	var seqs []int64
	var types []string
	var at []time.Time
	for _, e := range events {
		seqs, types, at = append(seqs, e.Seq), append(types, e.Type), append(at, e.At)
	}
	rows, err := tx.Query(ctx, q, pgx.NamedArgs{"brand": brand, "seqs": seqs, "types": types, "at": at})
	if err != nil {
		return fmt.Errorf("write to the outbox of %s: %w", brand, err)
	}
	endpoints, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("write to the outbox of %s: %w", brand, err)
	}
	slices.Sort(endpoints)
	return o.ring(ctx, tx, brand, slices.Compact(endpoints))
}

// ring has the endpoints looked at once the transaction is a fact.
func (o *Outbox) ring(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, endpoints []string) error {
	if len(endpoints) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(endpoints))
	for i, e := range endpoints {
		jobs[i] = river.InsertManyParams{Args: wake{Brand: brand, Endpoint: e}}
	}
	if _, err := o.jobs.InsertManyTx(ctx, tx, jobs); err != nil {
		return fmt.Errorf("ring for the endpoints of %s: %w", brand, err)
	}
	return nil
}

// Test sends the fact that the transaction has just written, authority.EventTest,
// to the one endpoint, whatever types it wants. The trail's head is locked since,
// so the newest fact is that one.
func (o *Outbox) Test(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, endpoint string) error {
	const q = `
		INSERT INTO webhook_deliveries (brand_id, id, endpoint_id, seq, state, since, due_at)
		SELECT @brand, gen_random_uuid(), w.id, e.seq, 'pending', e.at, e.at
		  FROM webhook_endpoints w
		  JOIN audit_heads h ON h.brand_id = @brand
		  JOIN audit_events e ON e.brand_id = @brand AND e.seq = h.seq AND e.event = @event
		 WHERE w.brand_id = @brand AND w.id = @endpoint AND w.enabled`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "endpoint": endpoint, "event": authority.EventTest})
	switch {
	case err != nil:
		return fmt.Errorf("write a test to the outbox of %s: %w", brand, err)
	case tag.RowsAffected() == 0:
		return ErrOff
	}
	return o.ring(ctx, tx, brand, []string{endpoint})
}

// SendTest writes the fact of a test in somebody's name, and sends it to the one
// endpoint. One that is not there is tenants.ErrNoWebhook.
func (o *Outbox) SendTest(ctx context.Context, rules *authority.Authority, brand tenants.BrandID, endpoint string, by authority.By) error {
	const there = `SELECT EXISTS (SELECT FROM webhook_endpoints WHERE brand_id = @brand AND id = @endpoint)`
	return o.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		var known bool
		if err := tx.QueryRow(ctx, there, pgx.NamedArgs{"brand": brand, "endpoint": endpoint}).Scan(&known); err != nil {
			return fmt.Errorf("find endpoint of %s: %w", brand, err)
		}
		if !known {
			return tenants.ErrNoWebhook
		}
		if err := rules.Note(ctx, tx, brand, by, authority.EventTest, map[string]any{"endpoint": endpoint}); err != nil {
			return err
		}
		return o.Test(ctx, tx, brand, endpoint)
	})
}

// Refusals of Replay.
var (
	ErrNoDelivery = errors.New("there is no such delivery, or it is under way")
	ErrOff        = errors.New("the endpoint is not enabled")
)

// Replay has a delivery sent again that is dead or was delivered; the id of an
// endpoint stands for all of its dead ones. The webhook-id stays the same. It
// returns how many. What else is to be true with it, also does.
func (o *Outbox) Replay(ctx context.Context, brand tenants.BrandID, id string, also ...func(context.Context, pgx.Tx) error) (int, error) {
	const on = `SELECT enabled FROM webhook_endpoints WHERE brand_id = @brand AND id = @endpoint`
	const q = `
		UPDATE webhook_deliveries
		   SET state = 'pending', tries = 0, since = @now, due_at = @now, claimed_until = NULL
		 WHERE brand_id = @brand AND (id = @id AND state <> 'pending' OR endpoint_id = @endpoint AND state = 'dead')
		RETURNING endpoint_id`
	delivery, err := uuid.Parse(id)
	args := pgx.NamedArgs{"brand": brand, "id": delivery, "endpoint": id, "now": o.now()}
	if err == nil {
		args["endpoint"] = ""
	}
	n := 0
	err = o.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, q, args)
		if err != nil {
			return err
		}
		endpoints, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if n = len(endpoints); n == 0 {
			return ErrNoDelivery
		}
		var enabled bool
		if err := tx.QueryRow(ctx, on, pgx.NamedArgs{"brand": brand, "endpoint": endpoints[0]}).Scan(&enabled); err != nil {
			return err
		}
		if !enabled {
			return ErrOff
		}
		for _, do := range also {
			if err := do(ctx, tx); err != nil {
				return err
			}
		}
		return o.ring(ctx, tx, brand, endpoints[:1])
	})
	if err != nil {
		return 0, fmt.Errorf("replay at %s: %w", brand, err)
	}
	return n, nil
}
