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
}

// Waiting returns the oldest answers after the given one that wait for their receipts,
// and have waited longer than the call that they were given to: up to MaxTurns.
func (a *Authority) Waiting(ctx context.Context, brand tenants.BrandID, after WaitingAnswer) ([]WaitingAnswer, error) {
	const settled = time.Minute
	const q = `
		SELECT conversation_id, message_id, agent, began_at, answered_at, answer, claims FROM turns t
		 WHERE brand_id = @brand AND state = 'answered' AND claims IS NOT NULL AND answered_at <= @before
		   AND (answered_at, conversation_id, message_id) > (@at, @id, @message)
		   AND NOT EXISTS (
		       SELECT FROM receipts r
		        WHERE r.brand_id = @brand AND r.grant_id = t.grant_id AND r.context_id = t.conversation_id::text AND r.message_id = t.message_id)
		 ORDER BY answered_at, conversation_id, message_id LIMIT @limit`
	type row struct {
		ConversationID                   uuid.UUID
		MessageID, Agent, Answer, Claims string
		BeganAt, AnsweredAt              time.Time
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "before": a.clock().Add(-settled), "at": after.Answered, "id": after.Context, "message": after.MessageID, "limit": MaxTurns,
	})
	if err != nil {
		return nil, fmt.Errorf("find answers without a receipt at %s: %w", brand, err)
	}
	out := make([]WaitingAnswer, len(rows))
	for i, r := range rows {
		out[i] = WaitingAnswer{Agent: r.Agent, Exchange: Exchange{
			Context: r.ConversationID, MessageID: r.MessageID, Began: r.BeganAt, Answer: r.Answer, Claims: []byte(r.Claims), Answered: r.AnsweredAt,
		}}
	}
	return out, nil
}
