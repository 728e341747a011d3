package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotRegistered says that no agent has this issuer.
var ErrNotRegistered = errors.New("agent is not registered")

// Agent is a personal agent that we know.
type Agent struct {
	Issuer  string `db:"issuer"` // its client_id; compared byte for byte
	JWKSURI string `db:"jwks_uri"`
	Name    string `db:"name"` // its own words for itself; decides nothing
	Enabled bool   `db:"enabled"`
	Test    bool   `db:"test"`    // for trying things out: works with Brands that have proved nothing
	Contact string `db:"contact"` // whom the operator can ask; shown to nobody else
	Logo    string `db:"logo"`    // the hash of its picture, of its own choice; empty: none. SetLogo sets it
	// Discovered: nobody registered it. It works with open Brands only, and its
	// name is its host. Set by Meet; to register it ends it.
	Discovered bool      `db:"discovered"`
	CreatedAt  time.Time `db:"created_at"` // set by the Registry
	UpdatedAt  time.Time `db:"updated_at"` // set by the Registry
	CameAt     time.Time `db:"came_at"`    // of a discovered one: when it last proved who it is, to the hour
}

// RegistryConfig is what a Registry needs.
type RegistryConfig struct {
	DB            *pgxpool.Pool
	Now           func() time.Time // nil: time.Now
	AllowLoopback bool             // development only: issuers and key sets on loopback
	Note          Note             // nil: nobody is told
	Met           Met              // nil: nobody is told
}

// Note takes down what was done to an agent ("registered", "enabled",
// "disabled", "logo"), in the transaction that makes it true. An error undoes it.
type Note func(ctx context.Context, tx pgx.Tx, issuer, what string) error

// Met takes down that an agent was met at a Brand ("discovered"), or that one of
// those has its keys at another place ("moved"). An error undoes it.
type Met func(ctx context.Context, tx pgx.Tx, at tenants.BrandID, issuer, what string) error

// Registry is the agents we know, the same for every Brand.
type Registry struct {
	db            *pgxpool.Pool
	now           func() time.Time
	allowLoopback bool
	note          Note
	met           Met

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
	if c.Note == nil {
		c.Note = func(context.Context, pgx.Tx, string, string) error { return nil }
	}
	if c.Met == nil {
		c.Met = func(context.Context, pgx.Tx, tenants.BrandID, string, string) error { return nil }
	}
	return &Registry{db: c.DB, now: c.Now, allowLoopback: c.AllowLoopback, note: c.Note, met: c.Met, recent: map[string]sighting{}}
}

// Register adds the agent, or replaces what we know of the agent with that
// issuer. What cannot be registered is ErrBadIssuer, ErrBadJWKSURI or
// ErrBadName.
func (r *Registry) Register(ctx context.Context, a Agent) error {
	if err := registrable(a, r.allowLoopback); err != nil {
		return fmt.Errorf("register agent: %w", err)
	}
	const q = `
		INSERT INTO agents (issuer, jwks_uri, name, enabled, test, contact, created_at, updated_at)
		VALUES (@issuer, @jwks_uri, @name, @enabled, @test, @contact, @now, @now)
		ON CONFLICT (issuer) DO UPDATE
		   SET jwks_uri = excluded.jwks_uri, name = excluded.name,
		       enabled = excluded.enabled, test = excluded.test, contact = excluded.contact,
		       discovered = false, updated_at = excluded.updated_at,
		       enabled_at = CASE WHEN excluded.enabled THEN excluded.updated_at ELSE agents.enabled_at END
		 WHERE agents.discovered OR (agents.jwks_uri, agents.name, agents.enabled, agents.test, agents.contact)
		       IS DISTINCT FROM (excluded.jwks_uri, excluded.name, excluded.enabled, excluded.test, excluded.contact)`
	defer r.forget(a.Issuer)
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{
			"issuer": a.Issuer, "jwks_uri": a.JWKSURI, "name": a.Name, "enabled": a.Enabled, "test": a.Test, "contact": a.Contact, "now": r.now(),
		})
		if err != nil || tag.RowsAffected() == 0 { // nothing is new
			return err
		}
		return r.note(ctx, tx, a.Issuer, "registered")
	})
	if err != nil {
		return fmt.Errorf("register agent: %w", err)
	}
	return nil
}

// SetEnabled lets the agent in or keeps it out. Verifiers over this Registry
// know when it returns, others within two seconds.
func (r *Registry) SetEnabled(ctx context.Context, issuer string, enabled bool) error {
	const find = `SELECT enabled FROM agents WHERE issuer = @issuer FOR NO KEY UPDATE`
	const set = `
		UPDATE agents
		   SET enabled = @enabled, updated_at = @now, enabled_at = CASE WHEN @enabled THEN @now ELSE enabled_at END
		 WHERE issuer = @issuer`
	what := "disabled"
	if enabled {
		what = "enabled"
	}
	// Also after an error: the change may have been made.
	defer r.forget(issuer)
	args := pgx.NamedArgs{"issuer": issuer, "enabled": enabled, "now": r.now()}
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		var before bool
		err := tx.QueryRow(ctx, find, args).Scan(&before)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNotRegistered
		case err != nil, before == enabled:
			return err
		}
		if _, err := tx.Exec(ctx, set, args); err != nil {
			return err
		}
		return r.note(ctx, tx, issuer, what)
	})
	if err != nil && !errors.Is(err, ErrNotRegistered) {
		return fmt.Errorf("enable or disable agent: %w", err)
	}
	return err
}

// Find returns the agent with that issuer, or ErrNotRegistered.
func (r *Registry) Find(ctx context.Context, issuer string) (Agent, error) {
	const q = `
		SELECT issuer, jwks_uri, name, enabled, test, contact, discovered, created_at, updated_at, came_at,
		       coalesce((SELECT hash FROM agent_logos l WHERE l.issuer = agents.issuer), '') AS logo
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
		SELECT issuer, jwks_uri, name, enabled, test, contact, discovered, created_at, updated_at, came_at,
		       coalesce((SELECT hash FROM agent_logos l WHERE l.issuer = agents.issuer), '') AS logo
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
