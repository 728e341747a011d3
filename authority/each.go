package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// eachBatch is how many rows are read at a time.
const eachBatch = 500

// EachGrant hands every grant of the Brand to fn, the newest first, and stops at
// fn's first error. As with Trail, no transaction is open meanwhile.
func (a *Authority) EachGrant(ctx context.Context, brand tenants.BrandID, fn func(Grant) error) error {
	var after uuid.UUID
	for {
		page, err := a.List(ctx, brand, Filter{}, after, eachBatch)
		if err != nil {
			return err
		}
		for _, g := range page {
			if err := fn(g.Grant); err != nil {
				return err
			}
			after = g.ID
		}
		if len(page) < eachBatch {
			return nil
		}
	}
}

// StoredAnswer is an answer as it is kept: the text of its record to the byte, so
// that the hash fits.
type StoredAnswer struct {
	ID        uuid.UUID  `db:"id"`
	RequestID *uuid.UUID `db:"request_id"`
	GrantID   *uuid.UUID `db:"grant_id"`
	Subject   string
	At        time.Time
	Answer    string
	Record    string
	Hash      []byte
}

// EachAnswer hands every answer that the Brand's users gave to fn, the oldest
// first, as EachGrant does.
func (a *Authority) EachAnswer(ctx context.Context, brand tenants.BrandID, fn func(StoredAnswer) error) error {
	const q = `
		SELECT id, request_id, grant_id, subject, at, answer, record::text AS record, hash FROM consents
		 WHERE brand_id = @brand AND id > @after
		 ORDER BY id LIMIT @limit`
	var after uuid.UUID
	return each(ctx, a.db, brand, q, func() any { return after }, func(s StoredAnswer) error {
		after = s.ID
		return fn(s)
	})
}

// Suspended is a Brand user in whose name nothing happens.
type Suspended struct {
	Subject     string
	SuspendedAt time.Time
}

// EachSuspended hands every suspended user of the Brand to fn, as EachGrant does.
func (a *Authority) EachSuspended(ctx context.Context, brand tenants.BrandID, fn func(Suspended) error) error {
	const q = `
		SELECT subject, suspended_at FROM suspended_users
		 WHERE brand_id = @brand AND subject > @after
		 ORDER BY subject LIMIT @limit`
	after := ""
	return each(ctx, a.db, brand, q, func() any { return after }, func(s Suspended) error {
		after = s.Subject
		return fn(s)
	})
}

// LoggedReceipt is a line of the log with its receipt. What was erased is empty.
type LoggedReceipt struct {
	Seq       int64
	Entry     string
	Salt      []byte
	ContextID string `db:"context_id"`
	MessageID string `db:"message_id"`
	JWS       string `db:"jws"`
}

// EachLogged hands every line of the Brand's log to fn, in order, as EachGrant does.
func (a *Authority) EachLogged(ctx context.Context, brand tenants.BrandID, fn func(LoggedReceipt) error) error {
	const q = `
		SELECT seq, entry, salt, coalesce(context_id, '') AS context_id, coalesce(message_id, '') AS message_id, coalesce(jws, '') AS jws
		  FROM receipts
		 WHERE brand_id = @brand AND seq > @after
		 ORDER BY seq LIMIT @limit`
	after := int64(-1)
	return each(ctx, a.db, brand, q, func() any { return after }, func(l LoggedReceipt) error {
		after = l.Seq
		return fn(l)
	})
}

// SignedCheckpoint is one that was signed of the Brand's log.
type SignedCheckpoint struct {
	Size int64
	KID  string `db:"kid"`
	Log  string // its name, where it was written down
	JWS  string `db:"jws"`
}

// EachCheckpoint hands every checkpoint that was ever signed of the Brand's log to
// fn, the smallest log first, as EachGrant does.
func (a *Authority) EachCheckpoint(ctx context.Context, brand tenants.BrandID, fn func(SignedCheckpoint) error) error {
	const q = `
		SELECT size, kid, log, jws FROM log_checkpoints
		 WHERE brand_id = @brand AND (size, kid, log) > ((@after::jsonb->>0)::bigint, @after::jsonb->>1, @after::jsonb->>2)
		 ORDER BY size, kid, log LIMIT @limit`
	after := [3]any{-1, "", ""}
	return each(ctx, a.db, brand, q, func() any { return after }, func(c SignedCheckpoint) error {
		after = [3]any{c.Size, c.KID, c.Log}
		return fn(c)
	})
}

func each[T any](ctx context.Context, db *tenants.DB, brand tenants.BrandID, q string, after func() any, fn func(T) error) error {
	for {
		page, err := tenants.All[T](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "after": after(), "limit": eachBatch})
		if err != nil {
			return fmt.Errorf("read everything of %s: %w", brand, err)
		}
		for _, one := range page {
			if err := fn(one); err != nil {
				return err
			}
		}
		if len(page) < eachBatch {
			return nil
		}
	}
}
