package tenants

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5"
)

// AgentEndpoint is where a hosted Brand's own agent is called, a turn a call.
type AgentEndpoint struct {
	URL         string     `json:"url" db:"url"`
	FormerUntil *time.Time `json:"former_secret_until"` // until then the former secret signs too
	ChangedAt   time.Time  `json:"changed_at"`
}

// ErrNoAgentEndpoint is returned where a Brand has not said where its agent is.
var ErrNoAgentEndpoint = errors.New("the brand has not said where its agent is")

// The kinds of change of an agent's endpoint that wait for an owner: who hears
// what people say to the Brand, and who answers for it.
const (
	ChangeAgentEndpoint = "agent_endpoint.set"
	ChangeAgentSecret   = "agent_endpoint.rotate"
)

// AgentOverlap is how long both secrets sign after a change of the secret.
const AgentOverlap = 24 * time.Hour

// agentPurpose binds the secret to the place that it is for: whoever can write
// rows cannot have calls to a place of his own signed with another's.
func agentPurpose(url string) string { return "agent-endpoint " + thumb([]byte(url)) }

func newAgentSecret(ctx context.Context, sealer Sealer, brand BrandID, url string) (secret string, sealed []byte, err error) {
	key := make([]byte, webhookSecretSize)
	_, _ = rand.Read(key) // never fails
	if sealed, err = sealer.Seal(ctx, brand, agentPurpose(url), key); err != nil {
		return "", nil, fmt.Errorf("seal agent secret of %s: %w", brand, err)
	}
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(key), sealed, nil
}

// CheckAgentURL returns every mistake in the URL. That its name leads to a public
// address is seen at each call.
func CheckAgentURL(raw string, site Site) Problems {
	const longest = 2000
	var p Problems
	switch err := egress.CheckURL(raw, site.AllowLoopback); {
	case raw == "":
		p.add("url", "is missing", "write the https address at which your agent is called")
		p.kind(Missing)
	case len(raw) > longest:
		p.add("url", "is too long", "use "+count(longest)+" characters at most")
		p.kind(TooLong, count(longest))
	case err != nil:
		_, why, _ := strings.Cut(err.Error(), ": ")
		p.add("url", "is no address that we call: "+why, "give a public https address without user, port or fragment")
		p.kind(NotCalled)
	}
	return p
}

// SetAgentEndpoint says where the Brand's agent is called from now on. It returns
// the secret with which calls there are signed, for the only time: another place
// gets another secret, since whoever is at the former one knows that. The same
// URL again changes nothing and returns no secret. An empty URL takes the
// endpoint away.
func SetAgentEndpoint(ctx context.Context, edit Editor, sealer Sealer, site Site, brand BrandID, url string) (string, error) {
	if url == "" {
		return "", removeAgentEndpoint(ctx, edit, brand)
	}
	if p := CheckAgentURL(url, site); len(p) > 0 {
		return "", p
	}
	// Sealing may ask a key store, and no transaction waits for one.
	secret, sealed, err := newAgentSecret(ctx, sealer, brand, url)
	if err != nil {
		return "", err
	}
	const q = `
		INSERT INTO agent_endpoints AS e (brand_id, url, secret_sealed, changed_at)
		VALUES (@brand, @url, @sealed, @now)
		ON CONFLICT (brand_id) DO UPDATE
		   SET url = excluded.url, secret_sealed = excluded.secret_sealed, former_sealed = NULL, former_until = NULL,
		       changed_at = excluded.changed_at
		 WHERE e.url <> excluded.url`
	err = edit.change(ctx, brand, "set agent endpoint", func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "url": url, "sealed": sealed, "now": e.Now})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			secret = ""
			return nil
		}
		// The URL may hold something secret, so the trail has its hash alone,
		// and of what an owner is asked, the kind (OfAgentEndpoint).
		e.Note("agent_endpoint.set", map[string]any{"url_hash": thumb([]byte(url))})
		return nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

func removeAgentEndpoint(ctx context.Context, edit Editor, brand BrandID) error {
	const q = `DELETE FROM agent_endpoints WHERE brand_id = @brand`
	return edit.change(ctx, brand, "remove agent endpoint", func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": brand})
		if err == nil && tag.RowsAffected() > 0 {
			e.Note("agent_endpoint.removed", nil)
		}
		return err
	})
}

// RotateAgentSecret gives the endpoint a new secret and returns it, for the only
// time. For the overlap both secrets sign, so that the agent can change at
// leisure; an overlap of zero is for a secret that somebody else may hold.
func RotateAgentSecret(ctx context.Context, db *DB, edit Editor, sealer Sealer, brand BrandID, overlap time.Duration) (string, error) {
	at, err := AgentEndpointOf(ctx, db, brand)
	if err != nil {
		return "", err
	}
	secret, sealed, err := newAgentSecret(ctx, sealer, brand, at.URL)
	if err != nil {
		return "", err
	}
	const q = `
		UPDATE agent_endpoints
		   SET former_sealed = CASE WHEN @until::timestamptz > @now THEN secret_sealed END,
		       former_until = CASE WHEN @until::timestamptz > @now THEN @until::timestamptz END,
		       secret_sealed = @sealed, changed_at = @now
		 WHERE brand_id = @brand AND url = @url`
	err = edit.change(ctx, brand, "rotate agent secret", func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "url": at.URL, "sealed": sealed, "until": e.Now.Add(overlap), "now": e.Now,
		})
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNoAgentEndpoint // it moved meanwhile
		}
		e.Note("agent_endpoint.secret_rotated", map[string]any{"former_signs_for": overlap.String()})
		return err
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// AgentEndpointOf returns where the Brand's agent is, or ErrNoAgentEndpoint.
func AgentEndpointOf(ctx context.Context, db *DB, brand BrandID) (AgentEndpoint, error) {
	const q = `SELECT url, former_until, changed_at FROM agent_endpoints WHERE brand_id = @brand`
	e, err := One[AgentEndpoint](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if errors.Is(err, pgx.ErrNoRows) {
		return AgentEndpoint{}, ErrNoAgentEndpoint
	}
	if err != nil {
		return AgentEndpoint{}, fmt.Errorf("find agent endpoint of %s: %w", brand, err)
	}
	return e, nil
}

// EmptyAgentEndpoint takes the endpoint of a Brand away that has been closed for
// ClosedFor, and leaves any other alone.
func EmptyAgentEndpoint(ctx context.Context, db *DB, brand BrandID, now time.Time) error {
	const q = `DELETE FROM agent_endpoints WHERE brand_id = @brand AND brand_is_over(@now)`
	if _, err := db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "now": now}); err != nil {
		return fmt.Errorf("empty agent endpoint of %s: %w", brand, err)
	}
	return nil
}

// AgentTried is what came of a test call of a Brand's agent.
type AgentTried struct {
	Took  time.Duration
	Text  string // what the agent said
	Wrong string // what is wrong, in our words; empty: nothing
}

// AgentAppliers apply the changes of the endpoint that an owner allowed. What
// they return is the secret, for the owner to hand on.
func AgentAppliers(db *DB, sealer Sealer, site Site) map[string]Applier {
	return map[string]Applier{
		ChangeAgentEndpoint: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p agentEndpointChange
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			now, err := AgentEndpointOf(ctx, db, brand)
			if err != nil && !errors.Is(err, ErrNoAgentEndpoint) {
				return "", err
			}
			// As it is meant to be already: this ran before, and its answer was lost.
			if now.URL != p.Before && now.URL != p.After {
				return "", ErrChangeStale
			}
			return SetAgentEndpoint(ctx, edit, sealer, site, brand, p.After)
		},
		ChangeAgentSecret: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p AgentEndpoint
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			now, err := AgentEndpointOf(ctx, db, brand)
			if err == nil && now.URL != p.URL {
				err = ErrChangeStale // the owner read another address
			}
			if err != nil {
				return "", err
			}
			return RotateAgentSecret(ctx, db, edit, sealer, brand, AgentOverlap)
		},
	}
}

type agentEndpointChange struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// AskAgentEndpoint asks for the agent to be called elsewhere, or with an empty
// URL nowhere.
func (a *Asks) AskAgentEndpoint(ctx context.Context, edit Editor, site Site, brand BrandID, url, by, channel string) (PendingChange, error) {
	if p := CheckAgentURL(url, site); url != "" && len(p) > 0 {
		return PendingChange{}, p
	}
	now, err := AgentEndpointOf(ctx, a.DB, brand)
	if err != nil && !errors.Is(err, ErrNoAgentEndpoint) {
		return PendingChange{}, err
	}
	c := agentEndpointChange{Before: now.URL, After: url}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeAgentEndpoint, By: by, Channel: channel,
		Diff:    map[string]any{"changed": map[string]Difference{"url": {Before: c.Before, After: c.After}}},
		Payload: c,
	})
}

// AskAgentSecret asks for the endpoint's secret to be replaced.
func (a *Asks) AskAgentSecret(ctx context.Context, edit Editor, brand BrandID, by, channel string) (PendingChange, error) {
	now, err := AgentEndpointOf(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeAgentSecret, By: by, Channel: channel, Diff: map[string]any{"url": now.URL}, Payload: map[string]string{"url": now.URL},
	})
}
