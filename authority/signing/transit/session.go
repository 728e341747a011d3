package transit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
)

// session keeps one token good: it logs in when first needed, extends the token
// at half of its life, and logs in anew when Vault extends it no further or
// refuses it. Any number of callers wait for one login.
type session struct {
	auth    Auth
	client  *api.Client // is given the token
	door    *api.Client // never carries one
	base    context.Context
	work    *sync.WaitGroup
	timeout time.Duration
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time
	changed chan struct{} // wakes keep

	mu       sync.Mutex
	visit    int           // counts logins; 0: none succeeded yet
	since    time.Time     // of the last login
	life     time.Duration // as granted at login; 0: without end
	left     time.Duration // as of the last login or extension
	entering *entry        // the login under way
	refusals int           // logins in a row that Vault refused
	notYet   time.Time     // no login before this
	why      error         // of the last refusal
}

type entry struct {
	done chan struct{}
	err  error
}

// Vault locks a role out after some refused logins, for a quarter of an hour:
// a wrong secret must not be tried at the rate of our callers.
const (
	firstWait = time.Second
	longWait  = 30 * time.Second
	// youth is the age below which a token that is refused is not replaced: it
	// lacks a permission, and the next would lack it too.
	youth = time.Second
)

func newSession(base context.Context, work *sync.WaitGroup, c Config, client *api.Client, log *slog.Logger, m *metrics) *session {
	s := &session{
		auth: c.Auth, client: client, door: client.WithNamespace(c.Namespace),
		base: base, work: work, timeout: c.Timeout, log: log, metrics: m, now: c.Now,
		changed: make(chan struct{}, 1),
	}
	work.Go(s.keep)
	return s
}

// enter makes sure that there is a token and returns the number of its login.
func (s *session) enter(ctx context.Context) (visit int, err error) {
	s.mu.Lock()
	if s.visit > 0 {
		defer s.mu.Unlock()
		return s.visit, nil
	}
	e, err := s.login()
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if err := e.wait(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visit, nil
}

// renew replaces the token of the given login, unless that has happened already.
func (s *session) renew(ctx context.Context, visit int) error {
	s.mu.Lock()
	if s.visit != visit {
		s.mu.Unlock()
		return nil
	}
	if s.entering == nil && s.now().Sub(s.since) < youth {
		s.mu.Unlock()
		return errors.New("a token of this age is not refused for its age")
	}
	e, err := s.login()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return e.wait(ctx)
}

func (e *entry) wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// login starts a login or joins the one under way; mu is held.
func (s *session) login() (*entry, error) {
	if s.entering != nil {
		return s.entering, nil
	}
	if s.now().Before(s.notYet) {
		return nil, s.why
	}
	if s.base.Err() != nil {
		return nil, s.base.Err()
	}
	e := &entry{done: make(chan struct{})}
	s.entering = e
	s.work.Go(func() {
		// Detached from the caller: others wait for it too.
		ctx, cancel := context.WithTimeout(s.base, s.timeout)
		defer cancel()
		secret, err := s.auth.login(ctx, s.door)
		if err == nil && (secret == nil || secret.Auth == nil || secret.Auth.ClientToken == "") {
			err = errors.New("the answer holds no token")
		}
		s.arrive(e, secret, err)
	})
	return e, nil
}

func (s *session) arrive(e *entry, secret *api.Secret, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entering = nil
	s.metrics.loggedIn(kindOf(err))
	if err == nil {
		s.client.SetToken(secret.Auth.ClientToken)
		s.visit++
		s.refusals = 0
		s.since = s.now()
		s.life = time.Duration(secret.Auth.LeaseDuration) * time.Second
		s.left = s.life
		if !secret.Auth.Renewable && s.life == 0 {
			s.log.WarnContext(s.base, "vault token has no end; use AppRole or Kubernetes in production")
		}
	} else {
		e.err = s.refuse(err)
	}
	close(e.done)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// refuse decides when the next login may be tried; mu is held. An outage needs
// no wait of its own: the breaker sees it.
func (s *session) refuse(err error) error {
	err = fmt.Errorf("log in: %w", err)
	if kindOf(err).outage() {
		return err
	}
	wait := min(firstWait<<min(s.refusals, 10), longWait)
	s.refusals++
	s.notYet = s.now().Add(wait)
	s.why = &failure{kind: denied, err: fmt.Errorf("not tried again yet: %w", err)}
	s.log.ErrorContext(s.base, "ALARM: vault refuses our login", "again_in", wait, "error", err)
	return &failure{kind: denied, err: err}
}

// keep extends the token, or replaces it, while there is time.
func (s *session) keep() {
	timer := time.NewTimer(s.rest())
	defer timer.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-s.changed:
		case <-timer.C:
			s.extend()
		}
		timer.Reset(s.rest())
	}
}

// rest says how long the token needs no care: half of what is left, a little
// less by chance, so that instances started together do not come together.
func (s *session) rest() time.Duration {
	const never, least = 24 * time.Hour, 250 * time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visit == 0 || s.life == 0 {
		return never
	}
	half := max(s.left/2, least)
	return max(half-rand.N(half/10), s.notYet.Sub(s.now()))
}

func (s *session) extend() {
	ctx, cancel := context.WithTimeout(s.base, s.timeout)
	defer cancel()
	s.mu.Lock()
	visit, life := s.visit, s.life
	s.mu.Unlock()
	secret, err := s.client.Auth().Token().RenewSelfWithContext(ctx, int(life.Seconds()))
	s.metrics.extended(kindOf(err))
	s.mu.Lock()
	if s.visit != visit {
		s.mu.Unlock()
		return
	}
	s.left /= 2 // time has passed, whatever came of it
	if err == nil && secret.Auth != nil {
		s.left = time.Duration(secret.Auth.LeaseDuration) * time.Second
		if s.left > life*2/3 {
			s.mu.Unlock()
			return
		}
	}
	// Refused, or granted only what its maximum leaves: log in while the old
	// token still works, so that nobody waits for it.
	e, err := s.login()
	s.mu.Unlock()
	if err == nil {
		err = e.wait(ctx)
	}
	if err != nil && s.base.Err() == nil {
		s.log.WarnContext(ctx, "vault token was not extended", "error", err)
	}
}
