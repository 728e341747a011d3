package signing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"countersign.dev/tenants"
)

// AskNext asks an owner for a next key, which then takes its turn by itself. Where
// one is published it is ErrNextExists.
func (k *Keys) AskNext(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, brand tenants.BrandID, by, channel string) (tenants.PendingChange, error) {
	keys, err := k.List(ctx, brand)
	if err != nil {
		return tenants.PendingChange{}, err
	}
	if find(keys, "next") != nil {
		return tenants.PendingChange{}, ErrNextExists
	}
	current := ""
	if c := find(keys, "current"); c != nil {
		current = c.KID
	}
	return asks.Ask(ctx, edit, brand, tenants.Ask{
		Kind: tenants.ChangeSigningNext, By: by, Channel: channel,
		Diff: map[string]any{"after": map[string]any{"follows": current}}, Payload: asked{current},
	})
}

// AskRetire asks an owner to take a next key back. Of any other key it is the
// reason why not.
func (k *Keys) AskRetire(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, brand tenants.BrandID, kid, by, channel string) (tenants.PendingChange, error) {
	keys, err := k.List(ctx, brand)
	if err != nil {
		return tenants.PendingChange{}, err
	}
	i := slices.IndexFunc(keys, func(known KeyInfo) bool { return known.KID == kid })
	switch {
	case i < 0:
		return tenants.PendingChange{}, ErrNoKey
	case keys[i].State == "current":
		return tenants.PendingChange{}, ErrInUse
	case keys[i].State != "next":
		return tenants.PendingChange{}, ErrNoNext
	}
	return asks.Ask(ctx, edit, brand, tenants.Ask{
		Kind: tenants.ChangeSigningRetire, By: by, Channel: channel,
		Diff: map[string]any{"before": map[string]any{"key": kid}}, Payload: asked{kid},
	})
}

// asked is the key that a change is about: the one that is to be followed, or to
// be taken back.
type asked struct {
	KID string `json:"kid"`
}

// Appliers make true what an owner was asked for, in the name in which k notes it.
// policy is how the Brand's keys are meant to be, then.
func Appliers(k *Keys, policy func(context.Context, tenants.BrandID) (Policy, error)) map[string]tenants.Applier {
	of := func(do func(ctx context.Context, brand tenants.BrandID, kid string) error) tenants.Applier {
		return func(ctx context.Context, _ tenants.Editor, brand tenants.BrandID, payload []byte) (string, error) {
			var a asked
			if err := json.Unmarshal(payload, &a); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return "", do(ctx, brand, a.KID)
		}
	}
	return map[string]tenants.Applier{
		tenants.ChangeSigningNext: of(func(ctx context.Context, brand tenants.BrandID, after string) error {
			keys, err := k.List(ctx, brand)
			if err != nil {
				return err
			}
			// The key has changed meanwhile: what was wished for has happened.
			if c := find(keys, "current"); c != nil && c.KID != after {
				return tenants.ErrChangeStale
			}
			p, err := policy(ctx, brand)
			if err != nil {
				return err
			}
			_, err = k.Prepare(ctx, brand, p.Backend, p.Alg)
			return err
		}),
		tenants.ChangeSigningRetire: of(k.Retire),
	}
}
