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

// Grant is what one person allows one agent at one Brand.
type Grant struct {
	ID        uuid.UUID `db:"id"`
	Agent     string    // issuer
	AgentName string    // the agent's own words
	AgentLogo string    // the hash of its picture; empty: none
	AgentSub  string
	Subject   string
	Scopes    []string
	Details   Details // what the scopes allow, more exactly
	CreatedAt time.Time
	ExpiresAt time.Time
	LastUsed  *time.Time
	AgentOn   bool       // false: switched off here, so that nothing of the grant works now
	EndedAt   *time.Time // nil: it lives, until ExpiresAt
	EndReason string     // how it ended: revoked_by_user, expired, reuse_detected, …; empty: it lives
}

// A grant that has run out is over, whether or not upkeep has come by.
const grantColumns = `
		SELECT g.id, g.agent, coalesce(s.name, '') AS agent_name, coalesce(s.logo, '') AS agent_logo, g.agent_sub, g.subject, g.scopes, g.details,
		       g.created_at, g.expires_at, g.last_used_at AS last_used, coalesce(s.enabled, false) AS agent_on,
		       CASE WHEN g.ended_at IS NOT NULL OR g.expires_at <= @now
		            THEN least(g.ended_at, g.expires_at) END AS ended_at,
		       CASE WHEN g.ended_at IS NULL AND g.expires_at <= @now
		            THEN 'expired' ELSE coalesce(g.end_reason, '') END AS end_reason`

const selectGrant = grantColumns + `
		  FROM grants g
		  LEFT JOIN agent_standing s ON s.brand_id = g.brand_id AND s.issuer = g.agent
		 WHERE g.brand_id = @brand AND g.subject = @subject`

// Grants returns the Brand user's living grants, the newest first.
func (a *Authority) Grants(ctx context.Context, brand tenants.BrandID, subject string) ([]Grant, error) {
	const q = selectGrant + ` AND g.ended_at IS NULL AND g.expires_at > @now
		 ORDER BY g.created_at DESC, g.id`
	out, err := tenants.All[Grant](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "subject": subject, "now": a.clock()})
	if err != nil {
		return nil, fmt.Errorf("list grants at %s: %w", brand, err)
	}
	return out, nil
}

// Ended returns the Brand user's grants that are over and ended after since, the
// last to end first.
func (a *Authority) Ended(ctx context.Context, brand tenants.BrandID, subject string, since time.Time) ([]Grant, error) {
	const q = selectGrant + ` AND (g.ended_at IS NOT NULL OR g.expires_at <= @now)
		   AND least(g.ended_at, g.expires_at) > @since
		 ORDER BY least(g.ended_at, g.expires_at) DESC, g.id`
	out, err := tenants.All[Grant](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "subject": subject, "since": since, "now": a.clock(),
	})
	if err != nil {
		return nil, fmt.Errorf("list ended grants at %s: %w", brand, err)
	}
	return out, nil
}

// Suspended reports whether the Brand has suspended the user: grants are kept,
// and nothing of them works.
func (a *Authority) Suspended(ctx context.Context, brand tenants.BrandID, subject string) (bool, error) {
	const q = `SELECT EXISTS (SELECT FROM suspended_users WHERE brand_id = @brand AND subject = @subject) AS away`
	r, err := tenants.One[struct{ Away bool }](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "subject": subject})
	if err != nil {
		return false, fmt.Errorf("look for a suspension at %s: %w", brand, err)
	}
	return r.Away, nil
}

// Grant returns one grant of the Brand user, ended ones too; another's or an
// unknown one is ErrUnknown.
func (a *Authority) Grant(ctx context.Context, brand tenants.BrandID, subject string, id uuid.UUID) (Grant, error) {
	const q = selectGrant + ` AND g.id = @id`
	g, err := tenants.One[Grant](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "subject": subject, "id": id, "now": a.clock(),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Grant{}, ErrUnknown
	}
	if err != nil {
		return Grant{}, fmt.Errorf("find grant at %s: %w", brand, err)
	}
	return g, nil
}

// GrantOfAgent returns a living grant that the caller holds, with the scopes
// that it still pays out (Grant Management for OAuth 2.0). Another's, an unknown
// or an ended one is ErrUnknown, and so is one whose Brand user is suspended:
// at a refresh that looks no different either. ErrPaused while the Brand is.
func (a *Authority) GrantOfAgent(ctx context.Context, brand *tenants.Brand, who Caller, id uuid.UUID) (Grant, error) {
	const q = `
		SELECT g.id, g.agent, s.name AS agent_name, s.logo AS agent_logo, g.agent_sub, g.subject, g.created_at, g.expires_at,
		       g.last_used_at AS last_used, s.enabled AS agent_on, g.ended_at, '' AS end_reason,
		       ARRAY(SELECT o.id FROM brand_scopes o
		              WHERE o.brand_id = @brand AND o.retired_at IS NULL AND o.id = ANY (g.scopes)
		              ORDER BY o.position) AS scopes, g.details,
		       b.state = 'active' AND b.delegation AS brand_on
		  FROM grants g
		  JOIN brands b ON b.id = g.brand_id
		  JOIN agent_standing s ON s.brand_id = g.brand_id AND s.issuer = g.agent AND s.enabled
		 WHERE g.brand_id = @brand AND g.id = @id AND g.agent = @agent AND g.agent_sub = @sub
		   AND g.ended_at IS NULL AND g.expires_at > @now
		   AND NOT EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject)`
	type row struct {
		Grant
		BrandOn bool
	}
	r, err := tenants.One[row](ctx, a.db, brand.ID, q, pgx.NamedArgs{
		"brand": brand.ID, "id": id, "agent": who.Agent, "sub": who.Sub, "now": a.clock(),
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Grant{}, a.unknown(ctx, brand.ID, who)
	case err != nil:
		return Grant{}, fmt.Errorf("find grant at %s: %w", brand.ID, err)
	case !r.BrandOn:
		return Grant{}, ErrPaused
	}
	r.Details = r.Details.Of(r.Scopes...)
	return r.Grant, nil
}
