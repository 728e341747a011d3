package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// DirectoryConfig is what a Directory needs.
type DirectoryConfig struct {
	Issuer        string // of one of the Provider's Brands, byte for byte
	Credential    string // that Brand's API key, with the right verify
	AllowLoopback bool   // allows an authority on this machine, without TLS
	HTTP          *http.Client
	Now           func() time.Time // nil: time.Now
}

// Directory is an AgentsConfig.Find that asks the authority at {issuer}/agent: who
// may call is kept in one place, where the Brand's people see it. An agent that is
// taken out, or let in again, is known within five seconds; while the authority
// does not answer, or not at once, agents that called lately go on for DefaultStale.
//
// A Brand that lets in any agent sets AgentsConfig.Open instead, and then keeps
// none out: an agent that it denied gets no token, and calls as itself alone.
func Directory(c DirectoryConfig) (func(ctx context.Context, issuer string) (jwksURI string, err error), error) {
	if err := checkURL(c.Issuer, c.AllowLoopback); err != nil {
		return nil, fmt.Errorf("%w: Issuer %q is not a plain https URL", ErrOptions, c.Issuer)
	}
	if c.Credential == "" {
		return nil, fmt.Errorf("%w: Credential must be given", ErrOptions)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.HTTP = steady(c.HTTP)
	d := &directory{DirectoryConfig: c, asking: make(chan struct{}, maxDiscovery), known: map[string]*kept[place]{}}
	return d.find, nil
}

type directory struct {
	DirectoryConfig
	// asking bounds the questions about names that nobody knows, which any caller
	// may make up.
	asking chan struct{}

	mu    sync.Mutex
	known map[string]*kept[place] // by issuer; only agents that the authority has named
}

// place is where an agent's keys are; empty: it may not call.
type place struct{ uri string }

var placePolicy = policy{
	fresh: 5 * time.Second, renew: 4 * time.Second, most: DefaultStale,
	pause: 2 * time.Second, patience: lateAfter,
}

func (d *directory) find(ctx context.Context, issuer string) (string, error) {
	d.mu.Lock()
	k := d.known[issuer]
	d.mu.Unlock()
	if k == nil {
		return d.meet(ctx, issuer)
	}
	p, _, err := k.get(ctx)
	switch {
	case err != nil:
		return "", err
	case p.uri == "":
		return "", ErrUnknownAgent
	}
	return p.uri, nil
}

// meet asks about an agent that was never named. One that is not known is not
// remembered: strangers could make up any number.
func (d *directory) meet(ctx context.Context, issuer string) (string, error) {
	const patience = 300 * time.Millisecond
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case d.asking <- struct{}{}:
		defer func() { <-d.asking }()
	case <-late.C:
		// Nobody waits behind names that somebody makes up.
		return "", errors.New("too many agents are being asked about")
	case <-ctx.Done():
		return "", ctx.Err()
	}
	began := d.Now()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	p, err := d.ask(ctx, issuer)
	switch {
	case err != nil:
		return "", err
	case p.uri == "":
		return "", ErrUnknownAgent
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxAgents {
		for one := range d.known { // any: who calls is asked about again
			delete(d.known, one)
			break
		}
	}
	d.known[issuer] = &kept[place]{
		policy: placePolicy, now: d.Now, value: p, asOf: began, tried: d.Now(),
		fetch: func(ctx context.Context, _ *place) (*place, error) { return d.ask(ctx, issuer) },
	}
	return p.uri, nil
}

func (d *directory) ask(ctx context.Context, issuer string) (*place, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Issuer+"/agent?"+url.Values{"issuer": {issuer}}.Encode(), nil)
	if err != nil {
		return nil, errors.New("not a URL that can be asked")
	}
	r.Header.Set("Authorization", "Bearer "+d.Credential)
	resp, err := d.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for an agent: %w", bare(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask for an agent: %w", bare(err))
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ask for an agent: %w", refused(resp, body))
	}
	var said struct {
		Known   bool   `json:"known"`
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Issuer != issuer || said.Known != (said.JWKSURI != "") {
		return nil, errors.New("ask for an agent: the answer is not what was expected")
	}
	return &place{said.JWKSURI}, nil
}
