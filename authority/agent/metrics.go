package agent

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a verification, as counted.
const (
	remembered = "remembered" // the signature was known to verify
	verified   = "verified"
	refused    = "refused"
	failed     = "failed" // ours: no verdict
)

type metrics struct {
	verifications *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	fetches       *prometheus.CounterVec
	discoveries   *prometheus.CounterVec
	stale         prometheus.Counter
}

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{
		verifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_agent_verifications_total",
			Help: "pa-jwts looked at, by outcome.",
		}, []string{"outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_agent_refusals_total",
			Help: "pa-jwts refused, by reason.",
		}, []string{"reason"}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_agent_jwks_fetches_total",
			Help: "Fetches of agents' published keys, by outcome.",
		}, []string{"outcome"}),
		discoveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_agent_discoveries_total",
			Help: "Look-ups of agents that nobody has registered, by outcome.",
		}, []string{"outcome"}),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_agent_stale_keys_total",
			Help: "Uses of keys older than five minutes because the agent's server fails. After 24 hours the agent is refused.",
		}),
	}
	if to != nil {
		to.MustRegister(m.verifications, m.refusals, m.fetches, m.discoveries, m.stale)
	}
	return m
}

func (m *metrics) count(outcome string, err error) {
	reason, isRefusal := errors.AsType[Refusal](err)
	switch {
	case isRefusal:
		m.verifications.WithLabelValues(refused).Inc()
		m.refusals.WithLabelValues(string(reason)).Inc()
	case err != nil:
		m.verifications.WithLabelValues(failed).Inc()
	default:
		m.verifications.WithLabelValues(outcome).Inc()
	}
}

func (m *metrics) fetched(err error) { m.fetches.WithLabelValues(came(err)).Inc() }

func (m *metrics) discovered(err error) { m.discoveries.WithLabelValues(came(err)).Inc() }

func came(err error) string {
	if err != nil {
		return failed
	}
	return "ok"
}
