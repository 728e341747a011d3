package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Receiver is an endpoint as it is called.
type Receiver struct {
	ID      string
	Issuer  string // the Brand's
	Format  string // FormatJSON or FormatSET
	URL     string
	Events  []string
	Enabled bool
	Closed  bool // the Brand is, since ClosedTold: it is told nothing more
	Keys    []WebhookKey
}

// WebhookKey is one that signs until its time; a zero time is without end.
type WebhookKey struct {
	Key   []byte
	Until time.Time
}

// LogValue and String keep the secret out of logs and formatted text.
func (WebhookKey) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// String implements fmt.Stringer.
func (WebhookKey) String() string { return "[hidden]" }

// GoString implements fmt.GoStringer.
func (WebhookKey) GoString() string { return "[hidden]" }

// Receivers finds endpoints with their opened secrets. What it knows is at most
// a second old; while the keeper of the secrets is away, the last known serves,
// for to be told of a revocation matters most when something is wrong.
type Receivers struct {
	db     *DB
	sealer Sealer
	memo   Memo[receiverRef, Receiver]
}

type receiverRef struct {
	brand BrandID
	id    string
}

// NewReceivers returns a Receivers over db.
func NewReceivers(db *DB, sealer Sealer, now func() time.Time) *Receivers {
	r := &Receivers{db: db, sealer: sealer}
	r.memo = Memo[receiverRef, Receiver]{
		Fresh: staleness, Stale: outage, Now: now, Load: r.load,
		Missing: func(err error) bool { return errors.Is(err, ErrNoWebhook) },
	}
	return r
}

// Receiver returns the endpoint, or ErrNoWebhook.
func (r *Receivers) Receiver(ctx context.Context, brand BrandID, id string) (Receiver, error) {
	return r.memo.Get(ctx, receiverRef{brand, id})
}

// Forget drops what is remembered of an endpoint, after a change made here.
func (r *Receivers) Forget(brand BrandID, id string) { r.memo.Forget(receiverRef{brand, id}) }

func (r *Receivers) load(ctx context.Context, ref receiverRef) (Receiver, error) {
	const q = `
		SELECT w.url, w.events, w.format, w.enabled, b.issuer,
		       b.state = 'closed' AND coalesce(b.closed_at, '-infinity') <= @since AS closed,
		       w.secret_sealed AS sealed, w.former_sealed AS former, w.former_until AS until
		  FROM webhook_endpoints w
		  JOIN brands b ON b.id = w.brand_id
		 WHERE w.brand_id = @brand AND w.id = @id`
	type row struct {
		URL     string `db:"url"`
		Events  []string
		Format  string
		Enabled bool
		Issuer  string
		Closed  bool
		Sealed  []byte
		Former  []byte
		Until   *time.Time
	}
	found, err := One[row](ctx, r.db, ref.brand, q, pgx.NamedArgs{
		"brand": ref.brand, "id": ref.id, "since": r.memo.Now().Add(-ClosedTold),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Receiver{}, ErrNoWebhook
	}
	if err != nil {
		return Receiver{}, fmt.Errorf("load webhook of %s: %w", ref.brand, err)
	}
	out := Receiver{
		ID: ref.id, Issuer: found.Issuer, Format: found.Format, URL: found.URL, Events: found.Events, Enabled: found.Enabled, Closed: found.Closed,
	}
	for _, sealed := range [][]byte{found.Sealed, found.Former} {
		if sealed == nil {
			continue
		}
		key, err := r.sealer.Open(ctx, ref.brand, webhookPurpose(ref.id), sealed)
		if err != nil {
			return Receiver{}, fmt.Errorf("open webhook secret of %s: %w", ref.brand, err)
		}
		out.Keys = append(out.Keys, WebhookKey{Key: key})
	}
	if found.Until != nil {
		out.Keys[1].Until = *found.Until
	}
	return out, nil
}
