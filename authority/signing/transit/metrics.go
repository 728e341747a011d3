package transit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics carry no Brand: who signs how much is not for the scraper, and a label
// per Brand grows without end.
type metrics struct {
	calls   *prometheus.HistogramVec
	batch   prometheus.Histogram
	queue   prometheus.Gauge
	flying  prometheus.Gauge
	breaker prometheus.Gauge
	logins  *prometheus.CounterVec
	extends *prometheus.CounterVec
	errors  *prometheus.CounterVec
}

func newMetrics(to prometheus.Registerer, backend string) *metrics {
	m := &metrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "countersign_vault_call_seconds",
			Help:    "Calls of Vault with their retry, by operation and how they ended.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}, []string{"operation", "end"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "countersign_vault_batch_size",
			Help:    "Signatures asked for in one call.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 250},
		}),
		queue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "countersign_vault_queue",
			Help: "Signatures that wait for a call.",
		}),
		flying: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "countersign_vault_calls_in_flight",
			Help: "Calls for signatures under way.",
		}),
		breaker: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "countersign_vault_breaker",
			Help: "0 closed, 1 on trial, 2 open: nothing is signed.",
		}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_vault_logins_total",
			Help: "Logins to Vault, by how they ended.",
		}, []string{"end"}),
		extends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_vault_token_extensions_total",
			Help: "Extensions of our token at half of its life, by how they ended.",
		}, []string{"end"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_vault_errors_total",
			Help: "Signatures and calls that failed, by kind; also tokens refused, though another login helped.",
		}, []string{"kind"}),
	}
	if to != nil {
		prometheus.WrapRegistererWith(prometheus.Labels{"backend": backend}, to).
			MustRegister(m.calls, m.batch, m.queue, m.flying, m.breaker, m.logins, m.extends, m.errors)
	}
	return m
}

func (m *metrics) called(operation string, end kind, took time.Duration) {
	m.calls.WithLabelValues(operation, string(end)).Observe(took.Seconds())
	if end != ok {
		m.failed(end)
	}
}

func (m *metrics) failed(k kind) { m.errors.WithLabelValues(string(k)).Inc() }

func (m *metrics) loggedIn(end kind) { m.logins.WithLabelValues(string(end)).Inc() }

func (m *metrics) extended(end kind) { m.extends.WithLabelValues(string(end)).Inc() }
