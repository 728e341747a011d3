package events

import "github.com/prometheus/client_golang/prometheus"

// counters are what an operator watches. No label says who.
type counters struct{ attempts *prometheus.CounterVec }

func newCounters(r prometheus.Registerer) counters {
	c := counters{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_webhook_attempts_total",
		Help: "Webhook deliveries by what became of them: delivered, pending (will be tried again) or dead.",
	}, []string{"outcome"})}
	if r != nil {
		r.MustRegister(c.attempts)
	}
	return c
}
