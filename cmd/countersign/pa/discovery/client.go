package discovery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxAnswer = 64 << 10
	timeout   = 10 * time.Second
	patience  = time.Minute // with a Brand's agent, which thinks for a while
)

// Client speaks HTTP the careful way. The zero value is ready to use.
type Client struct {
	Transport http.RoundTripper // nil: the default
}

// Answer is what a server said, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get fetches a document that must answer 200.
func (c Client) Get(ctx context.Context, what, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", what, err)
	}
	answer, err := c.do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", what, err)
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("fetch %s: %w", what, StatusError{address, answer.Status})
	}
	return answer.Body, nil
}

// PostForm sends a form, authenticated by a pa-jwt. An error means that no whole
// answer arrived; what the server made of the request is then unknown.
func (c Client) PostForm(ctx context.Context, address, bearer string, form url.Values) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+bearer)
	return c.do(request)
}

// PostMessage sends a message of A2A 1.0, authenticated by a pa-jwt and, if it is
// not empty, under a delegation token (PACT §5.5).
func (c Client) PostMessage(ctx context.Context, address, bearer, delegation string, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", "application/a2a+json")
	request.Header.Set("Authorization", "Bearer "+bearer)
	if delegation != "" {
		request.Header.Set("X-A2A-User-Delegation", "Bearer "+delegation)
	}
	return c.wait(request, patience)
}

func (c Client) do(request *http.Request) (Answer, error) { return c.wait(request, timeout) }

func (c Client) wait(request *http.Request, timeout time.Duration) (Answer, error) {
	request.Header.Set("Accept", "application/json")
	client := http.Client{
		Transport: c.Transport,
		Timeout:   timeout,
		// A redirect would carry the pa-jwt, a code or a refresh token to an
		// address nobody checked.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return Answer{}, RedirectError{From: request.URL.String(), To: response.Header.Get("Location")}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer of %s: %w", request.URL, err)
	}
	if len(body) > maxAnswer {
		return Answer{}, TooLongError{request.URL.String()}
	}
	return Answer{response.StatusCode, response.Header, body}, nil
}

// StatusError says that a document is not to be had.
type StatusError struct {
	From   string
	Status int
}

func (e StatusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.From, e.Status, http.StatusText(e.Status))
}

// RedirectError says that a server wanted to send the agent elsewhere.
type RedirectError struct{ From, To string }

func (e RedirectError) Error() string {
	return fmt.Sprintf("%s redirects to %q; redirects are not followed here, use the final address", e.From, e.To)
}

// TooLongError says that an answer was longer than any honest one.
type TooLongError struct{ From string }

func (e TooLongError) Error() string {
	return fmt.Sprintf("%s answered more than %d KiB", e.From, maxAnswer>>10)
}
