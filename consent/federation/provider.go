package federation

import (
	"context"
	"time"
)

const (
	metadataLife = 10 * time.Minute // how soon a provider's changes are noticed
	keysLife     = 10 * time.Minute // how long a key that the provider withdrew is still believed
	failureLife  = 5 * time.Second  // how long a dead provider is left alone
	callsAtOnce  = 16               // to one provider
	mostKnown    = 10_000
	idle         = time.Hour
)

// providerKey is what the knowledge about a provider depends on. The client's id and
// secret are not part of it: they are sent, not fetched.
type providerKey struct {
	issuer   string
	loopback bool
}

func (c Connection) key() providerKey { return providerKey{c.Issuer, c.AllowLoopbackHTTP} }

// provider is what we know about one, kept from login to login.
type provider struct {
	client *Client
	key    providerKey
	used   time.Time // guarded by Client.mu
	calls  chan struct{}

	described memo[metadata]
	keys      memo[[]publicKey]
}

// provider finds what is known about the connection's provider. Each has its own
// locks and limits, so that one Brand's trouble stays its own.
func (c *Client) provider(conn Connection) *provider {
	key, now := conn.key(), c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.providers[key]
	if !ok {
		makeRoom(c.providers, now, func(p *provider) time.Time { return p.used })
		p = &provider{client: c, key: key, calls: make(chan struct{}, callsAtOnce)}
		c.providers[key] = p
	}
	p.used = now
	return p
}

// makeRoom keeps a Brand that changes its settings all day from filling the memory.
func makeRoom[K comparable, V any](known map[K]V, now time.Time, used func(V) time.Time) {
	if len(known) < mostKnown {
		return
	}
	var last K
	for key, v := range known {
		last = key
		if now.Sub(used(v)) > idle {
			delete(known, key)
		}
	}
	if len(known) >= mostKnown {
		delete(known, last)
	}
}

func (p *provider) metadata(ctx context.Context) (metadata, error) {
	m, _, err := p.described.get(ctx, p.limits(metadataLife), 0, func(ctx context.Context) (metadata, error) {
		return p.client.discover(ctx, p.key)
	})
	return m, err
}

func (p *provider) limits(life time.Duration) limits {
	return limits{now: p.client.now, base: p.client.life, patience: p.client.patience, life: life, failureLife: failureLife}
}

// call reserves one of the provider's places, so that a hanging one cannot collect
// all our connections.
func (p *provider) call(ctx context.Context) (release func(), err error) {
	select {
	case p.calls <- struct{}{}:
		return func() { <-p.calls }, nil
	case <-ctx.Done():
		return nil, unreachable("wait for a place", ctx.Err())
	}
}
