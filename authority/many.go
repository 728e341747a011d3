package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Toll says how much there is to end.
type Toll struct {
	Grants int
	People int // whose they are
	Agents int // that hold them
}

// Toll counts the living grants that which names, and of them only these, unless
// there are none of these. Like End, it takes nothing for everything.
func (a *Authority) Toll(ctx context.Context, brand tenants.BrandID, which Which, these []uuid.UUID) (Toll, error) {
	if which.empty() && len(these) == 0 {
		return Toll{}, nil
	}
	q := `
		SELECT count(*) AS grants, count(DISTINCT subject) AS people, count(DISTINCT agent) AS agents FROM grants
		 WHERE brand_id = @brand AND ended_at IS NULL AND expires_at > @now`
	for _, c := range []struct {
		set  bool
		text string
	}{
		{len(these) > 0, ` AND id = ANY (@these)`},
		{which.Grant != uuid.Nil, ` AND id = @grant`},
		{which.Agent != "", ` AND agent = @agent`},
		{which.AgentSub != "", ` AND agent_sub = @sub`},
		{which.Subject != "", ` AND subject = @subject`},
	} {
		if c.set {
			q += c.text
		}
	}
	args := a.naming(brand, which)
	args["these"] = these
	t, err := tenants.One[Toll](ctx, a.db, brand, q, args)
	if err != nil {
		return Toll{}, fmt.Errorf("count what would end at %s: %w", brand, err)
	}
	return t, nil
}

// EndThese ends those of the grants that live, at one moment: all of them or
// none. It returns how many.
func (a *Authority) EndThese(ctx context.Context, brand tenants.BrandID, by By, grants []uuid.UUID) (int, error) {
	const q = `
		SELECT id FROM grants
		 WHERE brand_id = @brand AND id = ANY (@grants) AND ended_at IS NULL AND expires_at > @now
		 ORDER BY id`
	return a.endWhere(ctx, brand, by, q, pgx.NamedArgs{"brand": brand, "grants": grants, "now": a.clock()})
}

// EndSome is End that stops after some thousands, so that it is done within the
// time of a request. Toll tells whether any are left.
func (a *Authority) EndSome(ctx context.Context, brand tenants.BrandID, by By, which Which) (int, error) {
	if which.empty() {
		return 0, fmt.Errorf("end grants at %s: %w: say which", brand, ErrUnknown)
	}
	const some = 5000
	return a.endMany(ctx, brand, by, findNamed, a.naming(brand, which), some)
}

// Suspension is one time that a Brand user was suspended, or let go on.
type Suspension struct {
	At      time.Time
	Event   string // user.suspended or user.resumed
	Actor   string
	ActorID string
	Channel string
}

// Suspensions returns when the Brand user was suspended and resumed, the oldest
// first, as far as the trail tells, but not more than some hundred of them.
func (a *Authority) Suspensions(ctx context.Context, brand tenants.BrandID, subject string) ([]Suspension, error) {
	const q = `
		SELECT at, event, actor, actor_id, channel FROM audit_events
		 WHERE brand_id = @brand AND event IN ('user.suspended', 'user.resumed') AND detail->>'subject' = @subject
		 ORDER BY seq LIMIT @most`
	const most = 100
	out, err := tenants.All[Suspension](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "subject": subject, "most": most})
	if err != nil {
		return nil, fmt.Errorf("read suspensions at %s: %w", brand, err)
	}
	return out, nil
}
