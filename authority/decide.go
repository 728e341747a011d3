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

// Decision is a person's answer, exactly as given.
type Decision struct {
	Request uuid.UUID
	Subject string   // who is logged in at the Brand
	Ticked  []string // whatever the form said; only what was offered counts
	// SeenVersion is the version of the living grant the page showed, 0 for
	// none. If it moved since, the person has not seen what would change.
	SeenVersion int
	Days        int // how long; one of the Brand's choices
	// Seen is what the page said; it is kept, to be shown to an auditor.
	Seen Seen
}

// Approve records the person's yes (M20). What is granted is ticked ∩ offered ∩
// still on the card, where offered is what was requested and what the living
// grant of this login holds. The same grant widens or narrows; its end is set
// anew. Nothing ticked is a no: the request is denied, held scopes end, and the
// answer is ErrDenied.
//
// The first decision is final (ErrDecided); a request past its time is
// ErrExpired; a grant that moved since it was shown is ErrChanged; a step-up
// that another Brand user was meant to answer is ErrWrongUser.
func (a *Authority) Approve(ctx context.Context, brand *tenants.Brand, d Decision) error {
	if !slices.Contains(brand.GrantDays, d.Days) {
		return fmt.Errorf("%w: %d days is not a choice", ErrChanged, d.Days)
	}
	now := a.clock()
	denied := false
	vouched := false
	err := a.change(ctx, brand.ID, ByUser(d.Subject), now, func(c *change) error {
		r, g, err := lockBoth(ctx, c, d)
		if err != nil {
			return err
		}
		granted := intersect(r.Offered, slices.Concat(r.Scopes, g.Scopes), d.Ticked)
		wanted := intersect(d.Ticked, slices.Concat(r.Scopes, g.Scopes))
		if len(granted) == 0 && len(wanted) > 0 {
			return ErrChanged // all that was ticked has left the card: no answer to that
		}
		if len(granted) == 0 {
			denied = true
			return c.refuse(ctx, d, g)
		}
		details := merge(g.Details, r.Details, granted)
		if len(details) > 0 && !fit(brand, r.Agent, d.Subject, granted, details) {
			return ErrChanged // two requests at once, each of which had room: tick less
		}
		id, err := c.settle(ctx, r, d, g, granted, details)
		if err != nil {
			return err
		}
		seen, err := c.keepSeen(ctx, d, "allowed", id)
		if err != nil {
			return err
		}
		vouched = r.Reused
		return c.answer(ctx, d, "approved", id, map[string]any{
			"requested": r.Scopes, "granted": granted, "days": d.Days, "consent": seen.id, "consent_hash": seen.hash,
			"another_user_holds_a_grant": r.OtherUser(d.Subject), "kind": r.Kind, "after_reuse": r.Reused,
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
	if vouched {
		a.count.falseAlarms.Inc()
	}
	return nil
}

// lockBoth takes the request and the living grant it would change, if this
// person may answer it now.
func lockBoth(ctx context.Context, c *change, d Decision) (lockedRequest, livingGrant, error) {
	r, err := lockRequest(ctx, c, d)
	if err != nil {
		return lockedRequest{}, livingGrant{}, err
	}
	if err := r.open(); err != nil {
		return lockedRequest{}, livingGrant{}, err
	}
	g, err := lockGrant(ctx, c, r, d.Subject)
	if err == nil && g.Version != d.SeenVersion {
		err = ErrChanged
	}
	return r, g, err
}

// answer decides the request and notes it.
func (c *change) answer(ctx context.Context, d Decision, state string, grant uuid.UUID, detail map[string]any) error {
	const q = `
		UPDATE device_requests SET state = @state, decided_at = @now, user_code_sealed = NULL,
		       grant_id = nullif(@grant, '00000000-0000-0000-0000-000000000000'::uuid)
		 WHERE brand_id = @brand AND id = @id AND state = 'pending'`
	_, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": c.brand, "id": d.Request, "state": state, "grant": grant, "now": c.now})
	if err != nil {
		return err
	}
	c.note(fact{event: "request." + state, request: d.Request, grant: grant, detail: detail})
	return nil
}

// Deny records the person's no. It changes nothing else: held scopes stay.
func (a *Authority) Deny(ctx context.Context, brand tenants.BrandID, d Decision) error {
	err := a.change(ctx, brand, ByUser(d.Subject), a.clock(), func(c *change) error {
		if _, err := lockRequest(ctx, c, d); err != nil {
			return err
		}
		return c.deny(ctx, d, "denied", uuid.Nil)
	})
	if err != nil && !isRefusal(err) {
		return fmt.Errorf("deny at %s: %w", brand, err)
	}
	return err
}

func (c *change) deny(ctx context.Context, d Decision, how string, grant uuid.UUID) error {
	seen, err := c.keepSeen(ctx, d, how, grant)
	if err != nil {
		return err
	}
	return c.answer(ctx, d, "denied", uuid.Nil, map[string]any{"consent": seen.id, "consent_hash": seen.hash})
}

func isRefusal(err error) bool {
	for _, refusal := range []error{ErrDecided, ErrExpired, ErrChanged, ErrUnknown, ErrAgentDisabled, ErrPaused, ErrSuspended, ErrWrongUser} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// refuse is a yes with nothing ticked.
func (c *change) refuse(ctx context.Context, d Decision, g livingGrant) error {
	if g.Version == 0 {
		return c.deny(ctx, d, "denied", uuid.Nil)
	}
	if err := c.deny(ctx, d, "emptied", g.ID); err != nil {
		return err
	}
	_, err := c.end(ctx, []uuid.UUID{g.ID}, "all_unticked")
	return err
}

type lockedRequest struct {
	Kind      string
	Expected  *string // the Brand user that a step-up is for; nil: whoever logs in
	State     string
	Agent     string
	AgentSub  string
	Scopes    []string
	Details   Details
	ExpiresAt time.Time
	AgentOn   bool
	BrandOn   bool
	Offered   []string // on the card now
	Holders   []string // Brand users with a living grant for the same (agent, person)
	// Reused: the last grant of these four ended a short while ago because a
	// spent refresh token came back. Whoever approves again says it was no theft.
	Reused bool
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
func lockRequest(ctx context.Context, c *change, d Decision) (lockedRequest, error) {
	const q = `
		SELECT d.kind, d.expected_subject AS expected, d.state, d.agent, d.agent_sub, d.scopes, d.details, d.expires_at,
		       coalesce((SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = d.agent), false) AS agent_on,
		       (SELECT state = 'active' AND delegation FROM brands WHERE id = @brand) AS brand_on,
		       ARRAY(SELECT s.id FROM brand_scopes s
		              WHERE s.brand_id = @brand AND s.retired_at IS NULL ORDER BY s.position) AS offered,
		       ARRAY(SELECT g.subject FROM grants g
		              WHERE g.brand_id = @brand AND g.agent = d.agent AND g.agent_sub = d.agent_sub
		                AND g.ended_at IS NULL AND g.expires_at > @now) AS holders,
		       coalesce((SELECT g.end_reason = 'reuse_detected' AND g.ended_at > @lately FROM grants g
		                  WHERE g.brand_id = @brand AND g.agent = d.agent AND g.agent_sub = d.agent_sub
		                    AND g.subject = @subject
		                  ORDER BY g.created_at DESC LIMIT 1), false) AS reused
		  FROM device_requests d
		 WHERE d.brand_id = @brand AND d.id = @id
		   FOR UPDATE OF d`
	const lately = 24 * time.Hour
	rows, err := c.Query(ctx, q, pgx.NamedArgs{
		"brand": c.brand, "id": d.Request, "subject": d.Subject, "now": c.now, "lately": c.now.Add(-lately),
	})
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
	case !c.now.Before(r.ExpiresAt):
		return lockedRequest{}, ErrExpired
	case r.Expected != nil && *r.Expected != d.Subject:
		return lockedRequest{}, ErrWrongUser
	}
	return r, nil
}

type livingGrant struct {
	ID        uuid.UUID `db:"id"`
	Scopes    []string
	Details   Details
	Version   int // 0: there is none
	ExpiresAt time.Time
}

// lockGrant finds the living grant of this login and holds it. One that has
// run out is ended here, so that it makes room for the next.
func lockGrant(ctx context.Context, c *change, r lockedRequest, subject string) (livingGrant, error) {
	var suspended bool
	const away = `SELECT EXISTS (SELECT FROM suspended_users WHERE brand_id = @brand AND subject = @subject)`
	if err := c.QueryRow(ctx, away, pgx.NamedArgs{"brand": c.brand, "subject": subject}).Scan(&suspended); err != nil {
		return livingGrant{}, err
	}
	if suspended {
		return livingGrant{}, ErrSuspended
	}
	const q = `
		SELECT id, scopes, details, version, expires_at FROM grants
		 WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub AND subject = @subject AND ended_at IS NULL
		   FOR UPDATE`
	var g livingGrant
	err := c.QueryRow(ctx, q, pgx.NamedArgs{"brand": c.brand, "agent": r.Agent, "sub": r.AgentSub, "subject": subject}).
		Scan(&g.ID, &g.Scopes, &g.Details, &g.Version, &g.ExpiresAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return livingGrant{}, nil
	}
	if err != nil {
		return livingGrant{}, err
	}
	if !c.now.Before(g.ExpiresAt) {
		_, err := c.endBy(ctx, ByUpkeep(), []uuid.UUID{g.ID}, "expired")
		return livingGrant{}, err
	}
	return g, nil
}

// settle writes the grant as it is from now on.
func (c *change) settle(ctx context.Context, r lockedRequest, d Decision, g livingGrant, scopes []string, details Details) (uuid.UUID, error) {
	ends := c.now.AddDate(0, 0, d.Days)
	if g.Version > 0 {
		return g.ID, c.rewrite(ctx, g, rewriting{
			agent: r.Agent, subject: d.Subject, scopes: scopes, details: details, ends: ends, request: d.Request, seen: d.Seen.digests(scopes),
		})
	}
	// No grant is born into a Brand that is being closed or paused: whoever does
	// that waits for us, or we for them (and closing then ends what there is).
	const open = `SELECT state = 'active' AND delegation FROM brands WHERE id = @brand FOR SHARE`
	var on bool
	if err := c.QueryRow(ctx, open, pgx.NamedArgs{"brand": c.brand}).Scan(&on); err != nil {
		return uuid.Nil, err
	}
	if !on {
		return uuid.Nil, ErrPaused
	}
	id := newID()
	// Somebody else's first grant for the same four may be ahead of us by a
	// moment; then this person has not seen it.
	const q = `
		INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, details, created_at, expires_at, seen)
		VALUES (@brand, @id, @agent, @sub, @subject, @scopes, @details::jsonb, @now, @ends, @seen)
		ON CONFLICT (brand_id, agent, agent_sub, subject) WHERE ended_at IS NULL DO NOTHING`
	tag, err := c.Exec(ctx, q, pgx.NamedArgs{
		"brand": c.brand, "id": id, "agent": r.Agent, "sub": r.AgentSub, "subject": d.Subject, "scopes": scopes, "details": details,
		"now": c.now, "ends": ends, "seen": d.Seen.digests(scopes),
	})
	if err != nil {
		return uuid.Nil, err
	}
	if tag.RowsAffected() == 0 {
		return uuid.Nil, ErrChanged
	}
	c.fresh = append(c.fresh, id)
	c.note(fact{event: "grant.created", request: d.Request, grant: id, detail: told(EventData{
		Agent: r.Agent, Subject: d.Subject, Scopes: scopes, Until: ends,
	}), values: details.Values()})
	return id, nil
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
