package yardstick

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Units in which latencies are reported.
const (
	UnitMedian = "p50-ns"
	UnitSlow   = "p99-ns"
)

// UnitCPU is what one thing cost all processors, the database's share included.
const UnitCPU = "cpu-ns/op"

// Called says in a benchmark's name how many callers it has.
func Called(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return strconv.Itoa(n) + " callers"
}

// Callers does b.N things from exactly n callers at once, timing nothing else,
// and reports what half and what 99 % of the things took at most, and what one
// cost in processor time. It is
// b.RunParallel with a number of callers that does not depend on the machine.
func Callers(b *testing.B, n int, do func(caller int) error) {
	b.Helper()
	b.ReportAllocs()
	var begun atomic.Int64
	before, told := cpu()
	b.ResetTimer()
	took := clock(b, n, b.N, func() bool { return begun.Add(1) <= int64(b.N) }, do)
	b.StopTimer()
	if after, ok := cpu(); ok && told {
		b.ReportMetric(float64(after-before)/float64(b.N), UnitCPU)
	}
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2]), UnitMedian)
		b.ReportMetric(float64(took[len(took)*99/100]), UnitSlow)
	}
}

// clock lets n callers do things while there is more, and returns how long each
// thing took, the shortest first. About expected things are allowed for.
func clock(b *testing.B, n, expected int, more func() bool, do func(caller int) error) []time.Duration {
	b.Helper()
	var all sync.WaitGroup
	took := make([][]time.Duration, n)
	for caller := range n {
		all.Go(func() {
			mine := make([]time.Duration, 0, expected/n+1)
			for more() {
				start := time.Now()
				if err := do(caller); err != nil {
					b.Error(err)
					break
				}
				mine = append(mine, time.Since(start))
			}
			took[caller] = mine
		})
	}
	all.Wait()
	every := slices.Concat(took...)
	slices.Sort(every)
	return every
}
