package statuslist_test

import (
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/statuslist"
	"countersign.dev/e2e/bench/crowd"
	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkStatusList is what it costs to publish a list: a small one, a full
// one, and a full one of a Brand with a million grants. "make" is what a change
// costs the next who asks, "still stands" what one a second costs, and "asked
// again" what all others cost.
func BenchmarkStatusList(b *testing.B) {
	b.Run("encode 65,536 of 131,072, 1 caller", func(b *testing.B) {
		l := statuslist.New(authority.StatusListSize, statuslist.Valid)
		for i := range crowd.PerList {
			l.Set(i*40503%authority.StatusListSize, statuslist.Status(i%3))
		}
		yardstick.Callers(b, 1, func(int) error {
			_, err := l.Encode()
			return err
		})
		yardstick.Sign(b).Beside(b, 1)
	})
	for _, size := range []struct {
		name   string
		grants int
	}{{"1,000", 1000}, {"65,536", crowd.PerList}, {"1,000,000", 1_000_000}} {
		w := authoritytest.New(b)
		crowd.Listed(b, w, authoritytest.Agent, size.grants)
		w.Exec(b, `VACUUM ANALYZE`)
		trip := yardstick.RoundTrip(w.DB.Pool())
		list := func(a *authority.Authority) error {
			_, err := a.StatusList(b.Context(), w.Hotel.ID, 0)
			return err
		}
		b.Run("make, grants: "+size.name+", 1 caller", func(b *testing.B) {
			yardstick.Callers(b, 1, func(int) error { return list(w.Authority(w.Keys)) }) // a new instance has none yet
			trip.Beside(b, 1)
		})
		a := w.Authority(w.Keys)
		if err := list(a); err != nil {
			b.Fatal(err)
		}
		b.Run("still stands, grants: "+size.name+", 1 caller", func(b *testing.B) {
			yardstick.Callers(b, 1, func(int) error {
				w.Clock.Advance(time.Second)
				return list(a)
			})
			trip.Beside(b, 1)
		})
		b.Run("asked again, grants: "+size.name+", 2 callers", func(b *testing.B) {
			yardstick.Callers(b, 2, func(int) error { return list(a) })
			trip.Beside(b, 2)
		})
	}
}
