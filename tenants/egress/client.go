package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Defaults of Config.
const (
	DefaultTimeout  = 5 * time.Second
	DefaultMaxBytes = 64 << 10
	// Enough for every login of a busy Brand, and few enough that a host which
	// hangs cannot hold all our sockets.
	DefaultConnsPerHost = 64
)

// Unbounded as Config.ConnsPerHost is for who bounds calls by something else than
// their host: whoever else is there would wait for those that hang.
const Unbounded = -1

// Config says how far a Client may go. The zero value is right for production.
type Config struct {
	// AllowLoopback opens loopback addresses, on any port and without TLS. For
	// development only.
	AllowLoopback bool
	// Timeout bounds one whole exchange, body included; DefaultTimeout if 0.
	Timeout time.Duration
	// MaxBytes bounds the body of an answer; DefaultMaxBytes if 0.
	MaxBytes int64
	// ConnsPerHost bounds the connections to one host, beyond which requests wait;
	// DefaultConnsPerHost if 0, or Unbounded.
	ConnsPerHost int
	// UserAgent is sent where a request names none.
	UserAgent string
}

// Client fetches what others name. It may be used by many goroutines at once.
type Client struct {
	http          *http.Client
	allowLoopback bool
}

// New makes a Client.
func New(c Config) *Client {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.ConnsPerHost == 0 {
		c.ConnsPerHost = DefaultConnsPerHost
	}
	b := &bounded{
		secure:        transport(c, dialPublic),
		allowLoopback: c.AllowLoopback,
		timeout:       c.Timeout,
		maxBytes:      c.MaxBytes,
		userAgent:     c.UserAgent,
	}
	if c.AllowLoopback {
		b.secure = transport(c, dialEither)
		// A transport of its own, so that what goes without TLS stays on this
		// machine even if localhost resolves to something else.
		b.plain = transport(c, dialLoopback)
	}
	return &Client{http: &http.Client{Transport: b}, allowLoopback: c.AllowLoopback}
}

// HTTP is for libraries that bring their own requests: every one of them is
// bounded as the package promises. A redirect is an error, and reading past
// MaxBytes is ErrTooLarge.
func (c *Client) HTTP() *http.Client { return c.http }

// GetJSON fetches the JSON document at raw. An answer other than 200 is
// ErrStatus. The error names the host and no more of the URL, which may hold
// something secret.
func (c *Client) GetJSON(ctx context.Context, raw string) ([]byte, error) {
	if err := CheckURL(raw, c.allowLoopback); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, raw, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it does not parse", ErrForbiddenURL)
	}
	r.Header.Set("Accept", "application/json")
	body, err := c.read(r)
	if err != nil {
		return nil, fmt.Errorf("fetch from %s: %w", r.URL.Host, err)
	}
	return body, nil
}

func (c *Client) read(r *http.Request) ([]byte, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		// http.Client puts the whole URL in front.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			return nil, outer.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w %d", ErrStatus, resp.StatusCode)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, ErrNotJSON
	}
	return body, nil
}
