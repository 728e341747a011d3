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
	"golang.org/x/time/rate"
)

// server is one Vault and our way to it: every call goes through call.
type server struct {
	client  *api.Client // carries the session's token
	health  *api.Client // sys/health answers in the root namespace only
	session *session
	breaker *breaker
	metrics *metrics
	log     *slog.Logger
	now     func() time.Time

	mu     sync.Mutex
	alarms map[kind]*rate.Sometimes
}

func newServer(base context.Context, work *sync.WaitGroup, c Config, log *slog.Logger, m *metrics) (*server, error) {
	client, err := newClient(c)
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", c.Name, err)
	}
	s := &server{
		client: client, health: client.WithNamespace(""),
		metrics: m, log: log, now: c.Now, alarms: make(map[kind]*rate.Sometimes),
	}
	s.breaker = newBreaker(base, work, s.probe, log, m)
	s.session = newSession(base, work, c, client, log, m)
	return s, nil
}

// retryPause is drawn up to this: long enough for a listener that restarts,
// short enough for a refused connection to be answered within 300 ms (R83).
const retryPause = 50 * time.Millisecond

// call runs do, which must use the context and the client it is given, within
// timeout. Every failure comes back as a *failure.
func (s *server) call(ctx context.Context, operation string, timeout time.Duration, do func(context.Context) (*api.Secret, error)) (*api.Secret, error) {
	leave, err := s.breaker.enter()
	if err != nil {
		s.metrics.failed(open)
		return nil, err
	}
	own, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := s.now()
	secret, err := s.attempt(own, do)
	k := kindOf(err)
	// A caller that went away early says nothing about the server.
	leave(k, ctx.Err() == nil && k != cancelled)
	s.metrics.called(operation, k, s.now().Sub(start))
	if err == nil {
		return secret, nil
	}
	err = &failure{kind: k, err: fmt.Errorf("%s: %w", operation, err)}
	s.alarm(ctx, err)
	return nil, err
}

// attempt makes the call; once more with a fresh token if the first was refused
// for its token, or if no connection came about. Nothing else is tried twice:
// repeating a timeout doubles the load of a server that is already too slow.
func (s *server) attempt(ctx context.Context, do func(context.Context) (*api.Secret, error)) (*api.Secret, error) {
	visit, err := s.session.enter(ctx)
	if err != nil {
		return nil, err
	}
	secret, err := do(ctx)
	switch kindOf(err) {
	case denied:
		s.metrics.failed(denied)
		if s.session.renew(ctx, visit, namesToken(err)) != nil {
			return nil, err
		}
		secret, err := do(ctx)
		s.session.judge(kindOf(err))
		return secret, err
	case unreachable:
		pause := time.NewTimer(rand.N(retryPause))
		defer pause.Stop()
		select {
		case <-ctx.Done():
			return nil, err
		case <-pause.C:
		}
	default:
		return secret, err
	}
	return do(ctx)
}

func (s *server) write(ctx context.Context, operation string, timeout time.Duration, path string, body map[string]any) (*api.Secret, error) {
	return s.call(ctx, operation, timeout, func(ctx context.Context) (*api.Secret, error) {
		return s.client.Logical().WriteWithContext(ctx, path, body)
	})
}

// read answers nil for what is not there.
func (s *server) read(ctx context.Context, operation, path string) (*api.Secret, error) {
	return s.call(ctx, operation, patience, func(ctx context.Context) (*api.Secret, error) {
		return s.client.Logical().ReadWithContext(ctx, path)
	})
}

// alarm tells the log about failures that somebody must look at, each kind once
// a second at most: under load they come in thousands.
func (s *server) alarm(ctx context.Context, err error) {
	k := kindOf(err)
	if !k.alarming() {
		return
	}
	s.mu.Lock()
	sometimes := s.alarms[k]
	if sometimes == nil {
		sometimes = &rate.Sometimes{Interval: time.Second}
		s.alarms[k] = sometimes
	}
	s.mu.Unlock()
	sometimes.Do(func() { s.log.ErrorContext(ctx, "ALARM: vault refuses to work", "kind", string(k), "error", err) })
}

// probe asks the server how it is, without a token.
func (s *server) probe(ctx context.Context) error {
	h, err := s.health.Sys().HealthWithContext(ctx)
	switch {
	case err != nil:
		return &failure{kind: kindOf(err), err: fmt.Errorf("health: %w", err)}
	case !h.Initialized:
		return &failure{kind: sealed, err: errors.New("not initialised")}
	case h.Sealed:
		return &failure{kind: sealed, err: errors.New("sealed; unseal it")}
	default:
		return nil
	}
}

func (s *server) check(ctx context.Context) error {
	if err := s.probe(ctx); err != nil {
		return err
	}
	if _, err := s.session.enter(ctx); err != nil {
		return &failure{kind: kindOf(err), err: err}
	}
	return s.breaker.check()
}
