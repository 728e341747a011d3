package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"
)

// TaskReceipt binds the receipts of a conversation: a JWS of receiptlog.Task.
type TaskReceipt struct {
	JWS    string
	Claims json.RawMessage
	Count  int64
	Again  bool // it was there already
}

// CountersignTask binds the receipts that the conversation has under the grant, in
// the order of the log, at its end: whoever holds them and this cannot lose or
// reorder one unseen. It may be asked for again; the same receipts give the same
// JWS, and later ones another that extends it. Without any it is ErrUnknown; while a
// turn of it waits for its receipt, which would be missing, ErrUnavailable.
//
// No token is needed: each of the receipts needed one.
func (a *Authority) CountersignTask(ctx context.Context, brand *tenants.Brand, grant uuid.UUID, contextID string) (TaskReceipt, error) {
	if err := a.nothingWaits(ctx, brand.ID, grant, contextID); err != nil {
		return TaskReceipt{}, err
	}
	edge, first, err := a.taskEdge(ctx, brand.ID, grant, contextID)
	if err != nil {
		return TaskReceipt{}, err
	}
	t, err := a.taskReceipt(ctx, brand.ID, grant, contextID, edge.Size)
	if !errors.Is(err, pgx.ErrNoRows) {
		return t, err
	}
	now := a.clock().Truncate(time.Millisecond)
	payload, err := canonical.Of(receiptlog.Task{
		GrantID: first.GrantID, User: first.User, PA: first.PA, Brand: first.Brand, ContextID: contextID,
		Count: edge.Size, Root: receiptlog.Text(edge.Root()), TS: receiptlog.At(now),
	})
	if err != nil {
		return TaskReceipt{}, fmt.Errorf("encode task receipt: %w", err)
	}
	signCtx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	jws, err := a.signer.Sign(signCtx, brand.ID, signing.TypTaskReceipt, payload)
	if err != nil {
		return TaskReceipt{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	// Only while its receipts stand: the person may have been erased meanwhile,
	// under the lock that this one waits for.
	const still = `SELECT FROM log_heads WHERE brand_id = @brand FOR SHARE`
	const keep = `
		INSERT INTO task_receipts (brand_id, grant_id, context_id, count, at, jws)
		SELECT @brand, @grant, @context, @count, @now, @jws
		 WHERE EXISTS (SELECT FROM receipts WHERE brand_id = @brand AND grant_id = @grant AND context_id = @context)
		   AND NOT ` + turnWaits + `
		ON CONFLICT DO NOTHING`
	args := pgx.NamedArgs{
		"brand": brand.ID, "grant": grant, "context": contextID, "count": edge.Size, "now": now, "jws": jws,
	}
	var n int64
	err = a.db.Tx(ctx, brand.ID, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, still, args); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, keep, args)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		return TaskReceipt{}, fmt.Errorf("keep task receipt at %s: %w", brand.ID, err)
	}
	if n == 1 {
		return TaskReceipt{JWS: jws, Claims: payload, Count: edge.Size}, nil
	}
	if err := a.nothingWaits(ctx, brand.ID, grant, contextID); err != nil { // one that came meanwhile
		return TaskReceipt{}, err
	}
	t, err = a.taskReceipt(ctx, brand.ID, grant, contextID, edge.Size) // somebody was faster
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknown
	}
	return t, err
}

// turnWaits is whether a turn that the Brand's server handed in has no receipt yet.
const turnWaits = `EXISTS (
	SELECT FROM turns_accepted WHERE brand_id = @brand AND grant_id = @grant AND context_id = @context AND turn IS NOT NULL)`

func (a *Authority) nothingWaits(ctx context.Context, brand tenants.BrandID, grant uuid.UUID, contextID string) error {
	r, err := tenants.One[struct{ Waits bool }](ctx, a.db, brand, `SELECT `+turnWaits+` AS waits`, pgx.NamedArgs{
		"brand": brand, "grant": grant, "context": contextID,
	})
	switch {
	case err != nil:
		return fmt.Errorf("look what waits at %s: %w", brand, err)
	case r.Waits:
		return fmt.Errorf("bind a conversation at %s: %w: a turn of it waits for its receipt", brand, ErrUnavailable)
	}
	return nil
}

func (a *Authority) taskReceipt(ctx context.Context, brand tenants.BrandID, grant uuid.UUID, contextID string, count int64) (TaskReceipt, error) {
	const q = `
		SELECT jws FROM task_receipts
		 WHERE brand_id = @brand AND grant_id = @grant AND context_id = @context AND count = @count`
	r, err := tenants.One[struct {
		JWS string `db:"jws"`
	}](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "grant": grant, "context": contextID, "count": count})
	if err != nil {
		return TaskReceipt{}, fmt.Errorf("find task receipt at %s: %w", brand, err)
	}
	return TaskReceipt{JWS: r.JWS, Claims: payloadOf(r.JWS), Count: count, Again: true}, nil
}

// taskEdge is the tree over the conversation's receipts, and the first one's claims.
func (a *Authority) taskEdge(ctx context.Context, brand tenants.BrandID, grant uuid.UUID, contextID string) (edge receiptlog.Edge, first receiptlog.Claims, err error) {
	const q = `
		SELECT seq, jws FROM receipts
		 WHERE brand_id = @brand AND grant_id = @grant AND context_id = @context AND seq > @after
		 ORDER BY seq LIMIT @limit`
	type row struct {
		Seq int64
		JWS string `db:"jws"`
	}
	after, count := int64(-1), eachBatch
	for count == eachBatch {
		rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{
			"brand": brand, "grant": grant, "context": contextID, "after": after, "limit": eachBatch,
		})
		if err != nil {
			return edge, first, fmt.Errorf("read a conversation's receipts at %s: %w", brand, err)
		}
		for _, r := range rows {
			payload := payloadOf(r.JWS)
			if edge.Size == 0 {
				if err := json.Unmarshal(payload, &first); err != nil {
					return edge, first, fmt.Errorf("read receipt %d of %s: %w", r.Seq, brand, err)
				}
			}
			edge.Append(tlog.RecordHash(payload))
			after = r.Seq
		}
		count = len(rows)
	}
	if edge.Size == 0 {
		return edge, first, ErrUnknown
	}
	return edge, first, nil
}
