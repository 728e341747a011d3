package pa

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// Started is a device flow that waits for its person.
type Started struct {
	VerificationURI         string
	VerificationURIComplete string // may be empty (RFC 8628 §3.2)
	UserCode                string
	ExpiresIn               time.Duration
	Interval                time.Duration

	deviceCode Secret
}

// start asks for a delegation (RFC 8628 §3.1).
func (j *journey) start(ctx context.Context, scopes []string, details string) (Started, error) {
	form := url.Values{
		"client_id": {j.identity.Issuer},
		"scope":     {strings.Join(scopes, " ")},
	}
	if details != "" {
		form.Set("authorization_details", details)
	}
	answer, err := j.post(ctx, j.brand.DeviceEndpoint, form)
	if err != nil {
		return Started{}, fmt.Errorf("ask for a delegation: %w", err)
	}
	if answer.Status != http.StatusOK {
		return Started{}, fmt.Errorf("ask for a delegation: %w", refusal(answer))
	}
	started, err := readStarted(answer.Body)
	if err != nil {
		return Started{}, fmt.Errorf("ask for a delegation: %w", err)
	}
	return started, nil
}

// readStarted is strict about what a person will be shown and sent to.
func readStarted(body []byte) (Started, error) {
	var answer struct {
		DeviceCode string `json:"device_code"`
		UserCode   string `json:"user_code"`
		URI        string `json:"verification_uri"`
		Complete   string `json:"verification_uri_complete"`
		ExpiresIn  int64  `json:"expires_in"`
		Interval   int64  `json:"interval"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Started{}, fmt.Errorf("%w: %v", ErrBadAnswer, err)
	}
	if answer.DeviceCode == "" || answer.UserCode == "" {
		return Started{}, fmt.Errorf("%w: no device_code or no user_code", ErrBadAnswer)
	}
	if answer.UserCode != printable(answer.UserCode) || len(answer.UserCode) > 64 {
		return Started{}, fmt.Errorf("%w: the user_code cannot be shown", ErrBadAnswer)
	}
	if _, err := discovery.Address("verification_uri", answer.URI); err != nil {
		return Started{}, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	if answer.Complete != "" {
		if _, err := discovery.Address("verification_uri_complete", answer.Complete); err != nil {
			return Started{}, fmt.Errorf("%w: %w", ErrBadAnswer, err)
		}
	}
	if answer.Interval <= 0 {
		answer.Interval = 5 // RFC 8628 §3.2: the default; a zero must not make us spin
	}
	if answer.ExpiresIn <= 0 || answer.ExpiresIn > 86400 || answer.Interval > answer.ExpiresIn {
		return Started{}, fmt.Errorf("%w: expires_in %d with interval %d", ErrBadAnswer, answer.ExpiresIn, answer.Interval)
	}
	return Started{
		VerificationURI: answer.URI, VerificationURIComplete: answer.Complete, UserCode: answer.UserCode,
		ExpiresIn:  time.Duration(answer.ExpiresIn) * time.Second,
		Interval:   time.Duration(answer.Interval) * time.Second,
		deviceCode: Secret(answer.DeviceCode),
	}, nil
}
