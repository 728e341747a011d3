package pa

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// nearlyOver is when a token is no longer worth handing out.
const nearlyOver = 60 * time.Second

// Current returns the stored token, refreshed when less than a minute of it is
// left.
func Current(ctx context.Context, which Which, o Options) (Tokens, error) {
	return renew(ctx, which, o, func(t Tokens, now time.Time) bool {
		return t.ExpiresAt.Sub(now) < nearlyOver
	})
}

// Refresh returns a new token whatever is left of the stored one.
func Refresh(ctx context.Context, which Which, o Options) (Tokens, error) {
	return renew(ctx, which, o, func(Tokens, time.Time) bool { return true })
}

// renew holds the lock from reading the old refresh token until its successor is
// stored. A second process waits, and then finds the successor. When the reply
// is lost the old one is still there, and the authority gives the same successor
// again (M16).
func renew(ctx context.Context, which Which, o Options, due func(Tokens, time.Time) bool) (Tokens, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	store := Store{Path: o.TokenFile}
	var tokens Tokens
	err := store.locked(ctx, func() error {
		var err error
		if tokens, err = store.Find(which); err != nil || !due(tokens, o.Now()) {
			return err
		}
		if tokens.RefreshToken == "" {
			return fmt.Errorf("%w: it cannot be refreshed", ErrEnded)
		}
		if tokens, err = refresh(ctx, tokens, o); err != nil {
			return err
		}
		return store.put(tokens)
	})
	if err != nil {
		return Tokens{}, err
	}
	return tokens, nil
}

func refresh(ctx context.Context, old Tokens, o Options) (Tokens, error) {
	j, err := returnTo(ctx, old, o)
	if err != nil {
		return Tokens{}, err
	}
	answer, err := j.post(ctx, j.brand.TokenEndpoint, url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {string(old.RefreshToken)},
		"client_id":     {o.Identity.Issuer},
	})
	if err != nil {
		return Tokens{}, fmt.Errorf("refresh: %w", err)
	}
	if answer.Status != http.StatusOK {
		r := refusal(answer)
		if r.Code == "invalid_grant" {
			return Tokens{}, fmt.Errorf("refresh: %w: %w", ErrEnded, r)
		}
		return Tokens{}, fmt.Errorf("refresh: %w", r)
	}
	return j.read(answer.Body, old)
}

// returnTo finds the Brand of a stored token again. A refresh token goes only to
// the issuer that gave it, whatever the card says today.
func returnTo(ctx context.Context, t Tokens, o Options) (*journey, error) {
	o.Card, o.Sub, o.AllowSplit = t.Card, t.Sub, o.AllowSplit || t.Split
	if o.Audience == "" {
		o.Audience = t.Audience
	}
	j, err := setOut(ctx, o)
	if err != nil {
		return nil, err
	}
	if j.brand.Issuer != t.Issuer {
		return nil, fmt.Errorf("%w: the Brand's issuer was %q and is now %q; log in again", ErrEnded, t.Issuer, j.brand.Issuer)
	}
	return j, nil
}
