package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"countersign.dev/authority/events"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"github.com/google/uuid"
)

const (
	// Patience bounds one call of a Brand's agent, its whole answer included: a
	// language model thinks for a while.
	Patience = 45 * time.Second
	// maxAnswer bounds what the agent may answer with, in bytes.
	maxAnswer = 256 << 10
)

// Turn is what a Brand's agent is told of one turn. Neither the pa-jwt nor the
// delegation token is in it: with either, it could speak in another's name.
type Turn struct {
	Type      string    `json:"type"`   // turn, or test: nobody said anything
	CallID    string    `json:"callId"` // the Webhook-Id too: unique, also where a message is heard again
	Timestamp time.Time `json:"timestamp"`
	Brand     string    `json:"brand"`
	ContextID string    `json:"contextId"`
	MessageID string    `json:"messageId"`
	Text      string    `json:"text"`
	Agent     Speaker   `json:"agent"`
	// User is the Brand's user in whose name the agent speaks; nil: it has no
	// permission of anybody's.
	User   *User    `json:"user,omitempty"`
	Scopes []string `json:"scopes"` // what it may use of that user's account
	// Details bound some of the scopes (RFC 9396 §2), as the person read and allowed
	// them; absent: nothing is said more exactly.
	Details []json.RawMessage `json:"authorizationDetails,omitempty"`
}

// Speaker is the personal agent that speaks.
type Speaker struct {
	Issuer string `json:"issuer"`
	Host   string `json:"host"` // of the issuer, as its key has proved
	Sub    string `json:"sub"`  // its own name for the person
}

// User is a Brand user that a delegation token names.
type User struct {
	Sub     string `json:"sub"` // the id that the Brand itself gave
	GrantID string `json:"grantId"`
}

// Why a Brand's agent has no answer. Their texts are for the Brand and hold
// nothing of what came back.
var (
	// errUnsent: not a byte has reached it.
	errUnsent = errors.New("the agent could not be reached")
	// errSpent: it was called, and may have acted.
	errSpent = errors.New("the agent gave no good answer")
)

// Caller calls Brands' agents. Safe for concurrent use.
type Caller struct {
	places   *tenants.AgentPlaces
	http     *http.Client
	now      func() time.Time
	patience time.Duration
}

// CallerConfig is what a Caller needs.
type CallerConfig struct {
	Places *tenants.AgentPlaces
	// AllowLoopback lets agents be on this machine, for development only.
	AllowLoopback bool
	Now           func() time.Time
	Patience      time.Duration // Patience if 0
}

// NewCaller returns a Caller.
func NewCaller(c CallerConfig) *Caller {
	if c.Patience == 0 {
		c.Patience = Patience
	}
	return &Caller{
		places: c.Places, now: c.Now, patience: c.Patience,
		http: egress.New(egress.Config{
			AllowLoopback: c.AllowLoopback, Timeout: c.Patience, MaxBytes: maxAnswer, UserAgent: "Countersign-A2A",
			// A Provider has the agents of many Brands on one host: callsPerBrand bounds
			// them, each by itself.
			ConnsPerHost: egress.Unbounded,
		}).HTTP(),
	}
}

// call sends the turn, once, and reads the answer. An error is errUnsent,
// errSpent, or the secret could not be had.
func (c *Caller) call(ctx context.Context, brand tenants.BrandID, t Turn) (Answer, error) {
	place, err := c.places.Place(ctx, brand)
	if errors.Is(err, tenants.ErrNoAgentEndpoint) {
		return Answer{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	if err != nil {
		return Answer{}, err
	}
	id := uuid.Must(uuid.NewV7())
	t.CallID, t.Timestamp, t.Brand = id.String(), c.now().UTC(), string(brand)
	if t.Scopes == nil {
		t.Scopes = []string{}
	}
	body, err := json.Marshal(t)
	if err != nil {
		return Answer{}, fmt.Errorf("write a turn: %w", err)
	}
	// Once there is a connection bytes may be on their way. net/http itself tries
	// a POST again only where not one was.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, place.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: its URL does not parse", errUnsent)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	events.Sign(r.Header, place.Keys, id, c.now(), body)
	answer, err := c.exchange(r)
	switch {
	case err == nil:
		return answer, nil
	case !connected.Load():
		return Answer{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	return Answer{}, fmt.Errorf("%w: %w", errSpent, err)
}

func (c *Caller) exchange(r *http.Request) (Answer, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		return Answer{}, plain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Answer{}, fmt.Errorf("%w %d", egress.ErrStatus, resp.StatusCode)
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return Answer{}, errors.New("its answer is not application/json")
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, plain(err)
	}
	return ParseAnswer(body)
}

// plain leaves out the URL, which may hold something secret, and says our own
// deadline as what it is.
func plain(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return egress.ErrTimeout
	}
	return err
}

// Try sends the Brand's agent a signed call of type test, in nobody's name, and
// says what came back.
func (c *Caller) Try(ctx context.Context, brand tenants.BrandID) (tenants.AgentTried, error) {
	// Somebody waits for a page.
	const patience = 8 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := c.now()
	answer, err := c.call(ctx, brand, Turn{
		Type: "test", ContextID: uuid.NewString(), MessageID: uuid.NewString(), Text: "Hello! This is a test.",
		Agent: Speaker{Issuer: "https://test.invalid", Host: "test.invalid", Sub: "test"},
	})
	out := tenants.AgentTried{Took: c.now().Sub(began)}
	switch {
	case errors.Is(err, tenants.ErrNoAgentEndpoint):
		return tenants.AgentTried{}, tenants.ErrNoAgentEndpoint
	case errors.Is(err, errUnsent), errors.Is(err, errSpent):
		out.Wrong = err.Error()
	case err != nil:
		return tenants.AgentTried{}, err
	case len(answer.ScopesUsed) > 0:
		out.Wrong = "the agent says that it used permissions, but the test gave it none"
	}
	out.Text = answer.Text
	return out, nil
}
