package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// WaitingAnswer is an answer that a Brand's agent gave and that has no receipt yet.
type WaitingAnswer struct {
	Exchange
	Agent string
	Grant uuid.UUID
}

// Waiting returns the oldest answers after the given one that wait for their receipts,
// and have waited longer than the call that they were given to: up to MaxTurns.
func (a *Authority) Waiting(ctx context.Context, brand tenants.BrandID, after WaitingAnswer) ([]WaitingAnswer, error) {
	const settled = time.Minute
	const q = `
		SELECT conversation_id, message_id, agent, grant_id, began_at, answered_at, answer, claims, coalesce(message_hash, '') AS hash FROM turns
		 WHERE brand_id = @brand AND state = 'answered' AND settled_at IS NULL AND claims IS NOT NULL AND answered_at <= @before
		   AND coalesce(retry_at <= @now, true) AND grant_id IS NOT NULL
		   AND (answered_at, conversation_id, message_id) > (@at, @id, @message)
		 ORDER BY answered_at, conversation_id, message_id LIMIT @limit`
	type row struct {
		ConversationID, GrantID                uuid.UUID
		MessageID, Agent, Answer, Claims, Hash string
		BeganAt, AnsweredAt                    time.Time
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "before": a.clock().Add(-settled), "now": a.clock(), "at": after.Answered, "id": after.Context, "message": after.MessageID, "limit": MaxTurns,
	})
	if err != nil {
		return nil, fmt.Errorf("find answers without a receipt at %s: %w", brand, err)
	}
	out := make([]WaitingAnswer, len(rows))
	for i, r := range rows {
		out[i] = WaitingAnswer{Agent: r.Agent, Grant: r.GrantID, Exchange: Exchange{
			Context: r.ConversationID, MessageID: r.MessageID, Began: r.BeganAt, Answer: r.Answer, Claims: []byte(r.Claims), Answered: r.AnsweredAt,
			MessageHash: r.Hash,
		}}
	}
	return out, nil
}

// Settled notes that the answer has its receipt: it waits for nothing but whoever comes
// for it.
func (a *Authority) Settled(ctx context.Context, brand tenants.BrandID, w WaitingAnswer) error {
	const q = `
		UPDATE turns SET settled_at = @now
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state = 'answered'`
	return a.settle(ctx, brand, w.Exchange, q, "")
}

// PutOff notes that the answer could not be countersigned while others could: it is
// tried again, and from the third time on others need not wait for it.
func (a *Authority) PutOff(ctx context.Context, brand tenants.BrandID, w WaitingAnswer) error {
	const q = `
		UPDATE turns SET ` + putOff + `
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state = 'answered'`
	return a.settle(ctx, brand, w.Exchange, q, "")
}
