package a2a

import "github.com/prometheus/client_golang/prometheus"

// Metrics is where the counters are registered; nil: nowhere.
type Metrics = prometheus.Registerer

type counters struct {
	turns *prometheus.CounterVec
	took  prometheus.Histogram
}

func newCounters(r Metrics) counters {
	c := counters{
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_a2a_turns_total",
			Help: "Messages to hosted Brands: replied, repeated, stepped up, not sent, failed at the Brand's agent, or beyond what the token allowed.",
		}, []string{"outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "countersign_a2a_agent_seconds", Help: "How long hosted Brands' agents take.",
			Buckets: []float64{.005, .02, .1, .5, 1, 2, 5, 10, 20, 45},
		}),
	}
	if r != nil {
		r.MustRegister(c.turns, c.took)
	}
	return c
}
