package authority

import (
	"context"
	"fmt"
	"sync"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// letIn is since when an agent g that was kept out may come again: its person or the
// Brand b was suspended, or the agent itself. NULL: it never was.
const letIn = `
	greatest(g.kept_out_until, b.resumed_at,
	         (SELECT x.enabled_at FROM agents x WHERE x.issuer = g.agent),
	         (SELECT l.noted_at FROM brand_agents l WHERE l.brand_id = g.brand_id AND l.issuer = g.agent AND l.allowed))`

// isForgotten is whether nobody has come for a grant g since @idle: whose agent was
// kept out meanwhile, or is, did not stay away, and what the person has just answered
// for is not forgotten, though the agent has not come for it yet.
const isForgotten = `
	g.ended_at IS NULL
	AND greatest(coalesce(g.last_used_at, g.created_at), ` + letIn + `,
	             (SELECT max(s.at) FROM consents s WHERE s.brand_id = g.brand_id AND s.grant_id = g.id)) <= @idle
	AND b.state = 'active' AND b.delegation
	AND coalesce((SELECT enabled FROM agent_standing a WHERE a.brand_id = g.brand_id AND a.issuer = g.agent), false)
	AND NOT EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = g.brand_id AND u.subject = g.subject)`

// forget ends those of the grants whose agent stayed away for longer than the Brand
// lets it: the person does not think of it any more (R49). It returns how many.
func (a *Authority) forget(ctx context.Context, brand tenants.BrandID, grants []uuid.UUID, idle, now time.Time) (int, error) {
	const q = `
		SELECT g.id FROM grants g
		  JOIN brands b ON b.id = g.brand_id
		 WHERE g.brand_id = @brand AND g.id = ANY (@grants) AND ` + isForgotten + `
		 ORDER BY g.id FOR UPDATE OF g`
	ended := 0
	err := a.change(ctx, brand, ByUpkeep(), now, func(c *change) error {
		rows, err := c.Query(ctx, q, pgx.NamedArgs{"brand": brand, "grants": grants, "idle": idle})
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil || len(found) == 0 {
			return err
		}
		ended, err = c.end(ctx, found, "idle")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("end forgotten grants at %s: %w", brand, err)
	}
	return ended, nil
}

// stretch is how many grants are looked at in one statement.
const stretch = 20_000

// walked remembers how far this instance has looked for forgotten grants.
type walked struct {
	mu   sync.Mutex
	last map[tenants.BrandID]uuid.UUID
}

func (w *walked) after(brand tenants.BrandID) uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[brand]
}

func (w *walked) set(brand tenants.BrandID, id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = make(map[tenants.BrandID]uuid.UUID)
	}
	w.last[brand] = id
}

// Forget ends grants whose agent stays away, though it does not come to hear of it:
// the person does not go on reading that it may act. Each call looks at the next
// stretch of the Brand's grants. When an agent came last stands in no index, which
// every refresh would pay for, and to be a minute late, or of a million grants an
// hour, is nothing beside a rule of days. It returns how many it ended.
func (a *Authority) Forget(ctx context.Context, brand *tenants.Brand) (int, error) {
	const q = `
		WITH page AS (
			SELECT * FROM grants WHERE brand_id = @brand AND id > @after ORDER BY id LIMIT @walk
		)
		SELECT (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last,
		       (SELECT count(*) FROM page) AS n,
		       ARRAY(SELECT g.id FROM page g JOIN brands b ON b.id = g.brand_id WHERE g.expires_at > @now AND ` + isForgotten + ` ORDER BY g.id) AS due`
	type row struct {
		Last *uuid.UUID
		N    int
		Due  []uuid.UUID
	}
	now := a.clock()
	idle := now.AddDate(0, 0, -brand.IdleDays)
	r, err := tenants.One[row](ctx, a.db, brand.ID, q, pgx.NamedArgs{
		"brand": brand.ID, "after": a.walked.after(brand.ID), "walk": stretch, "now": now, "idle": idle,
	})
	if err != nil {
		return 0, fmt.Errorf("look for forgotten grants at %s: %w", brand.ID, err)
	}
	const batch = 500 // each transaction holds the Brand's trail
	ended := 0
	for len(r.Due) > 0 {
		n, err := a.forget(ctx, brand.ID, r.Due[:min(batch, len(r.Due))], idle, now)
		if ended += n; err != nil {
			return ended, err
		}
		r.Due = r.Due[min(batch, len(r.Due)):]
	}
	if r.N < stretch || r.Last == nil {
		a.walked.set(brand.ID, uuid.Nil) // from the beginning again
	} else {
		a.walked.set(brand.ID, *r.Last)
	}
	return ended, nil
}
