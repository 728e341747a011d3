package pa

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Revoke ends the delegation at the Brand (RFC 7009) and forgets the tokens. It
// forgets them only after the Brand has agreed, so that it can be tried again.
func Revoke(ctx context.Context, which Which, o Options) (Tokens, error) {
	store := Store{Path: o.TokenFile}
	var tokens Tokens
	err := store.locked(ctx, func() error {
		var err error
		if tokens, err = store.Find(which); err != nil {
			return err
		}
		if err := revoke(ctx, tokens, o); err != nil {
			return err
		}
		return store.remove(tokens)
	})
	return tokens, err
}

func revoke(ctx context.Context, t Tokens, o Options) error {
	j, err := returnTo(ctx, t, o)
	if err != nil {
		return err
	}
	if j.brand.RevocationEndpoint == "" {
		return errors.New("this Brand lets agents end nothing; the person can, on the Brand's page of agents")
	}
	token, hint := t.RefreshToken, "refresh_token"
	if token == "" {
		token, hint = t.AccessToken, "access_token"
	}
	answer, err := j.post(ctx, j.brand.RevocationEndpoint, url.Values{
		"token": {string(token)}, "token_type_hint": {hint},
	})
	if err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("revoke: %w", refusal(answer))
	}
	return nil
}
