package authority

import (
	"context"
	"errors"
	"fmt"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EndScopeByUser takes one permission away from a grant that belongs to the
// Brand user; the last one ends the grant. Another's grant, an unknown or ended
// one, or a permission it does not hold is ErrUnknown.
func (a *Authority) EndScopeByUser(ctx context.Context, brand tenants.BrandID, subject string, grant uuid.UUID, scope string) error {
	if subject == "" {
		return ErrUnknown // to narrow, no subject is any subject
	}
	return a.narrow(ctx, brand, ByUser(subject), Which{Grant: grant, Subject: subject}, scope)
}

// EndScope is EndScopeByUser for an admin or operator.
func (a *Authority) EndScope(ctx context.Context, brand tenants.BrandID, by By, grant uuid.UUID, scope string) error {
	return a.narrow(ctx, brand, by, Which{Grant: grant}, scope)
}

func (a *Authority) narrow(ctx context.Context, brand tenants.BrandID, by By, which Which, scope string) error {
	now := a.clock()
	err := a.change(ctx, brand, by, now, func(c *change) error {
		const q = `
			SELECT id, agent, subject, scopes, details, version, expires_at FROM grants
			 WHERE brand_id = @brand AND id = @grant AND (@subject = '' OR subject = @subject)
			   AND ended_at IS NULL AND expires_at > @now AND @scope = ANY (scopes)
			   FOR UPDATE`
		var g livingGrant
		var agent, subject string
		err := c.QueryRow(ctx, q, pgx.NamedArgs{
			"brand": brand, "grant": which.Grant, "subject": which.Subject, "scope": scope, "now": now,
		}).Scan(&g.ID, &agent, &subject, &g.Scopes, &g.Details, &g.Version, &g.ExpiresAt)
		if err != nil {
			return err
		}
		left := without(g.Scopes, []string{scope})
		if len(left) == 0 {
			_, err := c.end(ctx, []uuid.UUID{g.ID}, "revoked_by_"+by.Actor)
			return err
		}
		return c.rewrite(ctx, g, rewriting{agent: agent, subject: subject, scopes: left, details: g.Details.Of(left...), ends: g.ExpiresAt})
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrUnknown
	case err != nil:
		return fmt.Errorf("narrow grant at %s: %w", brand, err)
	}
	return nil
}
