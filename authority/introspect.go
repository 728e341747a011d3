package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Standing is what a delegation token is worth now.
type Standing struct {
	Scopes  []string // the token's, as far as the living grant and the card still hold them
	Details Details  // of those scopes, as the token says them
	Subject string
	Agent   string
	// AgentSub is the agent's name for the person who gave the grant.
	AgentSub string
	GrantID  uuid.UUID
	Expires  time.Time // the token, or its grant if that ends sooner
	Issued   time.Time
	ID       string // jti
}

// Standing says what a token of the Brand, whose signature has been verified, is
// worth now: its scopes ∩ the living grant ∩ the card. A scope of which the grant
// says other details by now is not in it: neither the token's nor the grant's were
// ever allowed to this token. ErrEnded: nothing.
func (a *Authority) Standing(ctx context.Context, brand *tenants.Brand, payload []byte) (Standing, error) {
	var c claims
	if err := c.read(payload); err != nil {
		return Standing{}, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	now := a.clock()
	expires := time.Unix(c.Expires, 0)
	grant, err := uuid.Parse(c.GrantID)
	const skew = 30 * time.Second // between the clocks of instances; an end is never late
	future := time.Unix(c.IssuedAt, 0).After(now.Add(skew))
	if err != nil || c.Issuer != brand.Issuer || c.Audience != brand.InterfaceURL || !now.Before(expires) || future {
		return Standing{}, ErrEnded
	}
	const q = `
		SELECT g.scopes AS held, g.details, g.expires_at AS ends, g.agent_sub AS sub,
		       ARRAY(SELECT s.id FROM brand_scopes s
		              WHERE s.brand_id = @brand AND s.retired_at IS NULL) AS offered
		  FROM grants g
		  JOIN brands b ON b.id = g.brand_id AND b.state = 'active' AND b.delegation
		  JOIN agent_standing s ON s.brand_id = g.brand_id AND s.issuer = g.agent AND s.enabled
		 WHERE g.brand_id = @brand AND g.id = @grant AND g.agent = @agent AND g.subject = @subject
		   AND g.ended_at IS NULL AND g.expires_at > @now
		   AND NOT EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject)`
	type row struct {
		Held, Offered []string
		Details       Details
		Ends          time.Time
		Sub           string
	}
	r, err := tenants.One[row](ctx, a.db, brand.ID, q, pgx.NamedArgs{
		"brand": brand.ID, "grant": grant, "agent": c.ClientID, "subject": c.Subject, "now": now,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Standing{}, ErrEnded
	}
	if err != nil {
		return Standing{}, fmt.Errorf("introspect at %s: %w", brand.ID, err)
	}
	scopes := slices.DeleteFunc(strings.Fields(c.Scope), func(s string) bool {
		return !slices.Contains(r.Held, s) || !slices.Contains(r.Offered, s)
	})
	scopes = without(scopes, c.moved(brand, r.Details.Of(scopes...)))
	if len(scopes) == 0 {
		return Standing{}, ErrEnded
	}
	// The grant may have been shortened since: whoever remembers the answer for
	// as long as the token lives must not remember it past the grant.
	if r.Ends.Before(expires) {
		expires = r.Ends
	}
	return Standing{
		Scopes: scopes, Details: r.Details.Of(scopes...), Subject: c.Subject, Agent: c.ClientID, AgentSub: r.Sub, GrantID: grant,
		Expires: expires, Issued: time.Unix(c.IssuedAt, 0), ID: c.ID,
	}, nil
}
