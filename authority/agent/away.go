package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What strangers can make us keep: so many agents that nobody registered, so many of
// them of one site, of which somebody may have any number of hosts, and each for so
// long after it last came. Whoever stays away longer is found anew when it comes
// again, and what people allowed it is kept meanwhile.
const (
	mostDiscovered = 10_000
	mostOfSite     = 100
	strangerStays  = 7 * 24 * time.Hour
)

// cameEvery is how often it is written down that a discovered agent came.
const cameEvery = time.Hour

// came takes down that the agent proved who it is. Of those that somebody registered
// nothing is kept.
func (r *Registry) came(ctx context.Context, issuer string) error {
	const q = `UPDATE agents SET came_at = @now WHERE issuer = @issuer AND discovered AND came_at <= @before`
	seen, _ := r.sighted(issuer)
	now := r.now()
	if !seen.agent.Discovered || now.Sub(seen.agent.CameAt) < cameEvery {
		return nil
	}
	if _, err := r.db.Exec(ctx, q, pgx.NamedArgs{"issuer": issuer, "now": now, "before": now.Add(-cameEvery)}); err != nil {
		return fmt.Errorf("take down that an agent came: %w", err)
	}
	r.forget(issuer)
	return nil
}

// ForgetAway removes discovered agents that have stayed away, some at a time, and returns
// how many. One that the operator disabled or a Brand has a word on stays, and is
// looked at again a week later.
func (r *Registry) ForgetAway(ctx context.Context) (int, error) {
	const batch = 200
	const away = `SELECT issuer FROM agents WHERE discovered AND came_at < @before ORDER BY came_at LIMIT @batch`
	const remove = `DELETE FROM agents WHERE issuer = @issuer AND discovered AND came_at < @before`
	const later = `UPDATE agents SET came_at = @now WHERE issuer = @issuer AND came_at < @before`
	args := pgx.NamedArgs{"now": r.now(), "before": r.now().Add(-strangerStays), "batch": batch}
	rows, err := r.db.Query(ctx, away, args)
	if err != nil {
		return 0, fmt.Errorf("find agents that stay away: %w", err)
	}
	issuers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("find agents that stay away: %w", err)
	}
	gone := 0
	for _, issuer := range issuers {
		args["issuer"] = issuer
		tag, err := r.db.Exec(ctx, remove, args)
		if isKept(err) {
			_, err = r.db.Exec(ctx, later, args)
		}
		if err != nil {
			return gone, fmt.Errorf("forget an agent that stays away: %w", err)
		}
		gone += int(tag.RowsAffected())
		r.forget(issuer)
	}
	return gone, nil
}

// isKept reports whether the schema keeps the agent: its rule agents_stay, or a Brand's
// word on it.
func isKept(err error) bool {
	const restrict, foreignKey = "23001", "23503"
	why, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (why.Code == restrict || why.Code == foreignKey)
}
