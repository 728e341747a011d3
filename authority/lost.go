package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

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

func (l lost) fact() fact {
	return fact{event: EventLost, grant: l.Grant, detail: map[string]any{
		"agent": l.Agent, "context": l.Context, "message": l.Message, "reason": reason(l.Why),
	}}
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
		c.note(l.fact())
		return nil
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

// giveUp ends what has waited since before then, batch by batch, and says so of each.
func (a *Authority) giveUp(ctx context.Context, brand tenants.BrandID, before time.Time, batch int) (total int64, err error) {
	const handedIn = `
		DELETE FROM turns_accepted
		 WHERE brand_id = @brand AND n IN (
		       SELECT n FROM turns_accepted WHERE brand_id = @brand AND accepted_at <= @before AND turn IS NOT NULL LIMIT @batch)
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
	type row struct {
		Grant                   uuid.UUID
		Context, Message, Agent string
	}
	for _, q := range []string{handedIn, answers} {
		for n := batch; n == batch; {
			err := a.change(ctx, brand, ByUpkeep(), a.clock(), func(c *change) error {
				rows, err := c.Query(ctx, q, pgx.NamedArgs{"brand": brand, "before": before, "batch": batch})
				if err != nil {
					return err
				}
				gone, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
				for _, r := range gone {
					c.note(lost{r.Grant, r.Context, r.Message, r.Agent, errTooLong}.fact())
				}
				n = len(gone)
				return err
			})
			if err != nil {
				return total, fmt.Errorf("give up turns at %s: %w", brand, err)
			}
			a.count.lost.WithLabelValues(reason(errTooLong)).Add(float64(n))
			total += int64(n)
		}
	}
	return total, nil
}

// errTooLong: nothing could be signed for as long as a turn is kept.
var errTooLong = errors.New("it waited for longer than turns are kept")

// reason names why a turn has no receipt, for the trail.
func reason(err error) string {
	for _, r := range []struct {
		is   error
		name string
	}{{ErrToken, "token"}, {ErrScope, "scope"}, {ErrConflict, "conflict"}, {ErrMalformed, "malformed"}, {errTooLong, "waited"}} {
		if errors.Is(err, r.is) {
			return r.name
		}
	}
	return "other"
}
