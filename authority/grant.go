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
	AgentSub  string
	Subject   string
	Scopes    []string
	CreatedAt time.Time
	ExpiresAt time.Time
	LastUsed  *time.Time
	EndedAt   *time.Time // nil: it lives, until ExpiresAt
}

const selectGrant = `
		SELECT g.id, g.agent, coalesce(s.name, '') AS agent_name, g.agent_sub, g.subject, g.scopes,
		       g.created_at, g.expires_at, g.last_used_at AS last_used, g.ended_at
		  FROM grants g
		  LEFT JOIN agent_states s ON s.issuer = g.agent
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

// Grant returns one grant of the Brand user, ended ones too; another's or an
// unknown one is ErrUnknown.
func (a *Authority) Grant(ctx context.Context, brand tenants.BrandID, subject string, id uuid.UUID) (Grant, error) {
	const q = selectGrant + ` AND g.id = @id`
	g, err := tenants.One[Grant](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "subject": subject, "id": id})
	if errors.Is(err, pgx.ErrNoRows) {
		return Grant{}, ErrUnknown
	}
	if err != nil {
		return Grant{}, fmt.Errorf("find grant at %s: %w", brand, err)
	}
	return g, nil
}
