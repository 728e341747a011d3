package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Record is a grant as the Brand's admins and the operator see it.
type Record struct {
	Grant
	Suspended bool // its Brand user is: it waits
}

// Living reports whether the grant pays out, its Brand user's suspension aside.
func (r Record) Living(now time.Time) bool { return r.EndedAt == nil && now.Before(r.ExpiresAt) }

// Filter says which grants: all that match every field that is set.
type Filter struct {
	Agent   string
	Subject string
	Scope   string // it holds this one, or did when it ended
	State   State
}

// State is whether a grant lives.
type State string

// The states. A grant whose time is over has ended, whether or not upkeep has
// noted it yet.
const (
	AnyState State = ""
	Living   State = "living"
	Ended    State = "ended"
)

const selectRecord = grantColumns + `,
		       EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = g.brand_id AND u.subject = g.subject) AS suspended
		  FROM grants g
		  LEFT JOIN agent_standing s ON s.brand_id = g.brand_id AND s.issuer = g.agent
		 WHERE g.brand_id = @brand`

// List returns up to limit of the Brand's grants, the newest first, and only
// those older than after, unless that is zero. Ids begin with the time at which
// they were made, so the primary key is the order and a page costs the same
// wherever it begins.
func (a *Authority) List(ctx context.Context, brand tenants.BrandID, f Filter, after uuid.UUID, limit int) ([]Record, error) {
	q := selectRecord
	// Conditions that are not asked for are left out, so that a plan made for
	// all filters at once never serves one.
	for _, c := range []struct {
		set  bool
		text string
	}{
		{after != uuid.Nil, ` AND g.id < @after`},
		{f.Agent != "", ` AND g.agent = @agent`},
		{f.Subject != "", ` AND g.subject = @subject`},
		{f.Scope != "", ` AND @scope = ANY (g.scopes)`},
		{f.State == Living, ` AND g.ended_at IS NULL AND g.expires_at > @now`},
		{f.State == Ended, ` AND (g.ended_at IS NOT NULL OR g.expires_at <= @now)`},
	} {
		if c.set {
			q += c.text
		}
	}
	q += ` ORDER BY g.id DESC LIMIT @limit`
	out, err := tenants.All[Record](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "after": after, "agent": f.Agent, "subject": f.Subject, "scope": f.Scope,
		"now": a.clock(), "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list grants at %s: %w", brand, err)
	}
	return out, nil
}

// Look returns one grant of the Brand, ended ones too; another Brand's or an
// unknown one is ErrUnknown.
func (a *Authority) Look(ctx context.Context, brand tenants.BrandID, id uuid.UUID) (Record, error) {
	const q = selectRecord + ` AND g.id = @id`
	r, err := tenants.One[Record](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "now": a.clock()})
	if errors.Is(err, pgx.ErrNoRows) {
		return Record{}, ErrUnknown
	}
	if err != nil {
		return Record{}, fmt.Errorf("look at grant at %s: %w", brand, err)
	}
	return r, nil
}

// Answered is an answer that a person gave, as an auditor reads it.
type Answered struct {
	ID        uuid.UUID  `db:"id"`
	RequestID *uuid.UUID `db:"request_id"` // nil: changed on My agents
	At        time.Time
	Answer    string // allowed, denied, emptied or continued
	Language  string
	Ticked    []string
	Unticked  []string
	Hash      []byte // of Record; also stands in the trail
	// Record is what was shown, word for word, and what was answered.
	Record json.RawMessage
}

// Answers returns what led to the grant as it is, the oldest first.
func (a *Authority) Answers(ctx context.Context, brand tenants.BrandID, grant uuid.UUID) ([]Answered, error) {
	const q = `
		SELECT id, request_id, at, answer, coalesce(record->>'language', '') AS language,
		       ARRAY(SELECT json_array_elements_text(record->'ticked')) AS ticked,
		       ARRAY(SELECT json_array_elements_text(record->'unticked')) AS unticked, hash, record
		  FROM consents
		 WHERE brand_id = @brand AND grant_id = @grant
		 ORDER BY at, id`
	out, err := tenants.All[Answered](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "grant": grant})
	if err != nil {
		return nil, fmt.Errorf("list consents at %s: %w", brand, err)
	}
	return out, nil
}
