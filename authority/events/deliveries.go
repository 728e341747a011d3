package events

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Delivery is one event's way to one endpoint, as an operator sees it.
type Delivery struct {
	ID         uuid.UUID `db:"id"` // the webhook-id
	Endpoint   string
	Seq        int64
	Event      string
	State      string // pending, delivered or dead
	Attempts   int
	DueAt      time.Time
	LastAt     *time.Time // nil: not tried yet
	LastStatus *int       // nil: no answer came
	LastError  string
}

// Which names deliveries: all that match every field that is set.
type Which struct {
	Endpoint string
	State    string // pending, delivered or dead
	Before   int64  // only of events before this place in the trail: the next page
}

// Some lists the Brand's newest deliveries that which names, at most so many. Of
// one endpoint, no two are about the same place, so that pages by place neither
// skip nor repeat one.
func Some(ctx context.Context, db *tenants.DB, brand tenants.BrandID, which Which, most int) ([]Delivery, error) {
	const q = `
		SELECT d.id, d.endpoint_id AS endpoint, d.seq, e.event, d.state, d.attempts, d.due_at, d.last_at, d.last_status, d.last_error
		  FROM webhook_deliveries d
		  JOIN audit_events e ON e.brand_id = @brand AND e.seq = d.seq
		 WHERE d.brand_id = @brand AND (@endpoint = '' OR d.endpoint_id = @endpoint) AND (@state = '' OR d.state = @state)
		   AND (@before = 0 OR d.seq < @before)
		 ORDER BY d.seq DESC, d.endpoint_id LIMIT @most`
	list, err := tenants.All[Delivery](ctx, db, brand, q, pgx.NamedArgs{
		"brand": brand, "endpoint": which.Endpoint, "state": which.State, "before": which.Before, "most": most,
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries of %s: %w", brand, err)
	}
	return list, nil
}

// Dead counts the deliveries that were given up since then: what the Brand does
// not know.
func Dead(ctx context.Context, db *tenants.DB, brand tenants.BrandID, since time.Time) (int, error) {
	const q = `
		SELECT count(*) AS n FROM webhook_deliveries
		 WHERE brand_id = @brand AND state <> 'pending' AND since >= @since AND state = 'dead'`
	r, err := tenants.One[struct{ N int }](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "since": since})
	if err != nil {
		return 0, fmt.Errorf("count dead deliveries of %s: %w", brand, err)
	}
	return r.N, nil
}

// Tally is how many deliveries of one endpoint are in each state.
type Tally struct {
	Endpoint                 string `db:"endpoint_id"`
	Pending, Delivered, Dead int
	LastAt                   *time.Time // the latest attempt
}

// Tallies counts the deliveries of every endpoint of the Brand that has any.
func Tallies(ctx context.Context, db *tenants.DB, brand tenants.BrandID) ([]Tally, error) {
	const q = `
		SELECT endpoint_id, count(*) FILTER (WHERE state = 'pending') AS pending,
		       count(*) FILTER (WHERE state = 'delivered') AS delivered, count(*) FILTER (WHERE state = 'dead') AS dead,
		       max(last_at) AS last_at
		  FROM webhook_deliveries WHERE brand_id = @brand GROUP BY endpoint_id`
	list, err := tenants.All[Tally](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("count deliveries of %s: %w", brand, err)
	}
	return list, nil
}

// Deliveries lists the Brand's newest deliveries, at most so many; of one
// endpoint and in one state, where these are given.
func Deliveries(ctx context.Context, db *tenants.DB, brand tenants.BrandID, endpoint, state string, most int) ([]Delivery, error) {
	return Some(ctx, db, brand, Which{Endpoint: endpoint, State: state}, most)
}
