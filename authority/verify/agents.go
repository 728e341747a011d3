package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"countersign.dev/tenants/egress"
)

// KnownAgent is a personal agent that a Brand works with.
type KnownAgent struct {
	Issuer  string // the iss of its pa-jwts, byte for byte
	JWKSURI string // where it publishes its keys
}

// AgentsConfig says which agents may call (M2), and as what they know us.
// Exactly one of Known, Find and Open is given.
type AgentsConfig struct {
	// Audience is what agents name as aud in a pa-jwt: the one string assigned by
	// the Provider that the Brand belongs to (M3).
	Audience string

	// Known are all agents there are.
	Known []KnownAgent
	// Find looks an agent up, at every call, and returns where its keys are. One
	// that is not known is ErrUnknownAgent; any other error is no verdict (503).
	Find func(ctx context.Context, issuer string) (jwksURI string, err error)
	// Open lets in whoever publishes keys through OpenID Connect discovery.
	Open bool

	// AllowLoopback allows agents on this machine, without TLS. For development.
	AllowLoopback bool
	// HTTP fetches agents' keys. nil: a client that connects to port 443 of public
	// addresses and follows no redirect, for strangers name what is fetched.
	HTTP *http.Client
	Now  func() time.Time // nil: time.Now
	Log  *slog.Logger     // hears of fetches that fail; nil: nobody
}

// Bounds of what is remembered, and done at once, for agents that anybody may
// claim to be.
const (
	maxAgents    = 10_000
	maxDiscovery = 8
)

// Agents are the personal agents that may call, each with its keys kept fresh. It
// may be shared by the Verifiers of all Brands of one Provider.
type Agents struct {
	AgentsConfig
	discovering chan struct{}

	mu    sync.Mutex
	rings map[string]*agentKeys
}

type agentKeys struct {
	*keyring
	used   time.Time
	proved bool // a signature has verified: not just a name that somebody made up
}

// NewAgents checks the configuration.
func NewAgents(c AgentsConfig) (*Agents, error) {
	ways := 0
	for _, given := range []bool{len(c.Known) > 0, c.Find != nil, c.Open} {
		if given {
			ways++
		}
	}
	switch {
	case c.Audience == "":
		return nil, fmt.Errorf("%w: Audience, what agents name as aud, must be given", ErrOptions)
	case ways != 1:
		return nil, fmt.Errorf("%w: say with exactly one of Known, Find and Open which agents may call", ErrOptions)
	}
	for _, a := range c.Known {
		if err := checkURL(a.Issuer, c.AllowLoopback); err != nil {
			return nil, fmt.Errorf("%w: issuer %q: %w", ErrOptions, a.Issuer, err)
		}
		if err := egress.CheckURL(a.JWKSURI, c.AllowLoopback); err != nil {
			return nil, fmt.Errorf("%w: keys of %q: %w", ErrOptions, a.Issuer, err)
		}
	}
	if c.HTTP == nil {
		c.HTTP = careful(c.AllowLoopback)
	}
	c.HTTP = steady(c.HTTP)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Known = slices.Clone(c.Known)
	return &Agents{AgentsConfig: c, discovering: make(chan struct{}, maxDiscovery), rings: map[string]*agentKeys{}}, nil
}

// Verify tells who made the pa-jwt (M1 to M6). Errors are those of PAJWT, and
// ErrUnknownAgent, and ErrUnavailable, which is no verdict. What can be refused
// without reaching out is refused first.
func (a *Agents) Verify(ctx context.Context, token string) (Agent, error) {
	e, err := open(token, maxToken)
	if err == nil {
		err = e.readHeader(token)
	}
	if err != nil {
		return Agent{}, err
	}
	var unread Report // for people who look at one token
	said, err := readAgent(&unread, e.claims, a.Audience, a.Now())
	if err != nil {
		return Agent{}, err
	}
	ring, err := a.ring(ctx, said.Issuer)
	if err != nil {
		return Agent{}, err
	}
	switch err := ring.verify(ctx, &e); {
	case errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
		// Its own server fails, and has for a day: who it is cannot be proved.
		return Agent{}, fmt.Errorf("%w: %v", ErrUnknownKey, err)
	case err != nil:
		return Agent{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	ring.proved = true
	return said, nil
}

// ring is the agent's keyring, if it may call at all (M2).
func (a *Agents) ring(ctx context.Context, issuer string) (*agentKeys, error) {
	uri, err := a.uri(ctx, issuer)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	ring := a.rings[issuer]
	// An agent that moved its keys begins anew: what it published at the old place
	// counts no more.
	if ring == nil || ring.uri != uri {
		if len(a.rings) >= maxAgents {
			a.forgetOne()
		}
		where := always(uri)
		if uri == "" {
			where = func(ctx context.Context) (string, error) { return a.discover(ctx, issuer) }
		}
		ring = &agentKeys{keyring: newKeyring(a.HTTP, where, a.Now)}
		ring.uri = uri
		fetch := ring.fetch
		ring.fetch = func(ctx context.Context, last *publishedKeys) (*publishedKeys, error) {
			keys, err := fetch(ctx, last)
			if err != nil {
				a.Log.WarnContext(ctx, "agent's keys cannot be fetched", "agent", issuer, "error", err)
			}
			return keys, err
		}
		a.rings[issuer] = ring
	}
	ring.used = a.Now()
	return ring, nil
}

// uri is where the agent's keys are; empty: to be discovered.
func (a *Agents) uri(ctx context.Context, issuer string) (string, error) {
	switch {
	case a.Open:
		if err := checkURL(issuer, a.AllowLoopback); err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnknownAgent, err)
		}
		return "", nil
	case a.Find != nil:
		uri, err := a.Find(ctx, issuer)
		switch {
		case errors.Is(err, ErrUnknownAgent):
			return "", ErrUnknownAgent
		case err != nil:
			return "", fmt.Errorf("%w: find agent: %w", ErrUnavailable, err)
		case egress.CheckURL(uri, a.AllowLoopback) != nil:
			return "", fmt.Errorf("%w: its keys are at no URL that can be fetched", ErrUnknownAgent)
		}
		return uri, nil
	}
	for _, known := range a.Known {
		if known.Issuer == issuer {
			return known.JWKSURI, nil
		}
	}
	return "", ErrUnknownAgent
}

// forgetOne makes room: first among names that never proved anything, so that
// whoever makes names up pushes out none that call. a.mu is held.
func (a *Agents) forgetOne() {
	var oldest string
	for issuer, ring := range a.rings {
		than, any := a.rings[oldest]
		if !any || ring.proved == than.proved && ring.used.Before(than.used) || than.proved && !ring.proved {
			oldest = issuer
		}
	}
	delete(a.rings, oldest)
}
