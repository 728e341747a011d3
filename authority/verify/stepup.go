package verify

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// StepUp is what the person would have to allow, and where.
type StepUp struct {
	// Missing are scopes that the grant does not hold; none: the agent has only to
	// fetch a new token, by refreshing the one it has.
	Missing []string `json:"pact.missingScopes"`
	// Link is for the person, in a browser; empty: there is nothing to allow.
	Link string `json:"pact.verificationUriComplete"`
	// ExpiresIn is how long the link is good.
	ExpiresIn time.Duration `json:"-"`

	// Seconds is ExpiresIn as it came.
	Seconds int64 `json:"expires_in"`
}

// Metadata goes into the task in TASK_STATE_AUTH_REQUIRED that the agent is
// answered with (M22): at least one missing scope, and a link or none, never null.
// Where nothing is missing there is no such task, and Metadata is nil.
func (s StepUp) Metadata() map[string]any {
	if len(s.Missing) == 0 {
		return nil
	}
	m := map[string]any{"pact.missingScopes": s.Missing}
	if s.Link != "" {
		m["pact.verificationUriComplete"] = s.Link
	}
	return m
}

// StepUp asks the authority for a link with which the person allows more, in the
// middle of a conversation (right stepup). The reason, at most 300 characters, is
// shown as the Brand's words. Whatever the answer, the call at hand stays as it is:
// the agent comes again with a new token.
//
// Errors are *RefusedError; ErrUnavailable means that the same may work later. Then
// Metadata of StepUp{Missing: scopes} still tells the agent what to ask for itself.
func (v *Verifier) StepUp(ctx context.Context, c Call, reason string, scopes ...string) (StepUp, error) {
	if c.paJWT == "" {
		return StepUp{}, fmt.Errorf("%w: the call must come from Call or CallFrom", ErrOptions)
	}
	if len(scopes) == 0 {
		return StepUp{}, fmt.Errorf("%w: name what is missing", ErrScope)
	}
	body := struct {
		PAJWT  string   `json:"pa_jwt"`
		Token  string   `json:"delegation_token,omitempty"`
		Scopes []string `json:"scopes"`
		Reason string   `json:"reason,omitempty"`
	}{c.paJWT, c.token, scopes, reason}
	var s StepUp
	if err := v.ask(ctx, "/stepup", body, &s); err != nil {
		return StepUp{}, err
	}
	if (len(s.Missing) == 0) != (s.Link == "") {
		return StepUp{}, errors.New("ask /stepup: the answer is not what was expected: missing scopes and no link, or the other way about")
	}
	s.ExpiresIn = time.Duration(s.Seconds) * time.Second
	return s, nil
}
