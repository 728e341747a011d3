package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// keyPolicy is how keys are kept: a key that its owner removes is refused five
// minutes later at most, and an owner whose server fails has a day to mend it.
var keyPolicy = policy{
	fresh: 5 * time.Minute, renew: 4 * time.Minute, most: 24 * time.Hour,
	pause: 10 * time.Second, cooldown: 10 * time.Second, patience: lateAfter,
}

// publishedKeys are keys as they were fetched.
type publishedKeys struct {
	Keys
	etag string
}

// keyring is what somebody publishes to verify with, kept fresh.
type keyring struct {
	kept[publishedKeys]
	uri string // empty: found anew at every fetch
}

// newKeyring keeps what stands at the address that where returns.
func newKeyring(client *http.Client, where func(context.Context) (string, error), now func() time.Time) *keyring {
	r := &keyring{}
	r.policy, r.now = keyPolicy, now
	r.fetch = func(ctx context.Context, last *publishedKeys) (*publishedKeys, error) {
		uri, err := where(ctx)
		if err != nil {
			return nil, err
		}
		etag := ""
		if last != nil {
			etag = last.etag
		}
		doc, same, err := get(ctx, client, uri, etag, maxKeySet)
		if err != nil {
			return nil, err
		}
		if same {
			return last, nil
		}
		keys, _, err := parseKeys(doc.body)
		if err != nil {
			return nil, err
		}
		return &publishedKeys{Keys: keys, etag: doc.etag}, nil
	}
	return r
}

// always is an address that is known.
func always(uri string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return uri, nil }
}

// verify checks the signature, with keys fetched anew if none that we know made
// it. A refusal is one of those in errors.go; ErrUnavailable is no verdict.
func (r *keyring) verify(ctx context.Context, e *envelope) error {
	keys, _, err := r.get(ctx)
	if err != nil {
		return fmt.Errorf("%w: keys: %w", ErrUnavailable, err)
	}
	for {
		err := e.verifyBy(keys.Keys)
		// Without a kid the key may be one that we have not fetched yet.
		if err == nil || e.kid != "" && !errors.Is(err, ErrUnknownKey) {
			return err
		}
		if keys = r.beyond(ctx, keys); keys == nil {
			return err
		}
	}
}

// verifyBy finds the key among these that made the signature.
func (e *envelope) verifyBy(keys Keys) error {
	candidates, err := keys.candidates(e.kid, e.alg)
	if err != nil {
		return err
	}
	return e.verifyWith(candidates)
}
