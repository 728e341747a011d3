package agent_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/migrations/pgtest"
	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

const audience = agenttest.Audience

// clock is turned by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Unix(1_790_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// world is a registry and a verifier over a database of their own.
type world struct {
	clock    *clock
	pool     *pgxpool.Pool
	registry *agent.Registry
	verifier *agent.Verifier
	metrics  *prometheus.Registry
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldIn(t, pgtest.New(t))
}

func newWorldIn(t testing.TB, db *pgtest.DB) *world {
	t.Helper()
	w := &world{clock: newClock(), pool: db.App(t)}
	w.registry = w.newRegistry()
	w.metrics = prometheus.NewRegistry()
	w.verifier = w.newVerifier(w.registry, w.metrics)
	return w
}

func (w *world) newRegistry() *agent.Registry {
	return agent.NewRegistry(agent.RegistryConfig{DB: w.pool, Now: w.clock.Now, AllowLoopback: true})
}

func (w *world) newVerifier(r *agent.Registry, metrics prometheus.Registerer) *agent.Verifier {
	return agent.NewVerifier(agent.Config{
		Registry: r,
		Fetch:    devFetch(),
		Now:      w.clock.Now,
		Metrics:  metrics,
	})
}

func devFetch() *egress.Client {
	return egress.New(egress.Config{AllowLoopback: true, Timeout: 30 * time.Second})
}

// pa is a registered agent on the world's clock.
func (w *world) pa(t testing.TB) *agenttest.PA {
	t.Helper()
	pa := agenttest.New(t)
	pa.Now = w.clock.Now
	w.register(t, pa)
	return pa
}

func (w *world) register(t testing.TB, pa *agenttest.PA) {
	t.Helper()
	if err := w.registry.Register(t.Context(), pa.Agent()); err != nil {
		t.Fatal(err)
	}
}

func (w *world) accepts(t testing.TB, token string) agent.Caller {
	t.Helper()
	caller, err := w.verifier.Verify(t.Context(), token, audience)
	if err != nil {
		t.Errorf("refused: %v", err)
	}
	return caller
}

func (w *world) refuses(t testing.TB, token string, why error) {
	t.Helper()
	caller, err := w.verifier.Verify(t.Context(), token, audience)
	refusedFor(t, caller, err, why)
}

// refusedFor checks the constant shape of a refusal, and its reason.
func refusedFor(t testing.TB, caller agent.Caller, err, why error) {
	t.Helper()
	switch {
	case !errors.Is(err, agent.ErrRefused):
		t.Errorf("got %v, want a refusal: %v", err, why)
	case !errors.Is(err, why):
		t.Errorf("refused because %v, want %v", err, why)
	case caller != (agent.Caller{}):
		t.Errorf("a refusal names a caller: %+v", caller)
	}
}

// counted is the sum of a counter over those of its labels that match.
func (w *world) counted(t testing.TB, name, label string) float64 {
	t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if label == "" || m.GetLabel()[0].GetValue() == label {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
