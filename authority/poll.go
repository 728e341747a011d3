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

// leaseTime is how long one poll may take to sign and pay out before another
// may try. It need not survive a crash: the compare-and-set decides.
const leaseTime = 10 * time.Second

// Poll answers an agent that waits (RFC 8628 §3.4). An approved code is paid
// out exactly once under any number of parallel polls (M13), also when polled
// early (M12). A code of another Brand, agent or person is ErrUnknown and
// touches nothing (M11).
func (a *Authority) Poll(ctx context.Context, brand *tenants.Brand, who Caller, deviceCode string) (Tokens, error) {
	// A row that moves between our reading and our writing is read again; each
	// turn means that somebody else got something done.
	const turns = 4
	for range turns {
		tokens, err := a.poll(ctx, brand, who, deviceCode)
		if errors.Is(err, errMoved) {
			continue
		}
		return tokens, err
	}
	return Tokens{}, ErrBusy
}

// errMoved says that the row changed under us: look again.
var errMoved = errors.New("row moved")

// claim is what one look at a device code found, and what it took hold of.
type claim struct {
	ID         uuid.UUID `db:"id"`
	State      string
	Requested  []string
	ExpiresAt  time.Time
	PolledAt   *time.Time
	DecidedAt  *time.Time
	LeasedAt   *time.Time // somebody else's lease, until when
	GrantID    *uuid.UUID `db:"grant_id"`
	Leased     bool       // this poll may pay out
	AgentOn    bool
	BrandOn    bool
	GrantOn    bool
	Suspended  bool
	Subject    *string
	Held       []string
	Details    Details // of the grant
	Version    *int
	GrantEnds  *time.Time
	StatusList *int
	StatusIdx  *int
	Offered    []string // scope ids on the card now, in the Brand's order
}

func (a *Authority) poll(ctx context.Context, brand *tenants.Brand, who Caller, deviceCode string) (Tokens, error) {
	lease := newID()
	now := a.clock()
	waiting, err := a.wait(ctx, brand.ID, who, deviceCode, now)
	if err != nil {
		return Tokens{}, fmt.Errorf("poll at %s: %w", brand.ID, err)
	}
	if waiting {
		return Tokens{}, ErrPending
	}
	c, err := a.claim(ctx, brand.ID, who, deviceCode, lease, now)
	if errors.Is(err, pgx.ErrNoRows) {
		return Tokens{}, a.unknown(ctx, brand.ID, who)
	}
	if err != nil {
		return Tokens{}, fmt.Errorf("poll at %s: %w", brand.ID, err)
	}
	// M14: what holds now, not what held when the person decided.
	switch {
	case !c.AgentOn:
		return Tokens{}, ErrAgentDisabled
	case !c.BrandOn:
		return Tokens{}, ErrPaused
	}
	switch c.State {
	case "denied":
		return Tokens{}, ErrDenied
	case "redeemed":
		return Tokens{}, a.repeated(ctx, brand.ID, who, c, now)
	case "pending":
		return Tokens{}, c.pending(now)
	}
	switch {
	case c.Leased:
		return a.redeem(ctx, brand, who, c, lease)
	case !now.Before(c.redeemableUntil()):
		return Tokens{}, ErrExpired
	case !c.GrantOn:
		return Tokens{}, ErrEnded
	case c.Suspended:
		return Tokens{}, ErrSuspended
	case c.LeasedAt != nil && c.LeasedAt.After(now):
		return Tokens{}, ErrBusy
	}
	return Tokens{}, errMoved
}

func (c claim) redeemableUntil() time.Time {
	if late := c.DecidedAt.Add(redeemAfterApproval); late.After(c.ExpiresAt) {
		return late
	}
	return c.ExpiresAt
}

func (c claim) pending(now time.Time) error {
	early := c.PolledAt != nil && now.Before(c.PolledAt.Add(PollInterval-pollSlack))
	switch {
	case !now.Before(c.ExpiresAt):
		return ErrExpired
	case early:
		return ErrTooSoon
	}
	// On time, yet the interval was not ours: another poll opened it, or the
	// person decided, between our two looks. Never guess slow_down at an agent
	// that keeps the pace.
	return errMoved
}

// unknown is the answer to a code or token that the caller does not have; a
// disabled agent hears that first, as everywhere (M2).
func (a *Authority) unknown(ctx context.Context, brand tenants.BrandID, who Caller) error {
	const q = `SELECT EXISTS (SELECT FROM agent_standing WHERE brand_id = @brand AND issuer = @agent AND enabled)`
	r, err := tenants.One[struct{ Exists bool }](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "agent": who.Agent})
	if err != nil {
		return fmt.Errorf("look up agent: %w", err)
	}
	if !r.Exists {
		return ErrAgentDisabled
	}
	return ErrUnknown
}

// wait is what nearly every poll comes to: the code is pending, and the interval
// is over. It opens the next one. Everything else is for claim to tell apart.
func (a *Authority) wait(ctx context.Context, brand tenants.BrandID, who Caller, deviceCode string, now time.Time) (bool, error) {
	const q = `
		UPDATE device_requests SET polled_at = @now
		 WHERE brand_id = @brand AND device_code_hash = @hash AND agent = @agent AND agent_sub = @sub
		   AND state = 'pending' AND expires_at > @now AND (polled_at IS NULL OR polled_at <= @due)
		   AND (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent)
		   AND (SELECT state = 'active' AND delegation FROM brands WHERE id = @brand)
		RETURNING true AS waiting`
	r, err := tenants.OneRelaxed[struct{ Waiting bool }](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "hash": hash(deviceCode), "agent": who.Agent, "sub": who.Sub,
		"now": now, "due": now.Add(pollSlack - PollInterval),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return r.Waiting, err
}

// claim looks at the code and, in the same statement, takes the lease if it is
// approved. A lease need not survive a crash, so this does not wait for the disk.
func (a *Authority) claim(ctx context.Context, brand tenants.BrandID, who Caller, deviceCode string, lease uuid.UUID, now time.Time) (claim, error) {
	const q = `
		WITH r AS (
			SELECT d.id, d.state, d.scopes, d.expires_at, d.polled_at, d.decided_at, d.lease_until, d.grant_id,
			       g.subject, g.scopes AS held, g.details, g.version, g.expires_at AS grant_ends, g.status_list, g.status_idx,
			       g.ended_at IS NULL AND g.expires_at > @now AS grant_on,
			       EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject) AS suspended,
			       coalesce((SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent), false) AS agent_on,
			       b.state = 'active' AND b.delegation AS brand_on
			  FROM device_requests d
			  JOIN brands b ON b.id = d.brand_id
			  LEFT JOIN grants g ON g.brand_id = d.brand_id AND g.id = d.grant_id
			 WHERE d.brand_id = @brand AND d.device_code_hash = @hash
			   AND d.agent = @agent AND d.agent_sub = @sub AND d.kind = 'device'
		), leased AS (
			UPDATE device_requests d SET lease_id = @lease, lease_until = @until
			  FROM r
			 WHERE d.brand_id = @brand AND d.id = r.id AND r.agent_on AND r.brand_on
			   AND r.grant_on AND NOT r.suspended
			   AND d.state = 'approved' AND (d.lease_until IS NULL OR d.lease_until <= @now)
			   AND (d.expires_at > @now OR d.decided_at > @decided_since)
			RETURNING d.id
		)
		SELECT r.id, r.state, r.scopes AS requested, r.expires_at, r.polled_at, r.decided_at,
		       r.lease_until AS leased_at, r.grant_id,
		       EXISTS (SELECT FROM leased) AS leased,
		       r.agent_on, r.brand_on, coalesce(r.grant_on, false) AS grant_on, r.suspended,
		       r.subject, r.held, r.details, r.version, r.grant_ends, r.status_list, r.status_idx,
		       ARRAY(SELECT s.id FROM brand_scopes s
		              WHERE s.brand_id = @brand AND s.retired_at IS NULL ORDER BY s.position) AS offered
		  FROM r`
	return tenants.OneRelaxed[claim](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "hash": hash(deviceCode), "agent": who.Agent, "sub": who.Sub,
		"now": now, "lease": lease, "until": now.Add(leaseTime),
		"decided_since": now.Add(-redeemAfterApproval),
	})
}

// repeated notes a second redemption. It revokes nothing: a lost answer looks
// exactly the same.
func (a *Authority) repeated(ctx context.Context, brand tenants.BrandID, who Caller, c claim, now time.Time) error {
	if c.PolledAt != nil && now.Before(c.PolledAt.Add(PollInterval-pollSlack)) {
		return ErrRedeemed // one line per interval, or an agent could fill the trail
	}
	err := a.change(ctx, brand, byAgent(who), now, func(ch *change) error {
		const q = `
			UPDATE device_requests SET polled_at = @now
			 WHERE brand_id = @brand AND id = @id AND polled_at IS NOT DISTINCT FROM @before`
		tag, err := ch.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": c.ID, "now": now, "before": c.PolledAt})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		ch.note(fact{event: "request.redeemed_again", request: c.ID, grant: *c.GrantID})
		return nil
	})
	return errors.Join(ErrRedeemed, err)
}

// redeem signs, and pays out if this caller still holds the lease and
// everything still stands.
func (a *Authority) redeem(ctx context.Context, brand *tenants.Brand, who Caller, c claim, lease uuid.UUID) (Tokens, error) {
	scopes := payable(c.Requested, c.Held, c.Offered)
	details := c.Details.Of(scopes...)
	access, err := a.sign(ctx, brand, who, signable{
		grant: *c.GrantID, subject: *c.Subject, scopes: scopes, details: details, grantEnds: *c.GrantEnds,
		status: statusOf(c.StatusList, c.StatusIdx),
	})
	if err != nil {
		return Tokens{}, errors.Join(err, a.release(ctx, brand.ID, c.ID, lease))
	}
	refresh, err := a.secret("rt_")
	if err != nil {
		return Tokens{}, errors.Join(err, a.release(ctx, brand.ID, c.ID, lease))
	}
	won, err := a.payOut(ctx, brand.ID, who, c, lease, refresh)
	if err != nil {
		return Tokens{}, fmt.Errorf("pay out at %s: %w", brand.ID, err)
	}
	if !won {
		// The lease ran out, or the grant moved: what was signed is dropped.
		return Tokens{}, errors.Join(errMoved, a.release(ctx, brand.ID, c.ID, lease))
	}
	return Tokens{Access: access, Refresh: refresh, Scopes: scopes, Details: details, GrantID: *c.GrantID}, nil
}

// payOut is the compare-and-set: only the caller that still holds the lease on
// an approved code, on the very version of the living grant it signed for,
// moves the code to redeemed and founds a refresh family.
func (a *Authority) payOut(ctx context.Context, brand tenants.BrandID, who Caller, c claim, lease uuid.UUID, refresh string) (bool, error) {
	const q = `
		WITH alive AS (
			UPDATE grants g SET last_used_at = @now
			 WHERE g.brand_id = @brand AND g.id = @grant AND g.version = @version
			   AND g.ended_at IS NULL AND g.expires_at > @now
			   AND (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent)
			   AND (SELECT state = 'active' AND delegation FROM brands WHERE id = @brand)
			   AND NOT EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject)
			RETURNING g.id
		), won AS (
			UPDATE device_requests d SET state = 'redeemed', redeemed_at = @now, lease_id = NULL, lease_until = NULL
			  FROM alive
			 WHERE d.brand_id = @brand AND d.id = @id AND d.state = 'approved' AND d.lease_id = @lease
			RETURNING d.id, d.grant_id
		), family AS (
			INSERT INTO refresh_tokens (brand_id, hash, grant_id, family_id, generation, key_version, created_at)
			SELECT @brand, @hash, grant_id, @family, 0, @key_version, @now FROM won
		), noted AS (
			INSERT INTO audit_events (brand_id, at, actor, actor_id, channel, event, request_id, grant_id, trace)
			SELECT @brand, @now, 'agent', @agent, 'oauth', 'request.redeemed', id, grant_id, @trace FROM won
		)
		SELECT count(*) AS n FROM won`
	r, err := tenants.One[struct{ N int }](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "grant": c.GrantID, "version": *c.Version, "agent": who.Agent, "now": a.clock(),
		"id": c.ID, "lease": lease, "hash": hash(refresh), "family": newID(), "key_version": a.master.Version(),
		"trace": a.trace(ctx),
	})
	return r.N == 1, err
}

// release gives the code back at once, so that the next poll pays out.
func (a *Authority) release(ctx context.Context, brand tenants.BrandID, id, lease uuid.UUID) error {
	const q = `
		UPDATE device_requests SET lease_id = NULL, lease_until = NULL
		 WHERE brand_id = @brand AND id = @id AND state = 'approved' AND lease_id = @lease`
	// The caller may be gone already; the code must be free all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if _, err := a.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "lease": lease}); err != nil {
		return fmt.Errorf("release code at %s: %w", brand, err)
	}
	return nil
}

// payable is what a token may say: the living grant's scopes that are still on
// the card; the requested ones first, in requested order, then the others in
// the card's (M15).
func payable(requested, held, offered []string) []string {
	var out []string
	for _, s := range requested {
		if slices.Contains(held, s) && slices.Contains(offered, s) {
			out = append(out, s)
		}
	}
	for _, s := range offered {
		if slices.Contains(held, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
