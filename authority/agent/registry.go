package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotRegistered says that no agent has this issuer.
var ErrNotRegistered = errors.New("agent is not registered")

// Agent is a personal agent that we know.
type Agent struct {
	Issuer    string    `db:"issuer"` // its client_id; compared byte for byte
	JWKSURI   string    `db:"jwks_uri"`
	Name      string    `db:"name"` // its own words for itself; decides nothing
	Enabled   bool      `db:"enabled"`
	CreatedAt time.Time `db:"created_at"` // set by the Registry
	UpdatedAt time.Time `db:"updated_at"` // set by the Registry
}

// RegistryConfig is what a Registry needs.
type RegistryConfig struct {
	DB            *pgxpool.Pool
	Now           func() time.Time // nil: time.Now
	AllowLoopback bool             // development only: issuers and key sets on loopback
}

// Registry is the agents we know, the same for every Brand.
type Registry struct {
	db            *pgxpool.Pool
	now           func() time.Time
	allowLoopback bool

	mu      sync.Mutex
	recent  map[string]sighting
	changes uint64 // counts our own changes, so that no read overtakes one
}

// sighting is an agent as it was read a moment ago.
type sighting struct {
	agent Agent
	at    time.Time
}

// maxSighting is how long a Verifier goes by what it read: the bound on how
// long an agent disabled through another instance is still let in here.
const maxSighting = 2 * time.Second

// NewRegistry returns a Registry.
func NewRegistry(c RegistryConfig) *Registry {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Registry{db: c.DB, now: c.Now, allowLoopback: c.AllowLoopback, recent: map[string]sighting{}}
}

// Register adds the agent, or replaces what we know of the agent with that
// issuer. What cannot be registered is ErrBadIssuer, ErrBadJWKSURI or
// ErrBadName.
func (r *Registry) Register(ctx context.Context, a Agent) error {
	if err := registrable(a, r.allowLoopback); err != nil {
		return fmt.Errorf("register agent: %w", err)
	}
	const q = `
		INSERT INTO agents (issuer, jwks_uri, name, enabled, created_at, updated_at)
		VALUES (@issuer, @jwks_uri, @name, @enabled, @now, @now)
		ON CONFLICT (issuer) DO UPDATE
		   SET jwks_uri = excluded.jwks_uri, name = excluded.name,
		       enabled = excluded.enabled, updated_at = excluded.updated_at`
	defer r.forget(a.Issuer)
	_, err := r.db.Exec(ctx, q, pgx.NamedArgs{
		"issuer": a.Issuer, "jwks_uri": a.JWKSURI, "name": a.Name, "enabled": a.Enabled, "now": r.now(),
	})
	if err != nil {
		return fmt.Errorf("register agent: %w", err)
	}
	return nil
}

// SetEnabled lets the agent in or keeps it out. Verifiers over this Registry
// know when it returns, others within two seconds.
func (r *Registry) SetEnabled(ctx context.Context, issuer string, enabled bool) error {
	const q = `UPDATE agents SET enabled = @enabled, updated_at = @now WHERE issuer = @issuer`
	// Also after an error: the change may have been made.
	defer r.forget(issuer)
	tag, err := r.db.Exec(ctx, q, pgx.NamedArgs{"issuer": issuer, "enabled": enabled, "now": r.now()})
	if err != nil {
		return fmt.Errorf("enable or disable agent: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotRegistered
	}
	return nil
}

// Find returns the agent with that issuer, or ErrNotRegistered.
func (r *Registry) Find(ctx context.Context, issuer string) (Agent, error) {
	const q = `
		SELECT issuer, jwks_uri, name, enabled, created_at, updated_at
		  FROM agents WHERE issuer = @issuer`
	rows, err := r.db.Query(ctx, q, pgx.NamedArgs{"issuer": issuer})
	if err != nil {
		return Agent{}, fmt.Errorf("find agent: %w", err)
	}
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Agent])
	if errors.Is(err, pgx.ErrNoRows) {
		return Agent{}, ErrNotRegistered
	}
	if err != nil {
		return Agent{}, fmt.Errorf("find agent: %w", err)
	}
	return a, nil
}

// List returns all agents, ordered by issuer.
func (r *Registry) List(ctx context.Context) ([]Agent, error) {
	const q = `
		SELECT issuer, jwks_uri, name, enabled, created_at, updated_at
		  FROM agents ORDER BY issuer`
	rows, err := r.db.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Agent])
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return all, nil
}

// current is Find for every request: it may be maxSighting old. That an issuer
// is unknown is not remembered, for strangers could name any number of them.
func (r *Registry) current(ctx context.Context, issuer string) (Agent, error) {
	seen, changes := r.sighted(issuer)
	if age := r.now().Sub(seen.at); age >= 0 && age < maxSighting {
		return seen.agent, nil
	}
	a, err := r.Find(ctx, issuer)
	if err != nil {
		return Agent{}, err
	}
	r.see(a, changes)
	return a, nil
}

// see remembers a, unless something changed since its reading began: what was
// read before one of our own changes must not outlive it.
func (r *Registry) see(a Agent, changes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == changes {
		r.recent[a.Issuer] = sighting{agent: a, at: r.now()}
	}
}

func (r *Registry) sighted(issuer string) (sighting, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recent[issuer], r.changes
}

func (r *Registry) forget(issuer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.recent, issuer)
	r.changes++
}
