package pa

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// Options of a journey. Identity, Card and Sub must be given.
type Options struct {
	Identity   *Identity
	Card       string   // the Brand's interface URL, or its card's
	Sub        string   // which of the agent's users is asking
	Audience   string   // empty: the one stored with the identity
	Scopes     []string // empty: everything on the card
	Details    string   // authorization_details, as JSON (RFC 9396); empty: none
	TokenFile  string   // empty: nothing is stored
	AllowSplit bool     // OAuth URLs may lie on another origin

	// Told along the way; each may be nil.
	Found   func(discovery.Brand)
	Started func(Started)
	Waiting func(Waiting)

	// The world outside; each may be nil for the real one.
	Transport http.RoundTripper
	Now       func() time.Time
	Wait      func(context.Context, time.Duration) error
}

// Login asks a person for a delegation and waits for the answer. It returns the
// tokens after they were stored. A refusal is ErrDenied, silence ErrExpired.
func Login(ctx context.Context, o Options) (Tokens, error) {
	j, err := setOut(ctx, o)
	if err != nil {
		return Tokens{}, err
	}
	scopes, err := wanted(o.Scopes, j.brand.Scopes)
	if err != nil {
		return Tokens{}, err
	}
	var store Store
	if o.TokenFile != "" {
		store = Store{Path: o.TokenFile}
		// Before the person is bothered: an approval that cannot be kept is lost.
		if err := store.Ready(ctx); err != nil {
			return Tokens{}, err
		}
	}
	if o.Found != nil {
		o.Found(j.brand)
	}
	started, err := j.start(ctx, scopes, o.Details)
	if err != nil {
		return Tokens{}, err
	}
	if o.Started != nil {
		o.Started(started)
	}
	if o.Waiting == nil {
		o.Waiting = func(Waiting) {}
	}
	answer, err := j.poll(ctx, started, o.Waiting)
	if err != nil {
		return Tokens{}, err
	}
	tokens, err := j.read(answer.Body, Tokens{Scope: joinScopes(scopes)})
	if err != nil {
		return Tokens{}, err
	}
	tokens.Sub, tokens.Audience, tokens.Split = o.Sub, j.credential.aud, o.AllowSplit
	if o.TokenFile != "" {
		if err := store.Put(ctx, tokens); err != nil {
			return tokens, err
		}
	}
	return tokens, nil
}

// wanted checks a wish against the card, since a Brand refuses the whole request
// for one id it does not know (M10).
func wanted(wish []string, offered []discovery.Scope) ([]string, error) {
	var all []string
	for _, scope := range offered {
		all = append(all, scope.ID)
	}
	if len(wish) == 0 {
		return all, nil
	}
	for _, id := range wish {
		if !slices.Contains(all, id) {
			return nil, fmt.Errorf("%q is not on the Brand's card; it offers: %s", printable(id), printable(joinScopes(all)))
		}
	}
	return wish, nil
}
