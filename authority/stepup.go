package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// StepUp is what a Brand's server asks for in the middle of a conversation: the
// permissions that an agent lacks for what it was told to do.
type StepUp struct {
	Who    Caller // as the pa-jwt proved that the agent sent
	Token  []byte // payload of the delegation token sent beside it, its signature verified; nil: none
	Scopes []string
	Reason string // the Brand's words for the person; they decide nothing
}

// SteppedUp is what is missing and where the person can allow it.
type SteppedUp struct {
	Missing   []string // in the order asked; never nil
	UserCode  UserCode // empty: nothing is missing, so there is nothing to open
	ExpiresIn time.Duration
}

// StepUp records that the Brand asks in the agent's name for more. Nobody polls
// for such a request: approving it widens the grant that the agent holds, and
// the agent's next refresh or redemption carries the union (M22).
//
// With a token the request is for that token's Brand user alone, and what its
// grant holds already is not asked for again. Without one, whoever logs in
// selects the grant; nobody can say yet what that one holds, so nothing drops.
//
// While a request of the same agent and person for the same Brand user and
// scopes is pending, its code is given again, on whatever instance; the reason
// the person reads is then still the first one. Scopes not on the card, or
// none, are ErrScope; a token that is worth nothing, or not this agent's for
// this person (M18), is ErrToken; too many requests are a *LimitError, on the
// same count as those of Begin.
func (a *Authority) StepUp(ctx context.Context, brand *tenants.Brand, s StepUp) (SteppedUp, error) {
	scopes, err := onCard(brand, s.Scopes)
	if err != nil {
		return SteppedUp{}, err
	}
	if brand.State != tenants.Active || !brand.Delegation {
		return SteppedUp{}, ErrPaused // or its tokens would look bad
	}
	p := proposal{StepUp: s}
	p.Scopes = scopes
	if s.Token != nil {
		st, err := a.Standing(ctx, brand, s.Token)
		switch {
		case errors.Is(err, ErrEnded):
			// A disabled agent hears that first, as everywhere.
			if err := a.unknown(ctx, brand.ID, s.Who); !errors.Is(err, ErrUnknown) {
				return SteppedUp{}, err
			}
			return SteppedUp{}, ErrToken
		case err != nil:
			return SteppedUp{}, err
		case st.Agent != s.Who.Agent: // M18
			return SteppedUp{}, ErrToken
		}
		p.grant, p.expected = &st.GrantID, &st.Subject
	}
	var out offer
	err = a.withCode(ctx, brand.ID, func(code freshCode) error {
		out, err = a.propose(ctx, brand.ID, p, code)
		return err
	})
	switch {
	case err != nil:
		return SteppedUp{}, err
	case len(out.missing) == 0:
		return SteppedUp{Missing: []string{}}, nil
	}
	code, err := a.master.Open(ctx, brand.ID, purposeUserCode, out.sealed)
	if err != nil {
		return SteppedUp{}, fmt.Errorf("open user code at %s: %w", brand.ID, err)
	}
	return SteppedUp{Missing: out.missing, UserCode: UserCode(code), ExpiresIn: out.left}, nil
}

// proposal is a step-up and whom it is for.
type proposal struct {
	StepUp
	grant    *uuid.UUID // the token's; nil: none came
	expected *string
}

// offer is the request that stands for a proposal.
type offer struct {
	missing []string
	sealed  []byte // its user code
	left    time.Duration
}

// propose finds the pending request or makes it. errCodeTaken: draw another.
func (a *Authority) propose(ctx context.Context, brand tenants.BrandID, p proposal, code freshCode) (offer, error) {
	now := a.clock()
	var out offer
	err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		// One at a time for the same agent and person, or two calls at once
		// would each find nothing and make a request of their own.
		const lock = `
			SELECT pg_advisory_xact_lock(hashtextextended(
			       jsonb_build_array('step-up', @brand::text, @agent::text, @sub::text)::text, 0))`
		if _, err := tx.Exec(ctx, lock, pgx.NamedArgs{"brand": brand, "agent": p.Who.Agent, "sub": p.Who.Sub}); err != nil {
			return err
		}
		held, modest, err := p.look(ctx, tx, brand, now)
		if err != nil {
			return err
		}
		if out.missing = without(p.Scopes, held); len(out.missing) == 0 {
			return nil
		}
		var ends time.Time
		out.sealed, ends, err = p.pending(ctx, tx, brand, out.missing, now)
		switch {
		case err == nil:
			out.left = ends.Sub(now)
			return nil
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		case !modest:
			return &LimitError{What: "device requests", RetryAfter: time.Minute}
		}
		out.sealed, out.left = code.sealed, RequestLife
		return p.insert(ctx, tx, brand, out.missing, code, now)
	})
	limit := new(LimitError)
	switch {
	case err == nil, errors.As(err, &limit):
		return out, err
	case errors.Is(err, errCodeTaken), errors.Is(err, ErrToken), isRefusal(err):
		return offer{}, err
	default:
		return offer{}, fmt.Errorf("step up at %s: %w", brand, err)
	}
}

// look returns what the token's grant holds, and whether there is room for one
// more request.
func (p proposal) look(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, now time.Time) (held []string, modest bool, err error) {
	const q = startable + `
		SELECT open, known, starts < @per_person AND pending < @per_agent AS modest, g.id IS NOT NULL AS alive, g.scopes AS held
		  FROM here
		  LEFT JOIN grants g ON g.brand_id = @brand AND g.id = @grant AND g.agent_sub = @sub
		                    AND g.subject = @expected AND g.ended_at IS NULL AND g.expires_at > @now`
	type row struct {
		Open, Known, Modest, Alive bool
		Held                       []string
	}
	rows, err := tx.Query(ctx, q, pgx.NamedArgs{
		"brand": brand, "agent": p.Who.Agent, "sub": p.Who.Sub, "grant": p.grant, "expected": p.expected,
		"now": now, "since": now.Add(-RequestLife), "per_person": startsPerPerson, "per_agent": pendingPerAgent,
	})
	if err != nil {
		return nil, false, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	switch {
	case err != nil:
		return nil, false, err
	case !r.Known:
		return nil, false, ErrAgentDisabled
	case !r.Open:
		return nil, false, ErrPaused
	case p.grant != nil && !r.Alive:
		// The token is another person's of the same agent, or its grant has
		// ended this moment.
		return nil, false, ErrToken
	}
	return r.Held, r.Modest, nil
}

// pending is the user code and the end of the request that asks for the same;
// pgx.ErrNoRows: there is none.
func (p proposal) pending(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, missing []string, now time.Time) (sealed []byte, ends time.Time, err error) {
	const q = `
		SELECT user_code_sealed, expires_at FROM device_requests
		 WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub AND kind = 'stepup'
		   AND state = 'pending' AND expires_at > @now
		   AND expected_subject IS NOT DISTINCT FROM @expected
		   AND scopes @> @missing AND scopes <@ @missing
		 ORDER BY created_at DESC LIMIT 1`
	err = tx.QueryRow(ctx, q, pgx.NamedArgs{
		"brand": brand, "agent": p.Who.Agent, "sub": p.Who.Sub, "expected": p.expected, "missing": missing, "now": now,
	}).Scan(&sealed, &ends)
	return sealed, ends, err
}

func (p proposal) insert(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, missing []string, code freshCode, now time.Time) error {
	const q = `
		INSERT INTO device_requests (brand_id, id, kind, agent, agent_sub, scopes, expected_subject, reason,
		                             user_code_mac, user_code_sealed, state, created_at, expires_at)
		VALUES (@brand, @id, 'stepup', @agent, @sub, @scopes, @expected, @reason,
		        @mac, @sealed, 'pending', @now, @expires)
		ON CONFLICT DO NOTHING`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{
		"brand": brand, "id": newID(), "agent": p.Who.Agent, "sub": p.Who.Sub, "scopes": missing,
		"expected": p.expected, "reason": p.Reason, "mac": code.mac, "sealed": code.sealed,
		"now": now, "expires": now.Add(RequestLife),
	})
	if err == nil && tag.RowsAffected() == 0 {
		return errCodeTaken
	}
	return err
}
