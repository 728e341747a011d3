package pa

import (
	"context"
	"errors"
	"net/url"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// journey is one agent talking to one Brand for one of its users.
type journey struct {
	brand      discovery.Brand
	client     discovery.Client
	identity   *Identity
	credential *credential
	now        func() time.Time
	wait       func(context.Context, time.Duration) error
}

// signError keeps a failure of our own from being taken for the network's.
type signError struct{ error }

func (e signError) Unwrap() error { return e.error }

// post sends a form as this agent.
func (j *journey) post(ctx context.Context, endpoint string, form url.Values) (discovery.Answer, error) {
	bearer, err := j.credential.bearer()
	if err != nil {
		return discovery.Answer{}, signError{err}
	}
	return j.client.PostForm(ctx, endpoint, bearer, form)
}

// setOut finds the Brand and gets ready to speak as the agent.
func setOut(ctx context.Context, o Options) (*journey, error) {
	if o.Identity == nil {
		return nil, ErrNoIdentity
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = sleep
	}
	client := discovery.Client{Transport: o.Transport}
	brand, err := client.Find(ctx, o.Card, o.AllowSplit)
	if err != nil {
		return nil, err
	}
	if o.Audience == "" {
		o.Audience = o.Identity.audienceAt(brand.Interface)
	}
	if o.Audience == "" {
		return nil, errors.New("no audience; the Brand's Provider assigns one (--aud)")
	}
	return &journey{
		brand: brand, client: client, identity: o.Identity, now: o.Now, wait: o.Wait,
		credential: &credential{identity: o.Identity, sub: o.Sub, aud: o.Audience, now: o.Now},
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
