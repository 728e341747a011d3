package authority

import "github.com/prometheus/client_golang/prometheus"

// counters are what an operator watches. No label says who.
type counters struct {
	reuse       *prometheus.CounterVec
	falseAlarms prometheus.Counter
	lost        *prometheus.CounterVec
}

func newCounters(r prometheus.Registerer) counters {
	c := counters{
		reuse: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_refresh_replays_total",
			Help: "Spent refresh tokens that came back: within the grace window, too late but no sign of theft, or ending the grant.",
		}, []string{"outcome"}),
		falseAlarms: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_refresh_false_alarms_total",
			Help: "Grants that ended for reuse and that the same person allowed again within a day: probably no theft.",
		}),
	}
	c.lost = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_receipts_lost_total",
		Help: "Turns that were served and have no receipt for good, by why: refused by now, nothing could be signed for a day, or nobody knows how they ended.",
	}, []string{"reason"})
	if r != nil {
		r.MustRegister(c.reuse, c.falseAlarms, c.lost)
	}
	return c
}
