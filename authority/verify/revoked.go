package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of how old what is known of revocations may be.
const (
	// listFresh is how long a status list is gone by without a question. It is
	// what the authority itself asks of verifiers.
	listFresh = 5 * time.Second
	// DefaultStale is how old a list may be where a Config does not say.
	DefaultStale = 30 * time.Second
	// maxLists of one Brand that are kept; each is good for tens of thousands of
	// grants.
	maxLists = 1000
)

// fetchedList is a status list as it was fetched.
type fetchedList struct {
	StatusList
	etag string
	age  time.Duration // when it was fetched
}

// revocations is what is known of delegations that ended.
type revocations struct {
	issuer   string
	keys     *keyring
	client   *http.Client
	now      func() time.Time
	stale    time.Duration
	failOpen bool
	ended    *ended

	mu    sync.Mutex
	lists map[string]*kept[fetchedList]
}

// judge says whether the delegation still stands, and takes off it what the person
// has unticked since. ErrRevoked, ErrSuspended and ErrStatusList refuse it;
// ErrUnavailable says that nobody can tell now.
func (r *revocations) judge(ctx context.Context, d *Delegation) error {
	if !r.ended.narrow(d) {
		return ErrRevoked
	}
	if d.Status == nil {
		if r.failOpen {
			return nil
		}
		return fmt.Errorf("%w: the token names none", ErrStatusList)
	}
	list, err := r.list(d.Status.URI)
	if err != nil {
		return err
	}
	// By this clock a list that get returns is not over, and no verdict is made of the
	// moment in which it ends.
	now := r.now()
	l, _, err := list.get(ctx)
	if err != nil {
		if ctx.Err() != nil || !r.failOpen {
			return fmt.Errorf("%w: status list: %w", ErrUnavailable, err)
		}
		// What was known last is still better than nothing, though it has expired.
		if l, _ = list.last(); l == nil {
			return nil
		}
		if !now.Before(l.Expires) {
			now = l.Expires.Add(-time.Nanosecond)
		}
	}
	return l.judge(*d, now)
}

// list is the one at the address. The token that names it is signed by the
// authority, yet it is fetched from nowhere but there.
func (r *revocations) list(uri string) (*kept[fetchedList], error) {
	if !strings.HasPrefix(uri, r.issuer+"/") {
		return nil, fmt.Errorf("%w: it is not the issuer's", ErrStatusList)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.lists[uri]
	if list == nil {
		if len(r.lists) >= maxLists {
			clear(r.lists) // each comes back with its next use
		}
		fresh := min(listFresh, r.stale)
		list = &kept[fetchedList]{
			policy: policy{
				fresh: fresh, renew: fresh * 4 / 5, most: r.stale,
				pause: 2 * time.Second, patience: lateAfter,
			},
			now:   r.now,
			age:   func(l *fetchedList) time.Duration { return l.age },
			until: func(l *fetchedList) time.Time { return l.Expires },
			fetch: func(ctx context.Context, last *fetchedList) (*fetchedList, error) { return r.fetch(ctx, uri, last) },
		}
		r.lists[uri] = list
	}
	return list, nil
}

func (r *revocations) fetch(ctx context.Context, uri string, last *fetchedList) (*fetchedList, error) {
	etag := ""
	if last != nil && r.now().Before(last.Expires) {
		etag = last.etag
	}
	doc, same, err := get(ctx, r.client, uri, etag, maxStatusList)
	if err != nil {
		return nil, err
	}
	if same {
		return &fetchedList{last.StatusList, last.etag, doc.age}, nil
	}
	l, err := r.parse(ctx, strings.TrimSpace(string(doc.body)))
	if err != nil {
		return nil, err
	}
	if l.URI != uri {
		return nil, fmt.Errorf("%w: it says that it is another one", ErrStatusList)
	}
	return &fetchedList{StatusList: l, etag: doc.etag, age: doc.age}, nil
}

// parse is ParseStatusList with keys that are kept fresh.
func (r *revocations) parse(ctx context.Context, token string) (StatusList, error) {
	e, err := open(token, maxStatusList)
	if err == nil {
		err = e.readHeader(token)
	}
	if err == nil {
		err = tokenType(e.header, statusListType)
	}
	if err == nil {
		err = r.keys.verify(ctx, &e)
	}
	if err != nil {
		return StatusList{}, errors.Join(ErrStatusList, err)
	}
	var unread Report
	return readStatusList(&unread, e.claims, r.now())
}
