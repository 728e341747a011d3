package tenants

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Webhook is where a Brand wants to be told what becomes of its people's grants.
type Webhook struct {
	ID          string `db:"id"`
	URL         string `db:"url"`
	Events      []string
	Format      string // FormatJSON or FormatSET
	Enabled     bool
	Note        string // why it is not enabled
	FormerUntil *time.Time
	CreatedAt   time.Time
}

// WebhookEvents lists all types of events.
func WebhookEvents() []string {
	return []string{"grant.created", "grant.widened", "grant.narrowed", "grant.revoked", "grant.expired", "grant.reuse_detected"}
}

// What an endpoint can be sent.
const (
	FormatJSON = "json" // our JSON, signed with the endpoint's secret (Standard Webhooks)
	FormatSET  = "set"  // a Security Event Token (RFC 8417, CAEP), signed with the Brand's key
)

// ErrNoWebhook is returned for an id that no endpoint of the Brand has.
var ErrNoWebhook = errors.New("the brand has no such webhook endpoint")

const (
	webhookIDSize       = 12
	webhookSecretPrefix = "whsec_"
	webhookSecretSize   = 32
	// WebhookOverlap is how long both secrets sign after a change.
	WebhookOverlap = 24 * time.Hour
)

// The endpoint is bound into the ciphertext, so that nobody who can write rows
// makes an endpoint of his own sign with another's secret.
func webhookPurpose(id string) string { return "webhook-secret " + id }

func newWebhookSecret(ctx context.Context, sealer Sealer, brand BrandID, id string) (secret string, sealed []byte, err error) {
	key := make([]byte, webhookSecretSize)
	_, _ = rand.Read(key) // never fails
	if sealed, err = sealer.Seal(ctx, brand, webhookPurpose(id), key); err != nil {
		return "", nil, fmt.Errorf("seal webhook secret of %s: %w", brand, err)
	}
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(key), sealed, nil
}

// Webhooks lists the Brand's endpoints, those that are off too.
func Webhooks(ctx context.Context, db *DB, brand BrandID) ([]Webhook, error) {
	const q = `
		SELECT id, url, events, format, enabled, note, former_until, created_at FROM webhook_endpoints
		 WHERE brand_id = @brand ORDER BY created_at, id`
	list, err := All[Webhook](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list webhooks of %s: %w", brand, err)
	}
	return list, nil
}

// RewrapWebhooks is RewrapLogins for the secrets of the Brand's endpoints, the
// former ones too.
func RewrapWebhooks(ctx context.Context, db *DB, to Rewrapper, brand BrandID) (int, error) {
	const list = `
		SELECT id, secret_sealed AS sealed FROM webhook_endpoints WHERE brand_id = @brand
		 UNION ALL
		SELECT id, former_sealed FROM webhook_endpoints WHERE brand_id = @brand AND former_sealed IS NOT NULL
		 ORDER BY id`
	type row struct {
		ID     string `db:"id"`
		Sealed []byte
	}
	rows, err := All[row](ctx, db, brand, list, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return 0, fmt.Errorf("list webhook secrets of %s: %w", brand, err)
	}
	// A rotation meanwhile moves a secret from one column to the other.
	const save = `
		UPDATE webhook_endpoints
		   SET secret_sealed = CASE WHEN secret_sealed = @sealed THEN @fresh ELSE secret_sealed END,
		       former_sealed = CASE WHEN former_sealed = @sealed THEN @fresh ELSE former_sealed END
		 WHERE brand_id = @brand AND id = @id AND (secret_sealed = @sealed OR former_sealed = @sealed)`
	total := 0
	for _, r := range rows {
		fresh, changed, err := to.Rewrap(ctx, brand, webhookPurpose(r.ID), r.Sealed)
		if err != nil {
			return total, fmt.Errorf("rewrap webhook secret of %s: %w", brand, err)
		}
		if !changed {
			continue
		}
		n, err := db.Exec(ctx, brand, save, pgx.NamedArgs{"brand": brand, "id": r.ID, "fresh": fresh, "sealed": r.Sealed})
		if err != nil {
			return total, fmt.Errorf("rewrap webhook secret of %s: %w", brand, err)
		}
		total += int(n)
	}
	return total, nil
}
