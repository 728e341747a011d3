package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// claimed is a delivery that nobody else is at.
type claimed struct {
	ID       uuid.UUID `db:"id"`
	Seq      int64
	Attempts int
	Tries    int
}

// Drain delivers what is due for the endpoint, until nothing is, the endpoint
// fails, or its turn is over. It returns when something will be due next; zero
// if nothing will.
func (c *Courier) Drain(ctx context.Context, brand tenants.BrandID, endpoint string) (time.Time, error) {
	l := line{brand, endpoint}
	for began := time.Now(); ; {
		to, err := c.receivers.Receiver(ctx, brand, endpoint)
		switch {
		case errors.Is(err, tenants.ErrNoWebhook):
			return time.Time{}, nil
		case err != nil:
			return time.Time{}, err
		case to.Closed:
			return time.Time{}, c.abandon(ctx, l, "the brand is closed")
		case !to.Enabled:
			return time.Time{}, c.abandon(ctx, l, "the endpoint is not enabled")
		}
		batch, err := c.claim(ctx, l)
		if err != nil {
			return time.Time{}, err
		}
		if len(batch) > 0 {
			if err := c.deliver(ctx, l, to, batch); err != nil {
				return time.Time{}, err
			}
		}
		if len(batch) == 0 || c.isStopping() || time.Since(began) > slice {
			return c.next(ctx, l)
		}
	}
}

// claim takes what is due, oldest first: one delivery of an endpoint that fails,
// a few of one that does not, none of one that rests.
func (c *Courier) claim(ctx context.Context, l line) ([]claimed, error) {
	const q = `
		WITH line AS (
			SELECT failures, rest_until FROM webhook_lines WHERE brand_id = @brand AND endpoint_id = @endpoint
		), due AS (
			SELECT id FROM webhook_deliveries
			 WHERE brand_id = @brand AND endpoint_id = @endpoint AND state = 'pending' AND due_at <= @soon
			   AND (claimed_until IS NULL OR claimed_until <= @now)
			   AND NOT EXISTS (SELECT FROM line WHERE rest_until > @now)
			 ORDER BY due_at, seq
			 LIMIT CASE WHEN EXISTS (SELECT FROM line WHERE failures > 0) THEN 1 ELSE @width END
			   FOR UPDATE SKIP LOCKED
		)
		UPDATE webhook_deliveries d
		   SET claimed_until = @lease, attempts = attempts + 1, tries = tries + 1, last_at = @now
		  FROM due
		 WHERE d.brand_id = @brand AND d.id = due.id
		RETURNING d.id, d.seq, d.attempts, d.tries`
	now := c.now()
	batch, err := tenants.All[claimed](ctx, c.db, l.brand, q, pgx.NamedArgs{
		"brand": l.brand, "endpoint": l.endpoint, "now": now, "soon": now.Add(slack), "lease": now.Add(lease), "width": width,
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries of %s: %w", l.brand, err)
	}
	return batch, nil
}

// deliver attempts the batch all at once and notes what came of each.
func (c *Courier) deliver(ctx context.Context, l line, to tenants.Receiver, batch []claimed) error {
	places := make([]int64, len(batch))
	for i, d := range batch {
		places[i] = d.Seq
	}
	found, err := authority.ToldAt(ctx, c.db, l.brand, places)
	if err != nil {
		return err
	}
	bodies := make(map[int64][]byte, len(found))
	for _, e := range found {
		at := slices.IndexFunc(batch, func(d claimed) bool { return d.Seq == e.Seq })
		if bodies[e.Seq], err = c.letter(ctx, l, to, batch[at], e); err != nil {
			// The endpoint is not to blame, and none of its attempts is spent.
			return errors.Join(err, c.unclaim(ctx, l, batch))
		}
	}
	var wg sync.WaitGroup
	failed := make([]error, len(batch))
	for i, d := range batch {
		wg.Go(func() {
			o := c.attempt(ctx, to, d, bodies[d.Seq])
			if o.words != "" && ctx.Err() != nil {
				return // we were stopped, and the endpoint is not to blame; the claim runs out
			}
			failed[i] = c.settle(ctx, l, d, o)
		})
	}
	wg.Wait()
	return errors.Join(append(failed, ctx.Err())...)
}

// unclaim gives back what was claimed and could not be attempted.
func (c *Courier) unclaim(ctx context.Context, l line, batch []claimed) error {
	const q = `
		UPDATE webhook_deliveries d SET claimed_until = NULL, tries = tries - 1
		  FROM unnest(@ids::uuid[], @attempts::int[]) AS b (id, attempts)
		 WHERE d.brand_id = @brand AND d.id = b.id AND d.state = 'pending' AND d.attempts = b.attempts`
	ids, attempts := make([]uuid.UUID, len(batch)), make([]int, len(batch))
	for i, d := range batch {
		ids[i], attempts[i] = d.ID, d.Attempts
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := c.db.Exec(ctx, l.brand, q, pgx.NamedArgs{"brand": l.brand, "ids": ids, "attempts": attempts})
	return err
}

// settle notes what came of an attempt. A claim that ran out and was taken by
// somebody else is his to note.
func (c *Courier) settle(ctx context.Context, l line, d claimed, o outcome) error {
	const note = `
		UPDATE webhook_deliveries
		   SET state = @state, due_at = coalesce(@due, due_at), claimed_until = NULL,
		       last_status = nullif(@status::int, 0), last_error = @words
		 WHERE brand_id = @brand AND id = @id AND state = 'pending' AND attempts = @attempts`
	const well = `
		UPDATE webhook_lines SET failures = 0, rest_until = NULL
		 WHERE brand_id = @brand AND endpoint_id = @endpoint AND failures > 0`
	const ill = `
		INSERT INTO webhook_lines AS l (brand_id, endpoint_id, failures) VALUES (@brand, @endpoint, 1)
		ON CONFLICT (brand_id, endpoint_id) DO UPDATE SET failures = l.failures + 1
		RETURNING failures`
	const pause = `UPDATE webhook_lines SET rest_until = @until WHERE brand_id = @brand AND endpoint_id = @endpoint`
	now := c.now()
	state, due := c.verdict(d, o, now)
	args := pgx.NamedArgs{
		"brand": l.brand, "endpoint": l.endpoint, "id": d.ID, "attempts": d.Attempts,
		"state": state, "due": due, "status": o.status, "words": o.words,
	}
	c.count.attempts.WithLabelValues(state).Inc()
	err := c.db.Tx(ctx, l.brand, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, note, args); err != nil {
			return err
		}
		if o.words == "" {
			_, err := tx.Exec(ctx, well, args)
			return err
		}
		var failures int
		if err := tx.QueryRow(ctx, ill, args).Scan(&failures); err != nil {
			return err
		}
		args["until"] = now.Add(rest(failures))
		_, err := tx.Exec(ctx, pause, args)
		return err
	})
	if err != nil {
		return fmt.Errorf("note a delivery of %s: %w", l.brand, err)
	}
	if o.words != "" {
		c.log.InfoContext(ctx, "webhook not delivered", "brand", string(l.brand), "endpoint", l.endpoint,
			"delivery", d.ID, "attempt", d.Tries, "state", state, "reason", o.words)
	}
	if o.status == http.StatusGone {
		return c.turnOff(ctx, l)
	}
	return nil
}

// verdict is what becomes of a delivery, and when it is due again.
func (c *Courier) verdict(d claimed, o outcome, now time.Time) (state string, due *time.Time) {
	if o.words == "" {
		return "delivered", nil
	}
	wait, again := backoff(d.Tries)
	if !again || o.status == http.StatusGone {
		return "dead", nil
	}
	at := now.Add(wait)
	return "pending", &at
}

// turnOff does what an endpoint asks for that answers 410 Gone.
func (c *Courier) turnOff(ctx context.Context, l line) error {
	c.log.WarnContext(ctx, "webhook endpoint is gone", "brand", string(l.brand), "endpoint", l.endpoint)
	defer c.receivers.Forget(l.brand, l.endpoint)
	err := tenants.EnableWebhook(ctx, c.edit, l.brand, l.endpoint, false, "answered 410 Gone")
	if errors.Is(err, tenants.ErrClosed) {
		return nil // then none of its endpoints is called any more
	}
	return err
}

// abandon ends what was still to be delivered to an endpoint that is called no
// more. It can be replayed when it is.
func (c *Courier) abandon(ctx context.Context, l line, why string) error {
	const q = `
		UPDATE webhook_deliveries SET state = 'dead', claimed_until = NULL, last_error = @why
		 WHERE brand_id = @brand AND endpoint_id = @endpoint AND state = 'pending'`
	n, err := c.db.Exec(ctx, l.brand, q, pgx.NamedArgs{"brand": l.brand, "endpoint": l.endpoint, "why": why})
	if err != nil {
		return fmt.Errorf("abandon deliveries of %s: %w", l.brand, err)
	}
	c.count.attempts.WithLabelValues("dead").Add(float64(n))
	return nil
}

// next is when the endpoint has something due that nobody is at.
func (c *Courier) next(ctx context.Context, l line) (time.Time, error) {
	const q = `
		SELECT min(greatest(d.due_at, d.claimed_until, l.rest_until)) AS at
		  FROM webhook_deliveries d
		  LEFT JOIN webhook_lines l ON l.brand_id = @brand AND l.endpoint_id = @endpoint
		 WHERE d.brand_id = @brand AND d.endpoint_id = @endpoint AND d.state = 'pending'`
	r, err := tenants.One[struct{ At *time.Time }](ctx, c.db, l.brand, q, pgx.NamedArgs{"brand": l.brand, "endpoint": l.endpoint})
	if err != nil {
		return time.Time{}, fmt.Errorf("look what is due at %s: %w", l.brand, err)
	}
	if r.At == nil {
		return time.Time{}, nil
	}
	return *r.At, nil
}
