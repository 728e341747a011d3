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

// Begin records that the caller asks for scopes at the Brand (RFC 8628 §3.1).
// Scopes must be on the Brand's card and at least one (M10, ErrScope);
// duplicates fold and the order is kept. Too many starts are a *LimitError.
func (a *Authority) Begin(ctx context.Context, brand *tenants.Brand, who Caller, scopes []string) (Started, error) {
	scopes = fold(scopes)
	if len(scopes) == 0 {
		return Started{}, fmt.Errorf("%w: name at least one", ErrScope)
	}
	for _, s := range scopes {
		if _, ok := brand.Scope(s); !ok {
			return Started{}, ErrScope
		}
	}
	deviceCode, err := a.secret("dc_")
	if err != nil {
		return Started{}, err
	}
	// Two live codes of one Brand may never be equal. With 34 bits a clash is
	// rare, and then another is drawn.
	const draws = 8
	for range draws {
		code, err := drawUserCode(a.rand)
		if err != nil {
			return Started{}, err
		}
		id, err := a.begin(ctx, brand, who, scopes, deviceCode, code)
		if errors.Is(err, errCodeTaken) {
			continue
		}
		if err != nil {
			return Started{}, err
		}
		return Started{ID: id, DeviceCode: deviceCode, UserCode: code, ExpiresIn: RequestLife, Interval: PollInterval}, nil
	}
	return Started{}, fmt.Errorf("begin at %s: %d user codes in a row were taken", brand.ID, draws)
}

var errCodeTaken = errors.New("user code is taken")

func (a *Authority) begin(ctx context.Context, brand *tenants.Brand, who Caller, scopes []string, deviceCode string, code UserCode) (uuid.UUID, error) {
	mac, err := a.master.MAC(a.master.Version(), brand.ID, purposeUserCode, []byte(code))
	if err != nil {
		return uuid.Nil, err
	}
	sealed, err := a.master.Seal(ctx, brand.ID, purposeUserCode, []byte(code))
	if err != nil {
		return uuid.Nil, err
	}
	const q = `
		WITH here AS (
			SELECT b.state = 'active' AND b.delegation AS open,
			       coalesce((SELECT enabled FROM agent_states WHERE issuer = @agent), false) AS known,
			       (SELECT count(*) FROM device_requests
			         WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub
			           AND created_at > @since) AS starts,
			       (SELECT count(*) FROM (
			           SELECT 1 FROM device_requests
			            WHERE brand_id = @brand AND agent = @agent AND state = 'pending'
			              AND created_at > @since LIMIT @per_agent) AS pending) AS pending
			  FROM brands b
			 WHERE b.id = @brand
		), made AS (
			INSERT INTO device_requests (brand_id, id, agent, agent_sub, scopes, device_code_hash,
			                             user_code_mac, user_code_sealed, state, created_at, expires_at)
			SELECT @brand, @id, @agent, @sub, @scopes, @hash, @mac, @sealed, 'pending', @now, @expires
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
		"brand": brand.ID, "id": id, "agent": who.Agent, "sub": who.Sub, "scopes": scopes,
		"hash": hash(deviceCode), "mac": mac, "sealed": sealed,
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
