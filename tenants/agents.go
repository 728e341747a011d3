package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ListedAgent is what a Brand thinks of one agent.
type ListedAgent struct {
	Issuer  string
	Allowed bool
	NotedAt time.Time
}

// ListedAgents returns up to limit of the agents that the Brand has allowed or
// denied by name: those whose issuers sort behind after.
func ListedAgents(ctx context.Context, db *DB, brand BrandID, after string, limit int) ([]ListedAgent, error) {
	const q = `
		SELECT issuer, allowed, noted_at FROM brand_agents
		 WHERE brand_id = @brand AND issuer > @after
		 ORDER BY issuer LIMIT @limit`
	all, err := All[ListedAgent](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "after": after, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list agents of %s: %w", brand, err)
	}
	return all, nil
}

// AgentView is a registered agent and how it stands at a Brand.
type AgentView struct {
	Issuer       string
	Name         string
	KeysURL      string `db:"jwks_uri"`
	RegisteredAt time.Time
	Discovered   bool   // nobody registered it: it may ask at open Brands only
	Test         bool   // works with Brands that have proved nothing
	Enabled      bool   // by the operator, everywhere
	Listed       *bool  // the Brand's own word on it; nil: its rule decides
	May          bool   // all of it together: it may ask at the Brand now
	Logo         string // the hash of its picture, of its own choice; empty: none
}

const selectAgents = `
	SELECT s.issuer, s.name, r.jwks_uri, r.created_at AS registered_at, s.test, s.discovered, r.enabled, l.allowed AS listed, s.enabled AS may, s.logo
	  FROM agent_standing s
	  JOIN agent_states r ON r.issuer = s.issuer
	  JOIN brands b ON b.id = s.brand_id
	  LEFT JOIN brand_agents l ON l.brand_id = s.brand_id AND l.issuer = s.issuer
	 WHERE s.brand_id = @brand`

// AgentsAt returns up to limit registered agents as they stand at the Brand: those
// whose issuers sort behind after and hold search, they or their names. One that was
// discovered is among them where the Brand is open or has a word on it.
func AgentsAt(ctx context.Context, db *DB, brand BrandID, search, after string, limit int) ([]AgentView, error) {
	const q = selectAgents + ` AND s.issuer > @after
		   AND (NOT s.discovered OR b.agents = 'open' OR l.issuer IS NOT NULL)
		   AND (position(lower(@search) IN lower(s.issuer)) > 0 OR position(lower(@search) IN lower(s.name)) > 0)
		 ORDER BY s.issuer LIMIT @limit`
	all, err := All[AgentView](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "search": search, "after": after, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list agents at %s: %w", brand, err)
	}
	return all, nil
}

// ErrNoAgent is returned for an agent that is not registered.
var ErrNoAgent = errors.New("no such agent is registered")

// AgentAt returns one of them, or ErrNoAgent.
func AgentAt(ctx context.Context, db *DB, brand BrandID, issuer string) (AgentView, error) {
	const q = selectAgents + ` AND s.issuer = @issuer`
	a, err := One[AgentView](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "issuer": issuer})
	if errors.Is(err, pgx.ErrNoRows) {
		return AgentView{}, ErrNoAgent
	}
	if err != nil {
		return AgentView{}, fmt.Errorf("find agent at %s: %w", brand, err)
	}
	return a, nil
}

// AgentLogo returns the picture of a registered agent with that hash, or ErrNoLogo.
func AgentLogo(ctx context.Context, db *DB, hash string) ([]byte, error) {
	const q = `SELECT png FROM agent_pictures WHERE hash = @hash LIMIT 1`
	var picture []byte
	err := db.pool.QueryRow(ctx, q, pgx.NamedArgs{"hash": hash}).Scan(&picture)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoLogo
	}
	if err != nil {
		return nil, fmt.Errorf("load logo of an agent: %w", err)
	}
	return picture, nil
}

// ListAgent allows or denies the agent at the Brand. It holds from the next call
// of the agent on, everywhere; grants are kept for when it is allowed again. An
// agent that is not registered is a Problem.
func ListAgent(ctx context.Context, edit Editor, brand BrandID, issuer string, allowed bool) error {
	return edit.change(ctx, brand, "list agent", func(e *Edit) error { return e.listAgent(ctx, issuer, allowed) })
}

func (e *Edit) listAgent(ctx context.Context, issuer string, allowed bool) error {
	const q = `
		INSERT INTO brand_agents (brand_id, issuer, allowed, noted_at) VALUES (@brand, @issuer, @allowed, @now)
		ON CONFLICT (brand_id, issuer) DO UPDATE SET allowed = excluded.allowed, noted_at = excluded.noted_at
		 WHERE brand_agents.allowed <> excluded.allowed`
	tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": e.Brand, "issuer": issuer, "allowed": allowed, "now": e.Now})
	const foreignKey = "23503"
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == foreignKey {
		return Problems{{Field: "issuer", Say: "is no registered agent", Mend: "copy the agent's issuer URL byte for byte; the operator registers agents", Mistake: NoAgent}}
	}
	if err == nil && tag.RowsAffected() > 0 {
		e.Note(map[bool]string{true: "agent.allowed", false: "agent.denied"}[allowed], map[string]any{"agent": issuer})
	}
	return err
}

// UnlistAgent leaves the agent to the Brand's rule again.
func UnlistAgent(ctx context.Context, edit Editor, brand BrandID, issuer string) error {
	return edit.change(ctx, brand, "unlist agent", func(e *Edit) error { return e.unlistAgent(ctx, issuer) })
}

func (e *Edit) unlistAgent(ctx context.Context, issuer string) error {
	const q = `
		WITH gone AS (DELETE FROM brand_agents WHERE brand_id = @brand AND issuer = @issuer RETURNING brand_id)
		UPDATE brands SET resumed_at = @now WHERE id = (SELECT brand_id FROM gone)`
	tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": e.Brand, "issuer": issuer, "now": e.Now})
	if err == nil && tag.RowsAffected() > 0 {
		e.Note("agent.unlisted", map[string]any{"agent": issuer})
	}
	return err
}
