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
	Batches(b, n, 1, func(caller, _ int) error { return do(caller) })
}

// Batches is Callers for things that are done size at a time, or what is left of
// b.N. One op is one thing; the latencies are those of a whole batch, which is
// what somebody waits for.
func Batches(b *testing.B, n, size int, do func(caller, count int) error) {
	b.Helper()
	b.ReportAllocs()
	var begun atomic.Int64
	before, told := cpu()
	b.ResetTimer()
	turns := clock(b, n, b.N/size, func() int {
		left := b.N - int(begun.Add(int64(size))) + size
		return min(size, left)
	}, do)
	b.StopTimer()
	if after, ok := cpu(); ok && told {
		b.ReportMetric(float64(after-before)/float64(b.N), UnitCPU)
	}
	if took := sorted(turns); len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2]), UnitMedian)
		b.ReportMetric(float64(took[len(took)*99/100]), UnitSlow)
	}
}

// clock lets n callers do as many things at a time as next says, until it says
// none, and returns how long each time took each caller. About expected times are
// allowed for.
func clock(b *testing.B, n, expected int, next func() int, do func(caller, count int) error) [][]time.Duration {
	b.Helper()
	var all sync.WaitGroup
	took := make([][]time.Duration, n)
	for caller := range n {
		all.Go(func() {
			mine := make([]time.Duration, 0, expected/n+1)
			for count := next(); count > 0; count = next() {
				start := time.Now()
				if err := do(caller, count); err != nil {
					b.Error(err)
					break
				}
				mine = append(mine, time.Since(start))
			}
			took[caller] = mine
		})
	}
	all.Wait()
	return took
}

// sorted is what everybody's turns took, the shortest first.
func sorted(turns [][]time.Duration) []time.Duration {
	every := slices.Concat(turns...)
	slices.Sort(every)
	return every
}
