package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// AgentPlace is an AgentEndpoint as it is called.
type AgentPlace struct {
	URL  string
	Keys []WebhookKey
}

// AgentPlaces finds where Brands' agents are, with their opened secrets. What it
// knows is at most a second old; while the keeper of the secrets is away, the
// last known serves.
type AgentPlaces struct {
	db     *DB
	sealer Sealer
	memo   Memo[BrandID, AgentPlace]
}

// NewAgentPlaces returns an AgentPlaces over db.
func NewAgentPlaces(db *DB, sealer Sealer, now func() time.Time) *AgentPlaces {
	p := &AgentPlaces{db: db, sealer: sealer}
	p.memo = Memo[BrandID, AgentPlace]{
		Fresh: staleness, Stale: outage, Now: now, Load: p.load,
		Missing: func(err error) bool { return errors.Is(err, ErrNoAgentEndpoint) },
	}
	return p
}

// Place returns where the Brand's agent is, or ErrNoAgentEndpoint.
func (p *AgentPlaces) Place(ctx context.Context, brand BrandID) (AgentPlace, error) {
	return p.memo.Get(ctx, brand)
}

// Forget drops what is remembered of a Brand, after a change made here.
func (p *AgentPlaces) Forget(brand BrandID) { p.memo.Forget(brand) }

func (p *AgentPlaces) load(ctx context.Context, brand BrandID) (AgentPlace, error) {
	const q = `
		SELECT url, secret_sealed AS sealed, former_sealed AS former, former_until AS until
		  FROM agent_endpoints WHERE brand_id = @brand`
	type row struct {
		URL    string `db:"url"`
		Sealed []byte
		Former []byte
		Until  *time.Time
	}
	found, err := One[row](ctx, p.db, brand, q, pgx.NamedArgs{"brand": brand})
	if errors.Is(err, pgx.ErrNoRows) {
		return AgentPlace{}, ErrNoAgentEndpoint
	}
	if err != nil {
		return AgentPlace{}, fmt.Errorf("load agent endpoint of %s: %w", brand, err)
	}
	out := AgentPlace{URL: found.URL}
	for _, sealed := range [][]byte{found.Sealed, found.Former} {
		if sealed == nil {
			continue
		}
		key, err := p.sealer.Open(ctx, brand, agentPurpose(found.URL), sealed)
		if err != nil {
			return AgentPlace{}, fmt.Errorf("open agent secret of %s: %w", brand, err)
		}
		out.Keys = append(out.Keys, WebhookKey{Key: key})
	}
	if found.Until != nil {
		out.Keys[1].Until = *found.Until
	}
	return out, nil
}

// RewrapAgentSecrets is RewrapLogins for the secrets of the Brand's agent
// endpoint, the former one too.
func RewrapAgentSecrets(ctx context.Context, db *DB, to Rewrapper, brand BrandID) (int, error) {
	const list = `
		SELECT url, secret_sealed AS sealed FROM agent_endpoints WHERE brand_id = @brand
		 UNION ALL
		SELECT url, former_sealed FROM agent_endpoints WHERE brand_id = @brand AND former_sealed IS NOT NULL`
	type row struct {
		URL    string `db:"url"`
		Sealed []byte
	}
	rows, err := All[row](ctx, db, brand, list, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return 0, fmt.Errorf("list agent secrets of %s: %w", brand, err)
	}
	// A rotation meanwhile moves a secret from one column to the other.
	const save = `
		UPDATE agent_endpoints
		   SET secret_sealed = CASE WHEN secret_sealed = @sealed THEN @fresh ELSE secret_sealed END,
		       former_sealed = CASE WHEN former_sealed = @sealed THEN @fresh ELSE former_sealed END
		 WHERE brand_id = @brand AND (secret_sealed = @sealed OR former_sealed = @sealed)`
	total := 0
	for _, r := range rows {
		fresh, changed, err := to.Rewrap(ctx, brand, agentPurpose(r.URL), r.Sealed)
		if err != nil {
			return total, fmt.Errorf("rewrap agent secret of %s: %w", brand, err)
		}
		if !changed {
			continue
		}
		n, err := db.Exec(ctx, brand, save, pgx.NamedArgs{"brand": brand, "fresh": fresh, "sealed": r.Sealed})
		if err != nil {
			return total, fmt.Errorf("rewrap agent secret of %s: %w", brand, err)
		}
		total += int(n)
	}
	return total, nil
}
