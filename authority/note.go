package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Note writes a fact about the Brand itself, not about a grant, into its trail,
// in the transaction that makes it true. detail holds ids and counts, never a
// name, an address or anything that somebody typed.
func (a *Authority) Note(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, by By, event string, detail map[string]any) error {
	c := &change{Tx: tx, brand: brand, now: a.clock(), by: by}
	c.note(fact{event: event, detail: detail})
	_, err := c.record(ctx, a.trace(ctx))
	return err
}

// ByMember is somebody who works on the Brand, at the dashboard.
func ByMember(id string) By { return By{Actor: "admin", ID: id, Channel: "console"} }

// Fact is one line of a Brand's trail.
type Fact struct {
	Seq     int64
	At      time.Time
	Actor   string
	ActorID string
	Channel string
	Event   string
	Detail  json.RawMessage
}

// LatestFacts returns the newest lines of the Brand's trail, the newest first.
func (a *Authority) LatestFacts(ctx context.Context, brand tenants.BrandID, count int) ([]Fact, error) {
	const q = `
		SELECT seq, at, actor, actor_id, channel, event, detail FROM audit_events
		 WHERE brand_id = @brand ORDER BY seq DESC LIMIT @count`
	out, err := tenants.All[Fact](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "count": count})
	if err != nil {
		return nil, fmt.Errorf("read the trail of %s: %w", brand, err)
	}
	return out, nil
}

// LivingCount says how many grants live at the Brand, how many agents hold them,
// and how many people gave them.
type LivingCount struct{ Grants, Agents, People int }

// CountLiving counts who may act for the Brand's users now.
func (a *Authority) CountLiving(ctx context.Context, brand tenants.BrandID) (LivingCount, error) {
	const q = `
		SELECT count(*) AS grants, count(DISTINCT agent) AS agents, count(DISTINCT subject) AS people FROM grants
		 WHERE brand_id = @brand AND ended_at IS NULL AND expires_at > @now`
	out, err := tenants.One[LivingCount](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "now": a.clock()})
	if err != nil {
		return LivingCount{}, fmt.Errorf("count grants at %s: %w", brand, err)
	}
	return out, nil
}

// HeldCount says how many living grants there are of something, and how many
// people gave them.
type HeldCount struct{ Grants, People int }

// CountHeld counts the living grants that match the filter, whose State is not
// asked.
func (a *Authority) CountHeld(ctx context.Context, brand tenants.BrandID, f Filter) (HeldCount, error) {
	const q = `
		SELECT count(*) AS grants, count(DISTINCT subject) AS people FROM grants
		 WHERE brand_id = @brand AND ended_at IS NULL AND expires_at > @now
		   AND (@agent = '' OR agent = @agent)
		   AND (@subject = '' OR subject = @subject)
		   AND (@scope = '' OR @scope = ANY (scopes))`
	out, err := tenants.One[HeldCount](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "agent": f.Agent, "subject": f.Subject, "scope": f.Scope, "now": a.clock(),
	})
	if err != nil {
		return HeldCount{}, fmt.Errorf("count grants at %s: %w", brand, err)
	}
	return out, nil
}

// CountStrangers counts the living grants of agents that nobody has registered:
// what waits, at the agents' next call, once the Brand is open no more.
func (a *Authority) CountStrangers(ctx context.Context, brand tenants.BrandID) (HeldCount, error) {
	const q = `
		SELECT count(*) AS grants, count(DISTINCT g.subject) AS people
		  FROM grants g
		  JOIN agent_standing s ON s.brand_id = g.brand_id AND s.issuer = g.agent AND s.discovered
		 WHERE g.brand_id = @brand AND g.ended_at IS NULL AND g.expires_at > @now`
	out, err := tenants.One[HeldCount](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "now": a.clock()})
	if err != nil {
		return HeldCount{}, fmt.Errorf("count grants of strangers at %s: %w", brand, err)
	}
	return out, nil
}
