package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EventLost is the fact of a turn that was served and has no receipt for good.
const EventLost = "incident.not_countersigned"

// lost is such a turn.
type lost struct {
	Grant            uuid.UUID
	Context, Message string
	Agent            string
	Why              error
}

// fact says which turn it was to whoever has its ids, and names neither: somebody else
// chose them. It names the Brand user, or nobody would find it to erase it.
func (l lost) fact(ctx context.Context, c *change) (fact, error) {
	const q = `SELECT subject FROM grants WHERE brand_id = @brand AND id = @grant`
	var subject string
	err := c.QueryRow(ctx, q, pgx.NamedArgs{"brand": c.brand, "grant": l.Grant}).Scan(&subject)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return fact{event: EventLost, grant: l.Grant, detail: map[string]any{
		"agent": l.Agent, "subject": subject, "reason": reason(l.Why),
		"turn": receiptlog.SealMessage(l.Grant[:], l.Context, l.Message),
	}}, err
}

// errSettled: somebody else has settled it.
var errSettled = errors.New("settled already")

// refuse writes into the trail that a turn has no receipt for good, in the same moment
// as settle makes it so.
func (a *Authority) refuse(ctx context.Context, brand tenants.BrandID, l lost, settle func(*change) error) error {
	err := a.change(ctx, brand, ByUpkeep(), a.clock(), func(c *change) error {
		if err := settle(c); err != nil {
			return err
		}
		f, err := l.fact(ctx, c)
		c.note(f)
		return err
	})
	if errors.Is(err, errSettled) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("note a turn without a receipt at %s: %w", brand, err)
	}
	a.count.lost.WithLabelValues(reason(l.Why)).Inc()
	return nil
}

// giveUp ends what has waited for a day, and what was begun and never ended, batch by
// batch, and says so of each.
func (a *Authority) giveUp(ctx context.Context, brand tenants.BrandID, batch int) (total int64, err error) {
	// Nobody appends meanwhile: what has no receipt then will have none.
	const lock = `SELECT FROM log_heads WHERE brand_id = @brand FOR UPDATE`
	// What has its receipt is only forgotten: Flush, and Purge.
	const handedIn = `
		DELETE FROM turns_accepted
		 WHERE brand_id = @brand AND n IN (
		       SELECT n FROM turns_accepted t
		        WHERE t.brand_id = @brand AND t.accepted_at <= @before AND t.turn IS NOT NULL AND NOT EXISTS (
		              SELECT FROM receipts r
		               WHERE r.brand_id = @brand AND r.grant_id = t.grant_id AND r.context_id = t.context_id AND r.message_id = t.message_id
		                 AND r.content = t.content)
		        LIMIT @batch)
		   AND accepted_at <= @before
		RETURNING grant_id AS grant, context_id AS context, message_id AS message, turn::json->>'agent' AS agent`
	// What has its receipt and was not fetched is only forgotten: purgeReplies.
	const answers = `
		UPDATE turns SET state = 'failed', ` + forgetAnswer + `
		 WHERE brand_id = @brand AND state = 'answered' AND settled_at IS NULL AND began_at < @before
		   AND (conversation_id, message_id) IN (
		       SELECT t.conversation_id, t.message_id FROM turns t
		        WHERE t.brand_id = @brand AND t.state = 'answered' AND t.settled_at IS NULL AND t.began_at < @before
		          AND t.grant_id IS NOT NULL AND NOT EXISTS (
		              SELECT FROM receipts r
		               WHERE r.brand_id = @brand AND r.grant_id = t.grant_id AND r.context_id = t.conversation_id::text AND r.message_id = t.message_id)
		        LIMIT @batch)
		RETURNING grant_id AS grant, conversation_id::text AS context, message_id AS message, agent`
	// Whoever ran it died, or could not keep what the Brand's agent answered: it may have
	// acted. Nothing that was run without a token is owed a receipt.
	const running = `
		UPDATE turns SET state = 'failed'
		 WHERE brand_id = @brand AND state = 'running' AND began_at < @before
		   AND (conversation_id, message_id) IN (
		       SELECT conversation_id, message_id FROM turns
		        WHERE brand_id = @brand AND state = 'running' AND began_at < @before LIMIT @batch)
		RETURNING coalesce(grant_id, '00000000-0000-0000-0000-000000000000') AS grant, conversation_id::text AS context, message_id AS message, agent`
	type row struct {
		Grant                   uuid.UUID
		Context, Message, Agent string
	}
	now := a.clock()
	for _, g := range []struct {
		q      string
		before time.Time
		why    error
	}{
		{handedIn, now.Add(-acceptedLife), errTooLong},
		{answers, now.Add(-acceptedLife), errTooLong},
		{running, now.Add(-brokenAfter), errBroken},
	} {
		for n := batch; n == batch; {
			owed := 0
			err := a.change(ctx, brand, ByUpkeep(), now, func(c *change) error {
				args := pgx.NamedArgs{"brand": brand, "before": g.before, "batch": batch}
				if _, err := c.Exec(ctx, lock, args); err != nil {
					return err
				}
				rows, err := c.Query(ctx, g.q, args)
				if err != nil {
					return err
				}
				gone, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
				if err != nil {
					return err
				}
				n = len(gone)
				for _, r := range gone {
					if r.Grant == uuid.Nil {
						continue
					}
					f, err := lost{r.Grant, r.Context, r.Message, r.Agent, g.why}.fact(ctx, c)
					if err != nil {
						return err
					}
					c.note(f)
					owed++
				}
				return nil
			})
			if err != nil {
				return total, fmt.Errorf("give up turns at %s: %w", brand, err)
			}
			a.count.lost.WithLabelValues(reason(g.why)).Add(float64(owed))
			total += int64(n)
		}
	}
	return total, nil
}

// errTooLong: nothing could be signed for as long as a turn is kept.
var errTooLong = errors.New("it waited for longer than turns are kept")

// errBroken: its answer could not be kept, or whoever waited for it died.
var errBroken = errors.New("nothing is known of how it ended")

// brokenAfter is longer than a turn takes, with all that we do about it: whoever ran one
// that began before has died.
const brokenAfter = 10 * time.Minute

// reason names why a turn has no receipt, for the trail.
func reason(err error) string {
	for _, r := range []struct {
		is   error
		name string
	}{{ErrToken, "token"}, {ErrScope, "scope"}, {ErrConflict, "conflict"}, {ErrMalformed, "malformed"}, {errTooLong, "waited"}, {errBroken, "broken"}} {
		if errors.Is(err, r.is) {
			return r.name
		}
	}
	return "other"
}
