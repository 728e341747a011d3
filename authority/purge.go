package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// How long what is over is kept: a dead request so that a late poll still hears
// what became of it, an ended grant's refresh tokens so that a late replay is
// still told from a made-up one.
const (
	keepDead    = 24 * time.Hour
	keepRefresh = 30 * 24 * time.Hour
	// An hour is the longest life of a token, the rest is for clocks that differ.
	keepIndex = 2 * time.Hour
)

// Purge removes what no rule asks for any more, batch after batch, and returns
// how many rows went. Grants and the audit trail are kept.
//
// Each condition stands twice: the row may have changed while the delete waited
// for it.
func (a *Authority) Purge(ctx context.Context, brand tenants.BrandID) (int64, error) {
	const batch = 1000
	// Each is counted as it goes: nothing else tells that it was ever made.
	const requests = `
		WITH gone AS (
			DELETE FROM device_requests
			 WHERE brand_id = @brand AND expires_at < @before AND id IN (
			       SELECT id FROM device_requests WHERE brand_id = @brand AND expires_at < @before LIMIT @batch)
			RETURNING kind, (created_at AT TIME ZONE 'UTC')::date AS day
		), counted AS (
			INSERT INTO usage_days AS u (brand_id, day, asked, stepups)
			SELECT @brand, day, count(*) FILTER (WHERE kind = 'device'), count(*) FILTER (WHERE kind = 'stepup')
			  FROM gone GROUP BY day ORDER BY day -- in one order, so that two who purge do not wait for one another
			ON CONFLICT (brand_id, day) DO UPDATE SET asked = u.asked + excluded.asked, stepups = u.stepups + excluded.stepups
		)
		SELECT FROM gone`
	const attempts = `
		DELETE FROM code_attempts
		 WHERE brand_id = @brand AND started_at <= @before AND (kind, key) IN (
		       SELECT kind, key FROM code_attempts WHERE brand_id = @brand AND started_at <= @before LIMIT @batch)`
	const refresh = `
		DELETE FROM refresh_tokens
		 WHERE brand_id = @brand AND hash IN (
		       SELECT t.hash FROM refresh_tokens t
		         JOIN grants g ON g.brand_id = t.brand_id AND g.id = t.grant_id
		        WHERE t.brand_id = @brand AND least(g.ended_at, g.expires_at) < @before LIMIT @batch)`
	const turns = `
		DELETE FROM turns_accepted
		 WHERE brand_id = @brand AND ctid = ANY (ARRAY(
		       SELECT ctid FROM turns_accepted WHERE brand_id = @brand AND accepted_at <= @before LIMIT @batch))`
	now := a.clock()
	total, err := a.giveUp(ctx, brand, batch)
	if err != nil {
		return total, err
	}
	for _, p := range []struct {
		q      string
		before time.Time
	}{
		{requests, now.Add(-keepDead)},
		{attempts, now.Add(-codeWindow)},
		{refresh, now.Add(-keepRefresh)},
		{turns, now.Add(-acceptedLife)},
		{purgeReplies, now.Add(-keepReply)},
		{purgeConversations, now.Add(-keepConversation)},
	} {
		for {
			n, err := a.db.Exec(ctx, brand, p.q, pgx.NamedArgs{"brand": brand, "before": p.before, "batch": batch})
			if err != nil {
				return total, fmt.Errorf("purge %s: %w", brand, err)
			}
			total += n
			if n < batch {
				break
			}
		}
	}
	for {
		n, err := a.freeIndexes(ctx, brand, now.Add(-keepIndex), batch)
		total += n
		if err != nil || n < batch {
			return total, err
		}
	}
}

// freeIndexes gives a batch of void indexes back: no token that names them can
// live. The lists say so at once, lest the next token with such an index be
// taken for the former one.
func (a *Authority) freeIndexes(ctx context.Context, brand tenants.BrandID, before time.Time, batch int) (freed int64, err error) {
	const q = `
		WITH over AS (
			DELETE FROM status_entries
			 WHERE brand_id = @brand AND invalid_at < @before AND (list, idx) IN (
			       SELECT list, idx FROM status_entries WHERE brand_id = @brand AND invalid_at < @before LIMIT @batch)
			RETURNING list
		), freed AS (
			UPDATE status_lists l SET used = used - n.n, version = version + 1
			  FROM (SELECT list, count(*) AS n FROM over GROUP BY list) n
			 WHERE l.brand_id = @brand AND l.list = n.list
		)
		SELECT FROM over`
	err = a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		if err := lockLists(ctx, tx, brand); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "before": before, "batch": batch})
		freed = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", brand, err)
	}
	return freed, nil
}
