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

// How long things live and how often they may happen.
const (
	// RequestLife is how long a person has to decide (RFC 8628 expires_in).
	RequestLife = 10 * time.Minute
	// PollInterval is what agents are told to wait between polls. It never
	// grows: real clients do not lengthen theirs.
	PollInterval = 5 * time.Second
	// pollSlack forgives a poll that the network carried a little faster.
	pollSlack = time.Second
	// redeemAfterApproval keeps an approval worth something even when it came
	// in the last second of the request's life.
	redeemAfterApproval = time.Minute

	// startsPerPerson limits one (agent, person) at one Brand per RequestLife,
	startsPerPerson = 30
	// pendingPerAgent limits what one agent can pile up at one Brand.
	pendingPerAgent = 5000
)

// Purposes of keys derived from the master secret.
const (
	purposeUserCode = "user-code"
	purposeRefresh  = "refresh-successor"
)

// Started is a device request as the agent hears of it.
type Started struct {
	ID         uuid.UUID
	DeviceCode string
	UserCode   UserCode
	ExpiresIn  time.Duration
	Interval   time.Duration
}

// Wish is what an agent asks for.
type Wish struct {
	Scopes []string
	// Details is the parameter authorization_details as it came (RFC 9396 §3);
	// nil: it did not.
	Details *string
}

// Begin is BeginWith for scopes alone.
func (a *Authority) Begin(ctx context.Context, brand *tenants.Brand, who Caller, scopes []string) (Started, error) {
	return a.BeginWith(ctx, brand, who, Wish{Scopes: scopes})
}

// BeginWith records what the caller asks for at the Brand (RFC 8628 §3.1).
// Scopes must be on the Brand's card and at least one (M10, ErrScope);
// duplicates fold and the order is kept. Details must be of the Brand's types and
// belong to those scopes, or it is a *DetailsError. Too many starts are a
// *LimitError.
func (a *Authority) BeginWith(ctx context.Context, brand *tenants.Brand, who Caller, wish Wish) (Started, error) {
	scopes, err := onCard(brand, wish.Scopes)
	if err != nil {
		return Started{}, err
	}
	details := Details{}
	if wish.Details != nil {
		if details, err = readDetails(brand, scopes, *wish.Details); err != nil {
			return Started{}, err
		}
		if err := a.room(ctx, brand, who, scopes, details); err != nil {
			return Started{}, err
		}
	}
	deviceCode, err := a.secret("dc_")
	if err != nil {
		return Started{}, err
	}
	started := Started{DeviceCode: deviceCode, ExpiresIn: RequestLife, Interval: PollInterval}
	err = a.withCode(ctx, brand.ID, func(code freshCode) error {
		started.UserCode = code.code
		started.ID, err = a.begin(ctx, brand, who, scopes, details, deviceCode, code)
		return err
	})
	if err != nil {
		return Started{}, err
	}
	return started, nil
}

// onCard folds the scopes. None at all, or one that is not on the card, is
// ErrScope.
func onCard(brand *tenants.Brand, scopes []string) ([]string, error) {
	scopes = fold(scopes)
	if len(scopes) == 0 {
		return nil, fmt.Errorf("%w: name at least one", ErrScope)
	}
	for _, s := range scopes {
		if _, ok := brand.Scope(s); !ok {
			return nil, ErrScope
		}
	}
	return scopes, nil
}

// freshCode is a user code just drawn, and how it rests in the database.
type freshCode struct {
	code        UserCode
	mac, sealed []byte
}

// withCode hands keep one user code after the other until it takes one. Two
// live codes of one Brand may never be equal: with 34 bits a clash is rare, and
// then another is drawn.
func (a *Authority) withCode(ctx context.Context, brand tenants.BrandID, keep func(freshCode) error) error {
	const draws = 8
	for range draws {
		code, err := drawUserCode(a.rand)
		if err != nil {
			return err
		}
		mac, err := a.master.MAC(a.master.Version(), brand, purposeUserCode, []byte(code))
		if err != nil {
			return err
		}
		sealed, err := a.master.Seal(ctx, brand, purposeUserCode, []byte(code))
		if err != nil {
			return err
		}
		if err := keep(freshCode{code, mac, sealed}); !errors.Is(err, errCodeTaken) {
			return err
		}
	}
	return fmt.Errorf("begin at %s: %d user codes in a row were taken", brand, draws)
}

var errCodeTaken = errors.New("user code is taken")

// startable is whether the agent may begin something here, and how much it has
// begun: here is the beginning of a statement that goes on from it.
const startable = `
		WITH here AS (
			SELECT b.state = 'active' AND b.delegation AS open,
			       coalesce((SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent), false) AS known,
			       (SELECT count(*) FROM device_requests
			         WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub
			           AND created_at > @since) AS starts,
			       (SELECT count(*) FROM (
			           SELECT 1 FROM device_requests
			            WHERE brand_id = @brand AND agent = @agent AND state = 'pending'
			              AND created_at > @since LIMIT @per_agent) AS pending) AS pending
			  FROM brands b
			 WHERE b.id = @brand
		)`

func (a *Authority) begin(ctx context.Context, brand *tenants.Brand, who Caller, scopes []string, details Details, deviceCode string, code freshCode) (uuid.UUID, error) {
	const q = startable + `, made AS (
			INSERT INTO device_requests (brand_id, id, agent, agent_sub, scopes, details, device_code_hash,
			                             user_code_mac, user_code_sealed, state, created_at, expires_at)
			SELECT @brand, @id, @agent, @sub, @scopes, @details::jsonb, @hash, @mac, @sealed, 'pending', @now, @expires
			  FROM here
			 WHERE open AND known AND starts < @per_person AND pending < @per_agent
			ON CONFLICT DO NOTHING
			RETURNING id
		)
		SELECT open, known, starts < @per_person AND pending < @per_agent AS modest,
		       EXISTS (SELECT FROM made) AS made
		  FROM here`
	now := a.clock()
	id := newID()
	type row struct{ Open, Known, Modest, Made bool }
	r, err := tenants.One[row](ctx, a.db, brand.ID, q, pgx.NamedArgs{
		"brand": brand.ID, "id": id, "agent": who.Agent, "sub": who.Sub, "scopes": scopes, "details": details,
		"hash": hash(deviceCode), "mac": code.mac, "sealed": code.sealed,
		"now": now, "expires": now.Add(RequestLife), "since": now.Add(-RequestLife),
		"per_person": startsPerPerson, "per_agent": pendingPerAgent,
	})
	switch {
	case err != nil:
		return uuid.Nil, fmt.Errorf("begin at %s: %w", brand.ID, err)
	case !r.Known:
		return uuid.Nil, ErrAgentDisabled
	case !r.Open:
		return uuid.Nil, ErrPaused
	case !r.Modest:
		return uuid.Nil, &LimitError{What: "device requests", RetryAfter: time.Minute}
	case !r.Made:
		return uuid.Nil, errCodeTaken
	}
	return id, nil
}

// fold drops repeated ids and keeps the order.
func fold(scopes []string) []string {
	var out []string
	for _, s := range scopes {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
