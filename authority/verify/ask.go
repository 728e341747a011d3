package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// ErrCredential says that the Brand's own API key is not good, or lacks the right
// for what was asked.
var ErrCredential = errors.New("the Brand's credential is not good for this")

// maxAnswer bounds what the authority answers.
const maxAnswer = 256 << 10

// RefusedError is the authority's answer to something the Brand asked, other than
// yes. It is also, by errors.Is, what follows for the caller: ErrCaller, ErrToken,
// ErrScope, ErrCredential, ErrUnavailable or ErrWaiting.
type RefusedError struct {
	Status      int
	Code        string        // error of RFC 6749 §5.2; empty: none was said
	Description string        // for a developer
	RetryAfter  time.Duration // 0: not said
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the authority answered %d %s: %s", e.Status, e.Code, e.Description)
}

// Is implements errors.Is.
func (e *RefusedError) Is(target error) bool {
	switch {
	case e.Status == http.StatusAccepted:
		return target == ErrWaiting || target == ErrUnavailable
	case e.Code == "invalid_pa_jwt":
		return target == ErrCaller
	case e.Status == http.StatusBadRequest && e.Code == "invalid_token":
		return target == ErrToken
	case e.Code == "invalid_scope":
		return target == ErrScope
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return target == ErrCredential
	case e.Status == http.StatusTooManyRequests, e.Status >= http.StatusInternalServerError:
		return target == ErrUnavailable
	}
	return false
}

// ask posts JSON to the authority with the Brand's credential and reads its answer.
func (v *Verifier) ask(ctx context.Context, endpoint string, body, into any) error {
	return v.askAtLength(ctx, endpoint, body, into, maxAnswer)
}

// askAtLength is ask where the answer may have so many bytes.
func (v *Verifier) askAtLength(ctx context.Context, endpoint string, body, into any, most int) error {
	if v.credential == "" {
		return fmt.Errorf("%w: Credential must be given", ErrOptions)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", endpoint, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.issuer+endpoint, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("ask %s: %w", endpoint, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+v.credential)
	resp, err := v.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask %s: %w: %w", endpoint, ErrUnavailable, bare(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil || len(answer) > most {
		return fmt.Errorf("ask %s: %w: no whole answer", endpoint, ErrUnavailable)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("ask %s: %w", endpoint, refused(resp, answer))
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("ask %s: the answer is not what was expected: %w", endpoint, err)
	}
	return nil
}

func refused(resp *http.Response, answer []byte) *RefusedError {
	var said struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(answer, &said) // a proxy between may answer with a page
	e := &RefusedError{Status: resp.StatusCode, Code: said.Code, Description: said.Description}
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
