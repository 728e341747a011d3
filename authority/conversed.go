package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// How long a reply is kept for whoever lost it, and a conversation that nobody
// goes on with.
const (
	keepReply        = 24 * time.Hour
	keepConversation = 30 * 24 * time.Hour
)

// KeepAnswer notes what the Brand's agent said before it is countersigned, and under
// which claims: if that fails, the same message gets the receipt later without the
// agent acting again, whatever token it comes with by then.
func (a *Authority) KeepAnswer(ctx context.Context, brand tenants.BrandID, x *Exchange, answer string) error {
	const q = `
		UPDATE turns SET state = 'answered', answer = @text, claims = @claims, message_hash = nullif(@hash, ''), answered_at = @now
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state = 'running'`
	x.Answered = a.clock()
	return a.settle(ctx, brand, *x, q, answer)
}

// forgetAnswer is what goes when an answer has been replied, or came to nothing.
const forgetAnswer = `answer = NULL, claims = NULL, message_hash = NULL`

// ErrClosed: the conversation has ended, and the reply is not kept yet. What binds its
// receipts grows by this turn's: KeepLastReply keeps the reply with that.
var ErrClosed = errors.New("the conversation has ended meanwhile")

// CloseTalk closes the conversation: it hears nothing new any more. What is under way is
// answered, and what was answered still gets its reply.
func (a *Authority) CloseTalk(ctx context.Context, brand tenants.BrandID, x Exchange) error {
	return a.settle(ctx, brand, x, `
		UPDATE conversations SET closed_at = @now WHERE brand_id = @brand AND id = @id AND closed_at IS NULL`, "")
}

// KeepReply keeps the reply for repetitions of the message, and returns the one
// that they all get: the first that was kept. In a conversation that has ended it
// keeps none that is new: ErrClosed.
func (a *Authority) KeepReply(ctx context.Context, brand tenants.BrandID, x Exchange, reply string) (string, error) {
	return a.keepReply(ctx, brand, x, reply, false)
}

// KeepLastReply is KeepReply in a conversation that has ended, or ends in the same
// moment, as by CloseTalk.
func (a *Authority) KeepLastReply(ctx context.Context, brand tenants.BrandID, x Exchange, reply string) (string, error) {
	return a.keepReply(ctx, brand, x, reply, true)
}

func (a *Authority) keepReply(ctx context.Context, brand tenants.BrandID, x Exchange, reply string, last bool) (string, error) {
	const q = `
		WITH closed AS (
			UPDATE conversations SET closed_at = @now
			 WHERE brand_id = @brand AND id = @id AND @last AND closed_at IS NULL
		), kept AS (
			UPDATE turns SET state = 'replied', ` + forgetAnswer + `, reply = coalesce(reply, @text)
			 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message
			   AND state IN ('running', 'answered', 'replied')
			   AND (@last OR reply IS NOT NULL OR EXISTS (
			        SELECT FROM conversations WHERE brand_id = @brand AND id = @id AND closed_at IS NULL))
			RETURNING reply
		)
		SELECT (SELECT reply FROM kept) AS reply, NOT @last AND EXISTS (
		       SELECT FROM turns
		        WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state IN ('running', 'answered')) AS waits`
	r, err := tenants.One[struct {
		Reply *string
		Waits bool // before this statement
	}](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "id": x.Context, "message": x.MessageID, "text": reply, "last": last, "now": a.clock(),
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("keep a reply at %s: %w", brand, err)
	case r.Reply != nil:
		return *r.Reply, nil
	case r.Waits:
		return "", ErrClosed
	}
	return reply, nil // the person was erased meanwhile
}

// KeepStepUp notes that the message came to a step-up: with more permission it is
// heard again.
func (a *Authority) KeepStepUp(ctx context.Context, brand tenants.BrandID, x Exchange) error {
	return a.settle(ctx, brand, x, `
		UPDATE turns SET state = 'stepup'
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state = 'running'`, "")
}

// KeepFailure notes that the Brand's agent was called and nothing good came back.
// It may have acted, so the message is spent.
func (a *Authority) KeepFailure(ctx context.Context, brand tenants.BrandID, x Exchange) error {
	return a.settle(ctx, brand, x, `
		UPDATE turns SET state = 'failed', `+forgetAnswer+`
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state IN ('running', 'answered')`, "")
}

// KeepRefusal notes that the answer has no receipt for good, and why, and that in the
// trail: the message is spent, and what the agent did stands nowhere else.
func (a *Authority) KeepRefusal(ctx context.Context, brand tenants.BrandID, x Exchange, grant uuid.UUID, agent string, why error) error {
	const q = `
		UPDATE turns SET state = 'failed', ` + forgetAnswer + `
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state = 'answered'`
	l := lost{Grant: grant, Context: x.Context.String(), Message: x.MessageID, Agent: agent, Why: why}
	return a.refuse(ctx, brand, l, func(c *change) error {
		tag, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": x.Context, "message": x.MessageID})
		if err == nil && tag.RowsAffected() == 0 {
			err = errSettled
		}
		return err
	})
}

// Drop forgets the message: nothing of it was sent.
func (a *Authority) Drop(ctx context.Context, brand tenants.BrandID, x Exchange) error {
	return a.settle(ctx, brand, x, `
		DELETE FROM turns
		 WHERE brand_id = @brand AND conversation_id = @id AND message_id = @message AND state = 'running'`, "")
}

func (a *Authority) settle(ctx context.Context, brand tenants.BrandID, x Exchange, q, text string) error {
	_, err := a.db.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": x.Context, "message": x.MessageID, "text": text, "claims": string(x.Claims), "hash": x.MessageHash, "now": a.clock(),
	})
	if err != nil {
		return fmt.Errorf("note what came of a message at %s: %w", brand, err)
	}
	return nil
}

// EventExceeded is the fact of a Brand's agent that says it used what the token
// did not allow.
const EventExceeded = "incident.scopes_exceeded"

// Exceeded writes into the trail that the Brand's agent says it used more than
// the token allowed, and spends the message. grant is zero where there was no
// token at all.
func (a *Authority) Exceeded(ctx context.Context, brand *tenants.Brand, x Exchange, who Caller, grant uuid.UUID, used []string) error {
	// Only what is on the card is repeated: the rest is any text.
	known, unknown := []string{}, 0
	for _, s := range used {
		if _, ok := brand.Scope(s); !ok {
			unknown++
		} else if !slices.Contains(known, s) {
			known = append(known, s)
		}
	}
	by := By{Actor: "system", Channel: "a2a"}
	err := a.change(ctx, brand.ID, by, a.clock(), func(c *change) error {
		c.note(fact{event: EventExceeded, grant: grant, detail: map[string]any{
			"agent": who.Agent, "context": x.Context, "scopes": known, "unknown_scopes": unknown,
		}})
		return nil
	})
	if err != nil {
		return fmt.Errorf("note an incident at %s: %w", brand.ID, err)
	}
	return a.KeepFailure(ctx, brand.ID, x)
}

// What is kept of conversations goes by these, batch by batch.
const (
	// A message is remembered as long as its conversation, so that it is never
	// heard twice; what was said is not.
	purgeReplies = `
		UPDATE turns SET state = CASE WHEN state = 'answered' THEN 'failed' ELSE state END, ` + forgetAnswer + `, reply = NULL
		 WHERE brand_id = @brand AND began_at < @before AND (reply IS NOT NULL OR answer IS NOT NULL)
		   AND (conversation_id, message_id) IN (
		       SELECT conversation_id, message_id FROM turns
		        WHERE brand_id = @brand AND began_at < @before AND (reply IS NOT NULL OR answer IS NOT NULL) LIMIT @batch)`
	purgeConversations = `
		DELETE FROM conversations
		 WHERE brand_id = @brand AND used_at < @before AND id IN (
		       SELECT id FROM conversations WHERE brand_id = @brand AND used_at < @before LIMIT @batch)`
)

// forgetTalk removes a Brand user's conversations, those too in which their agent
// spoke without a token.
func (c *change) forgetTalk(ctx context.Context, subject string) (int64, error) {
	const q = `
		DELETE FROM conversations c
		 WHERE c.brand_id = @brand
		   AND (c.subject = @subject OR c.subject IS NULL AND EXISTS (
		        SELECT FROM grants g
		         WHERE g.brand_id = @brand AND g.subject = @subject AND g.agent = c.agent AND g.agent_sub = c.agent_sub))`
	tag, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": c.brand, "subject": subject})
	return tag.RowsAffected(), err
}

// emptyTalk removes all conversations of a Brand that is over, and where its
// agent was.
func (a *Authority) emptyTalk(ctx context.Context, brand tenants.BrandID, batch int) error {
	const talk = `
		DELETE FROM conversations
		 WHERE brand_id = @brand AND brand_is_over(@now) AND id IN (
		       SELECT id FROM conversations WHERE brand_id = @brand LIMIT @batch)`
	args := pgx.NamedArgs{"brand": brand, "now": a.clock(), "batch": batch}
	for {
		n, err := a.db.Exec(ctx, brand, talk, args)
		if err != nil {
			return fmt.Errorf("forget conversations: %w", err)
		}
		if n == 0 {
			break
		}
	}
	if err := tenants.PurgeTrials(ctx, a.db, brand, a.clock()); err != nil {
		return err
	}
	return tenants.EmptyAgentEndpoint(ctx, a.db, brand, a.clock())
}
