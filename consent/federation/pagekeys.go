package federation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"sync"
	"time"
)

const (
	// keepKeys bounds how long a page's keys are used while fetching them fails.
	keepKeys = 24 * time.Hour
	// cooldown is how often an assertion can make us fetch by naming a key we do
	// not know, and how often a server that fails is tried.
	cooldown   = 10 * time.Second
	largestRSA = 8192 // bits; beyond, one signature costs us milliseconds
)

// pageKeys are the keys of one Brand's login page, kept from login to login. Each
// Brand has its own, even where two name one address: nobody's cooldown is
// another's.
type pageKeys struct {
	client *Client
	uri    string
	used   time.Time // guarded by Client.mu
	keys   memo[[]publicKey]

	mu     sync.Mutex
	forced time.Time // when an assertion last made us fetch
}

func (k *pageKeys) limits() limits {
	return limits{now: k.client.now, base: k.client.life, patience: k.client.patience, life: keysLife, failureLife: cooldown}
}

func (k *pageKeys) fetch(ctx context.Context) ([]publicKey, error) {
	keys, err := k.client.fetchKeys(ctx, k.uri)
	if err != nil {
		return nil, err
	}
	return forAssertions(keys)
}

// usable returns the keys to go by now. While they cannot be fetched the old ones
// go on, for a day at most: otherwise whoever disturbs one fetch would lock the
// Brand's people out.
func (k *pageKeys) usable(ctx context.Context) ([]publicKey, int, error) {
	keys, number, err := k.keys.get(ctx, k.limits(), 0, k.fetch)
	if err == nil {
		return keys, number, nil
	}
	if old, at, since := k.keys.latest(); at > 0 && k.client.now().Sub(since) <= keepKeys {
		return old, at, nil
	}
	return nil, 0, err
}

// beyond returns keys newer than those with the number, in which an assertion's
// key was not found. A fetch for that begins at most once per cooldown, however
// many assertions name however many keys.
func (k *pageKeys) beyond(ctx context.Context, after int) ([]publicKey, bool) {
	if !k.mayAsk(after) {
		return nil, false
	}
	keys, _, err := k.keys.get(ctx, k.limits(), after, k.fetch)
	return keys, err == nil
}

// mayAsk reports whether newer keys are there, on their way, or may be fetched.
func (k *pageKeys) mayAsk(after int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, number, _ := k.keys.latest(); number > after || k.keys.flying() {
		return true
	}
	now := k.client.now()
	if now.Sub(k.forced) < cooldown {
		return false
	}
	k.forced = now
	return true
}

// forAssertions are the keys that ES256 and RS256 may be made with. go-jose would
// verify ES256 with a key of another curve.
func forAssertions(all []publicKey) ([]publicKey, error) {
	var keys []publicKey
	for _, key := range all {
		switch k := key.Key.(type) {
		case *ecdsa.PublicKey:
			if k.Curve == elliptic.P256() {
				keys = append(keys, key)
			}
		case *rsa.PublicKey:
			if k.N.BitLen() <= largestRSA {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return nil, misconfigured("the key set holds no key for ES256 or RS256")
	}
	return keys, nil
}

// pageKey is whose keys, and from where: a page that moved its keys begins anew.
type pageKey struct{ brand, uri string }

func (c *Client) pageKeys(p Page) *pageKeys {
	key, now := pageKey{string(p.Brand), p.JWKSURI}, c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.pages[key]
	if !ok {
		makeRoom(c.pages, now, func(k *pageKeys) time.Time { return k.used })
		k = &pageKeys{client: c, uri: p.JWKSURI}
		c.pages[key] = k
	}
	k.used = now
	return k
}
