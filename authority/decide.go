package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Decision is a person's yes, exactly as given.
type Decision struct {
	Request uuid.UUID
	Subject string   // who is logged in at the Brand
	Ticked  []string // whatever the form said; only what was offered counts
	// SeenVersion is the version of the living grant the page showed, 0 for
	// none. If it moved since, the person has not seen what would change.
	SeenVersion int
	Days        int // how long; one of the Brand's choices
}

// Approve records the person's yes (M20). What is granted is ticked ∩ offered ∩
// still on the card, where offered is what was requested and what the living
// grant of this login holds. The same grant widens or narrows; its end is set
// anew. Nothing ticked is a no: the request is denied, held scopes end, and the
// answer is ErrDenied.
//
// The first decision is final (ErrDecided); a request past its time is
// ErrExpired; a grant that moved since it was shown is ErrChanged.
func (a *Authority) Approve(ctx context.Context, brand *tenants.Brand, d Decision) error {
	if !slices.Contains(brand.GrantDays, d.Days) {
		return fmt.Errorf("%w: %d days is not a choice", ErrChanged, d.Days)
	}
	now := a.clock()
	denied := false
	err := a.db.Tx(ctx, brand.ID, func(tx pgx.Tx) error {
		r, err := lockRequest(ctx, tx, brand.ID, d.Request, now)
		if err != nil {
			return err
		}
		if err := r.open(); err != nil {
			return err
		}
		g, err := lockGrant(ctx, tx, brand.ID, r, d.Subject, now)
		if err != nil {
			return err
		}
		if g.Version != d.SeenVersion {
			return ErrChanged
		}
		granted := intersect(r.Offered, slices.Concat(r.Scopes, g.Scopes), d.Ticked)
		wanted := intersect(d.Ticked, slices.Concat(r.Scopes, g.Scopes))
		if len(granted) == 0 && len(wanted) > 0 {
			return ErrChanged // all that was ticked has left the card: no answer to that
		}
		if len(granted) == 0 {
			denied = true
			return a.refuse(ctx, tx, brand.ID, d, g, now)
		}
		id, err := settle(ctx, tx, brand.ID, r, d, g, granted, now)
		if err != nil {
			return err
		}
		const q = `
			UPDATE device_requests SET state = 'approved', decided_at = @now, grant_id = @grant, user_code_sealed = NULL
			 WHERE brand_id = @brand AND id = @id AND state = 'pending'`
		_, err = tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand.ID, "id": d.Request, "grant": id, "now": now})
		if err != nil {
			return err
		}
		return record(ctx, tx, brand.ID, now, fact{
			actor: "user", event: "request.approved", request: d.Request, grant: id,
			detail: map[string]any{
				"subject": d.Subject, "requested": r.Scopes, "granted": granted, "days": d.Days,
				"another_user_holds_a_grant": r.OtherUser(d.Subject),
			},
		})
	})
	switch {
	case isRefusal(err):
		return err
	case err != nil:
		return fmt.Errorf("approve at %s: %w", brand.ID, err)
	case denied:
		return ErrDenied
	}
	return nil
}

// Deny records the person's no. It changes nothing else: held scopes stay.
func (a *Authority) Deny(ctx context.Context, brand tenants.BrandID, request uuid.UUID, subject string) error {
	now := a.clock()
	err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		if _, err := lockRequest(ctx, tx, brand, request, now); err != nil {
			return err
		}
		return deny(ctx, tx, brand, request, subject, now)
	})
	if err != nil && !isRefusal(err) {
		return fmt.Errorf("deny at %s: %w", brand, err)
	}
	return err
}

func isRefusal(err error) bool {
	for _, refusal := range []error{ErrDecided, ErrExpired, ErrChanged, ErrUnknown, ErrAgentDisabled, ErrPaused, ErrSuspended} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

func deny(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, request uuid.UUID, subject string, now time.Time) error {
	const q = `
		UPDATE device_requests SET state = 'denied', decided_at = @now, user_code_sealed = NULL
		 WHERE brand_id = @brand AND id = @id AND state = 'pending'`
	if _, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": request, "now": now}); err != nil {
		return err
	}
	return record(ctx, tx, brand, now, fact{actor: "user", event: "request.denied", request: request, detail: map[string]any{"subject": subject}})
}

// refuse is a yes with nothing ticked.
func (a *Authority) refuse(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, d Decision, g livingGrant, now time.Time) error {
	if err := deny(ctx, tx, brand, d.Request, d.Subject, now); err != nil {
		return err
	}
	if g.Version == 0 {
		return nil
	}
	_, err := end(ctx, tx, brand, g.ID, "all_unticked", now, "user")
	return err
}

type lockedRequest struct {
	State     string
	Agent     string
	AgentSub  string
	Scopes    []string
	ExpiresAt time.Time
	AgentOn   bool
	BrandOn   bool
	Offered   []string // on the card now
	Holders   []string // Brand users with a living grant for the same (agent, person)
}

func (r lockedRequest) open() error {
	switch {
	case !r.AgentOn:
		return ErrAgentDisabled
	case !r.BrandOn:
		return ErrPaused
	}
	return nil
}

// OtherUser reports whether a Brand user other than subject holds a grant.
func (r lockedRequest) OtherUser(subject string) bool {
	return slices.ContainsFunc(r.Holders, func(s string) bool { return s != subject })
}

// lockRequest takes the request for this decision alone; two tabs that decide
// at once come one after the other, and the second finds it decided (P25).
func lockRequest(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, id uuid.UUID, now time.Time) (lockedRequest, error) {
	const q = `
		SELECT d.state, d.agent, d.agent_sub, d.scopes, d.expires_at,
		       coalesce((SELECT enabled FROM agent_states WHERE issuer = d.agent), false) AS agent_on,
		       (SELECT state = 'active' AND delegation FROM brands WHERE id = @brand) AS brand_on,
		       ARRAY(SELECT s.id FROM brand_scopes s
		              WHERE s.brand_id = @brand AND s.retired_at IS NULL ORDER BY s.position) AS offered,
		       ARRAY(SELECT g.subject FROM grants g
		              WHERE g.brand_id = @brand AND g.agent = d.agent AND g.agent_sub = d.agent_sub
		                AND g.ended_at IS NULL AND g.expires_at > @now) AS holders
		  FROM device_requests d
		 WHERE d.brand_id = @brand AND d.id = @id
		   FOR UPDATE OF d`
	rows, err := tx.Query(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "now": now})
	if err != nil {
		return lockedRequest{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[lockedRequest])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lockedRequest{}, ErrUnknown
	case err != nil:
		return lockedRequest{}, err
	case r.State != "pending":
		return lockedRequest{}, ErrDecided
	case !now.Before(r.ExpiresAt):
		return lockedRequest{}, ErrExpired
	}
	return r, nil
}

type livingGrant struct {
	ID      uuid.UUID `db:"id"`
	Scopes  []string
	Version int // 0: there is none
}

// lockGrant finds the living grant of this login and holds it. One that has
// run out is ended here, so that it makes room for the next.
func lockGrant(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, r lockedRequest, subject string, now time.Time) (livingGrant, error) {
	var suspended bool
	const away = `SELECT EXISTS (SELECT FROM suspended_users WHERE brand_id = @brand AND subject = @subject)`
	if err := tx.QueryRow(ctx, away, pgx.NamedArgs{"brand": brand, "subject": subject}).Scan(&suspended); err != nil {
		return livingGrant{}, err
	}
	if suspended {
		return livingGrant{}, ErrSuspended
	}
	const q = `
		SELECT id, scopes, version, expires_at FROM grants
		 WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub AND subject = @subject AND ended_at IS NULL
		   FOR UPDATE`
	var g livingGrant
	var ends time.Time
	err := tx.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "agent": r.Agent, "sub": r.AgentSub, "subject": subject}).
		Scan(&g.ID, &g.Scopes, &g.Version, &ends)
	if errors.Is(err, pgx.ErrNoRows) {
		return livingGrant{}, nil
	}
	if err != nil {
		return livingGrant{}, err
	}
	if !now.Before(ends) {
		_, err := end(ctx, tx, brand, g.ID, "expired", now, "system")
		return livingGrant{}, err
	}
	return g, nil
}

// settle writes the grant as it is from now on.
func settle(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, r lockedRequest, d Decision, g livingGrant, scopes []string, now time.Time) (uuid.UUID, error) {
	args := pgx.NamedArgs{
		"brand": brand, "id": g.ID, "agent": r.Agent, "sub": r.AgentSub, "subject": d.Subject, "scopes": scopes,
		"now": now, "ends": now.AddDate(0, 0, d.Days),
	}
	if g.Version > 0 {
		const q = `
			UPDATE grants SET scopes = @scopes, expires_at = @ends, version = version + 1
			 WHERE brand_id = @brand AND id = @id AND ended_at IS NULL`
		_, err := tx.Exec(ctx, q, args)
		return g.ID, err
	}
	id := newID()
	args["id"] = id
	// Somebody else's first grant for the same four may be ahead of us by a
	// moment; then this person has not seen it.
	const q = `
		INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at)
		VALUES (@brand, @id, @agent, @sub, @subject, @scopes, @now, @ends)
		ON CONFLICT (brand_id, agent, agent_sub, subject) WHERE ended_at IS NULL DO NOTHING`
	tag, err := tx.Exec(ctx, q, args)
	if err == nil && tag.RowsAffected() == 0 {
		return uuid.Nil, ErrChanged
	}
	return id, err
}

// intersect keeps the ids of the first list that all others hold.
func intersect(first []string, others ...[]string) []string {
	var out []string
	for _, s := range first {
		if !slices.ContainsFunc(others, func(o []string) bool { return !slices.Contains(o, s) }) {
			out = append(out, s)
		}
	}
	return out
}
