package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Provider is an organisation that assigns one audience to personal agents.
type Provider struct {
	ID, Name, Audience string
	// Shared: the operator's own, for hosted Brands of any organisation.
	Shared bool
}

// SaveProvider creates the Provider or renames it. Its audience is set once:
// changing it would make every agent's pa-jwt useless at a stroke.
func SaveProvider(ctx context.Context, db *DB, p Provider, now time.Time) error {
	const q = `
		INSERT INTO providers (id, name, audience, shared, created_at)
		VALUES (@id, @name, @audience, @shared, @now)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, shared = excluded.shared
		 WHERE providers.audience = excluded.audience
		RETURNING id`
	var id string
	err := db.pool.QueryRow(ctx, q, pgx.NamedArgs{"id": p.ID, "name": p.Name, "audience": p.Audience, "shared": p.Shared, "now": now}).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("save provider %s: its audience is already another one and never changes", p.ID)
	}
	if err != nil {
		return fmt.Errorf("save provider %s: %w", p.ID, err)
	}
	return nil
}

// Hosting is a Provider with one of its Brands, or with none.
type Hosting struct {
	Provider string `db:"provider_id"`
	Name     string
	Audience string
	Shared   bool
	Brand    *BrandID `db:"brand_id"`
	Mode     *Mode
	State    *State
}

// Providers lists every Provider with every Brand of it, by their ids.
func Providers(ctx context.Context, db *DB) ([]Hosting, error) {
	const q = `SELECT provider_id, name, audience, shared, brand_id, mode, state FROM provider_brands ORDER BY provider_id, brand_id`
	rows, err := db.pool.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[Hosting])
	if err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	return out, nil
}

// AudienceAt is what an agent names in aud at one Brand (wire.md M3), and whether
// it may act there.
type AudienceAt struct {
	Provider     string  `json:"provider"`
	Audience     string  `json:"audience"`
	Brand        BrandID `json:"brand" db:"brand_id"`
	Name         string  `json:"name" db:"brand"`
	InterfaceURL string  `json:"interface_url"`
	Enabled      bool    `json:"enabled"`
}

// Audiences lists up to limit Brands with the audience that the agent names at
// each, by the Brands' ids; those after the id, if it is not empty. To be shown to
// the agent itself, take only those at which it may act: who else is here is not
// its business.
func Audiences(ctx context.Context, db *DB, issuer string, enabledOnly bool, after BrandID, limit int) ([]AudienceAt, error) {
	const q = `
		SELECT provider, audience, brand_id, brand, interface_url, enabled FROM agent_audiences
		 WHERE issuer = @issuer AND brand_id > @after AND (enabled OR NOT @only)
		 ORDER BY brand_id LIMIT @limit`
	rows, err := db.pool.Query(ctx, q, pgx.NamedArgs{"issuer": issuer, "after": after, "only": enabledOnly, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list audiences: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[AudienceAt])
	if err != nil {
		return nil, fmt.Errorf("list audiences: %w", err)
	}
	return out, nil
}
