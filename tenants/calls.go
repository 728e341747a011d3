package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Call is a call that is to be done once.
type Call struct {
	Key         string // id of the API key: another's calls are other calls
	Idempotency string
	Request     []byte // digest of all that makes it this call
}

// Reply is what a call was answered.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}

// Reasons that a call is not done.
var (
	ErrCallDiffers = errors.New("the idempotency key belongs to another call")
	ErrCallRuns    = errors.New("the same call is under way")
)

const (
	callTime  = time.Minute    // after which nobody is still at work on it
	replyLife = 24 * time.Hour // how long an answer is kept
)

// BeginCall claims the call for this caller (nil, nil), or returns what it was
// answered before.
func BeginCall(ctx context.Context, db *DB, brand BrandID, c Call, now time.Time) (*Reply, error) {
	const claim = `
		INSERT INTO api_replies AS r (brand_id, api_key, key_hash, request_hash, created_at)
		VALUES (@brand, @key, @hash, @request, @now)
		ON CONFLICT (brand_id, api_key, key_hash) DO UPDATE
		   SET request_hash = excluded.request_hash, status = NULL, body = '', created_at = excluded.created_at
		 WHERE r.created_at <= @old OR r.status IS NULL AND r.created_at <= @dead AND r.request_hash = excluded.request_hash`
	args := pgx.NamedArgs{
		"brand": brand, "key": c.Key, "hash": keyHash(c.Idempotency), "request": c.Request,
		"now": now, "old": now.Add(-replyLife), "dead": now.Add(-callTime),
	}
	n, err := db.Exec(ctx, brand, claim, args)
	if err != nil || n == 1 {
		return nil, wrapCall(brand, err)
	}
	const find = `
		SELECT request_hash = @request AS same, coalesce(status, 0) AS status, content_type, body
		  FROM api_replies WHERE brand_id = @brand AND api_key = @key AND key_hash = @hash`
	r, err := One[struct {
		Same        bool
		Status      int
		ContentType string
		Body        []byte
	}](ctx, db, brand, find, args)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrCallRuns // it failed just now, and is free again
	case err != nil:
		return nil, wrapCall(brand, err)
	case !r.Same:
		return nil, ErrCallDiffers
	case r.Status == 0:
		return nil, ErrCallRuns
	}
	return &Reply{Status: r.Status, ContentType: r.ContentType, Body: r.Body}, nil
}

// EndCall keeps the answer; or gives the call free, where it should be tried again.
func EndCall(ctx context.Context, db *DB, brand BrandID, c Call, reply Reply, keep bool) error {
	q := `UPDATE api_replies SET status = @status, content_type = @type, body = @body
	       WHERE brand_id = @brand AND api_key = @key AND key_hash = @hash AND status IS NULL`
	if !keep {
		q = `DELETE FROM api_replies WHERE brand_id = @brand AND api_key = @key AND key_hash = @hash AND status IS NULL`
	}
	// The caller may have gone away; what was done is done all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := db.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "key": c.Key, "hash": keyHash(c.Idempotency), "status": reply.Status, "type": reply.ContentType, "body": reply.Body,
	})
	return wrapCall(brand, err)
}

// PurgeCalls removes answers that are no longer owed to anybody.
func PurgeCalls(ctx context.Context, db *DB, brand BrandID, now time.Time) error {
	const q = `DELETE FROM api_replies WHERE brand_id = @brand AND created_at <= @old`
	_, err := db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "old": now.Add(-replyLife)})
	return wrapCall(brand, err)
}

func wrapCall(brand BrandID, err error) error {
	if err != nil {
		return fmt.Errorf("keep call at %s: %w", brand, err)
	}
	return nil
}
