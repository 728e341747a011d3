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
	pause    time.Duration // the age below which a refused token is not replaced
	judged   int           // the last login that is known to have helped or not
	failing  bool          // keep does not get what it wants, and has said so
	overdue  int           // tries of keep since the token's life was over
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
	// lacks a permission, and the next would lack it too. Each login that does not
	// help doubles it, up to longWait: one forbidden operation must not fill Vault
	// with tokens.
	youth = time.Second
	// least is the shortest rest of keep.
	least = 250 * time.Millisecond
)

func newSession(base context.Context, work *sync.WaitGroup, c Config, client *api.Client, log *slog.Logger, m *metrics) *session {
	s := &session{
		auth: c.Auth, client: client, door: client.WithNamespace(c.Namespace),
		base: base, work: work, timeout: c.Timeout, log: log, metrics: m, now: c.Now,
		changed: make(chan struct{}, 1), pause: youth,
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
// dead: Vault says that it knows the token no more, so that its lack of a
// permission is not the reason, and the pause that this brought does not apply.
func (s *session) renew(ctx context.Context, visit int, dead bool) error {
	s.mu.Lock()
	if s.visit != visit {
		s.mu.Unlock()
		return nil
	}
	pause := s.pause
	if dead {
		pause = youth
	}
	if s.entering == nil && s.now().Sub(s.since) < pause {
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

// judge is told how the call ended that was refused before a renewal. Any number
// of refused callers count as one; one that was helped outweighs them.
func (s *session) judge(end kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case end == ok:
		s.pause, s.judged = youth, s.visit
	case end == denied && s.judged < s.visit:
		s.pause, s.judged = min(2*s.pause, longWait), s.visit
	}
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
		// A token that an operator gave us comes back as itself.
		if old := s.client.Token(); old != "" && old != secret.Auth.ClientToken {
			s.work.Go(func() { s.revoke(old) })
		}
		s.client.SetToken(secret.Auth.ClientToken)
		s.recovered()
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

// revoke ends a token that was replaced, when the signatures that were under way
// with it are done. It is a courtesy: what Vault answers changes nothing, and an
// older policy forbids it.
func (s *session) revoke(token string) {
	grace := time.NewTimer(s.timeout)
	defer grace.Stop()
	select {
	case <-s.base.Done():
	case <-grace.C:
	}
	// Without the base's end: a token that was replaced does not outlive a service
	// that stops.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.base), min(s.timeout, time.Second))
	defer cancel()
	self := s.door.WithNamespace(s.door.Namespace())
	self.SetToken(token)
	if err := self.Auth().Token().RevokeSelfWithContext(ctx, ""); err != nil {
		s.log.DebugContext(ctx, "replaced vault token was not revoked", "error", err)
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
// less by chance, so that instances started together do not come together. Once
// nothing is left, callers log in for themselves, and each try rests for longer.
func (s *session) rest() time.Duration {
	const never = 24 * time.Hour
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visit == 0 || s.life == 0 {
		return never
	}
	half := max(s.left/2, min(least<<min(s.overdue, 10), longWait))
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
	if s.left/2 < least {
		s.overdue++
	}
	if err == nil && secret.Auth != nil {
		s.left = time.Duration(secret.Auth.LeaseDuration) * time.Second
		if s.left > life*2/3 {
			s.recovered()
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
		s.failed(visit, err)
	}
}

// failed tells the log that the token will end, once until recovered.
func (s *session) failed(visit int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failing && s.visit == visit { // a caller may have logged in meanwhile
		s.failing = true
		s.log.WarnContext(s.base, "vault token is not extended; trying on", "error", err)
	}
}

// recovered is the end of failed; mu is held.
func (s *session) recovered() {
	s.overdue = 0
	if s.failing {
		s.failing = false
		s.log.InfoContext(s.base, "vault token is good again")
	}
}
