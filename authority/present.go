package authority

import (
	"context"
	"errors"

	"countersign.dev/tenants"
)

// Present says what a call is worth that an agent makes at the Brand's own
// interface, at this very moment. who is proved by the pa-jwt; payload is that of
// the delegation token beside it, its signature verified, or nil where it came
// without one: then the agent is let in as itself, and Standing is empty.
//
// ErrAgentDisabled: not an agent that this Brand works with. ErrToken: the token
// is worth nothing, or was given to another agent or for another of its users
// (M18). ErrPaused: the Brand is, and good tokens would look bad. Whoever is let in
// costs one round trip.
func (a *Authority) Present(ctx context.Context, brand *tenants.Brand, who Caller, payload []byte) (Standing, error) {
	if brand.State != tenants.Active || !brand.Delegation {
		return Standing{}, ErrPaused
	}
	if payload == nil {
		if err := a.unknown(ctx, brand.ID, who); !errors.Is(err, ErrUnknown) {
			return Standing{}, err
		}
		return Standing{}, nil
	}
	s, err := a.Standing(ctx, brand, payload)
	switch {
	case errors.Is(err, ErrEnded):
		// A disabled agent hears that first, as everywhere.
		if err := a.unknown(ctx, brand.ID, who); !errors.Is(err, ErrUnknown) {
			return Standing{}, err
		}
		return Standing{}, ErrToken
	case err != nil:
		return Standing{}, err
	case s.Agent != who.Agent, s.AgentSub != who.Sub: // M18
		return Standing{}, ErrToken
	}
	return s, nil
}
