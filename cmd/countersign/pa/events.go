package pa

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// The lines of login --json: one JSON object each, "started" first, one of
// "approved", "denied", "expired" and "error" last. Programs read them, so members are
// added but never renamed. Tokens are written out: that is what was asked for.
type (
	startedEvent struct {
		Event                   string `json:"event"`
		VerificationURI         string `json:"verification_uri"`
		VerificationURIComplete string `json:"verification_uri_complete"`
		UserCode                string `json:"user_code"`
		ExpiresIn               int64  `json:"expires_in"`
		Interval                int64  `json:"interval"`
	}
	pendingEvent struct {
		Event string `json:"event"`
		Next  int64  `json:"next"` // seconds until the next poll
		Error string `json:"error,omitempty"`
	}
	tokenEvent struct {
		Event        string `json:"event"`
		AccessToken  Secret `json:"access_token"`
		RefreshToken Secret `json:"refresh_token,omitempty"`
		Scope        string `json:"scope"`
		ExpiresIn    int64  `json:"expires_in"`
		GrantID      string `json:"grant_id,omitempty"`
		Interface    string `json:"interface"`
		Issuer       string `json:"issuer"`
		Sub          string `json:"sub"`
		TokenFile    string `json:"token_file"`
	}
	failedEvent struct {
		Event       string `json:"event"`
		Error       string `json:"error"`
		Description string `json:"error_description,omitempty"`
	}
)

func loginForPrograms(ctx context.Context, out io.Writer, o Options) error {
	lines := json.NewEncoder(out) // one write per line, nothing held back
	lines.SetEscapeHTML(false)    // links stay readable
	o.Started = func(s Started) {
		lines.Encode(startedEvent{
			"started", s.VerificationURI, s.VerificationURIComplete, s.UserCode,
			int64(s.ExpiresIn / time.Second), int64(s.Interval / time.Second),
		})
	}
	o.Waiting = func(w Waiting) {
		e := pendingEvent{Event: "pending", Next: int64(w.Next / time.Second)}
		switch {
		case w.Slow:
			e.Error = "slow_down"
		case w.Err != nil:
			e.Error = w.Err.Error()
		}
		lines.Encode(e)
	}
	tokens, err := Login(ctx, o)
	if err != nil {
		lines.Encode(failed(err))
		return err
	}
	return lines.Encode(tokenLine("approved", tokens, o))
}

func tokenLine(event string, t Tokens, o Options) tokenEvent {
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	return tokenEvent{
		event, t.AccessToken, t.RefreshToken, t.Scope, int64(t.ExpiresAt.Sub(now()).Round(time.Second) / time.Second),
		t.GrantID, t.Interface, t.Issuer, t.Sub, o.TokenFile,
	}
}

func failed(err error) failedEvent {
	e := failedEvent{Event: "error", Error: "failed", Description: err.Error()}
	var r Refusal
	if errors.As(err, &r) && r.Code != "" {
		e.Error, e.Description = r.Code, r.Description
	}
	switch {
	case errors.Is(err, ErrDenied):
		e.Event, e.Error = "denied", "access_denied"
	case errors.Is(err, ErrExpired):
		e.Event, e.Error = "expired", "expired_token"
	}
	return e
}
