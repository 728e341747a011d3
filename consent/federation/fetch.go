package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// largest is far above any honest discovery document or key set.
const largest = 512 << 10

// getJSON reads one document of the provider's. The errors are built here and not
// passed on, since libraries like to quote the whole answer in theirs.
func (c *Client) getJSON(ctx context.Context, what, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return misconfigured(what + " has no usable address")
	}
	r.Header.Set("Accept", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return unreachable("fetch "+what, err)
	}
	defer response.Body.Close()
	if err := statusError(what, response.StatusCode); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, largest+1))
	if err != nil {
		return unreachable("read "+what, err)
	}
	if len(text) > largest {
		return misconfigured(what + " is too large")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return misconfigured(what + " is not the JSON it should be")
	}
	return nil
}

// status asks for a page and looks at nothing but how it answers.
func (c *Client) status(ctx context.Context, address string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, misconfigured("the page has no usable address")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return 0, unreachable("ask the page", err)
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

func statusError(what string, status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return fmt.Errorf("%w: %s answers %d", ErrUnreachable, what, status)
	default:
		return misconfigured(fmt.Sprintf("%s answers %d", what, status))
	}
}

// unreachable says which step failed. The address that net/http puts into its errors
// is left out: it is known from the connection, and a token endpoint's may hold a key.
func unreachable(step string, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, step, err)
}
