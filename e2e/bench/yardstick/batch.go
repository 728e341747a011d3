package yardstick

import (
	"testing"
	"time"
)

// UnitBatched is what one of many things done in raw batches took, all callers
// together.
const UnitBatched = "ns/batched"

// Batch is a raw cost that is paid for many things at once, from as many callers
// as make the most of the server. How many they are does not follow the benchmark:
// the question is how near one comes to what can be had at all.
type Batch struct {
	Callers, Size int
	Do            func(caller, count int) error
}

// Benchmark measures the raw cost itself.
func (r Batch) Benchmark(b *testing.B) {
	b.Helper()
	Batches(b, r.Callers, r.Size, r.Do)
	r.Beside(b)
}

// Beside measures the raw cost next to what b has just measured and reports what
// one thing took. It compares rates, not medians as Raw does: whoever shares a
// batch waits for all of it, so that a median alone says nothing about its price.
func (r Batch) Beside(b *testing.B) {
	b.Helper()
	b.StopTimer()
	const window, expected = 100 * time.Millisecond, 256
	if b.Elapsed() < worthwhile {
		return
	}
	next := until(time.Now().Add(window))
	turns := clock(b, r.Callers, expected, next, func(caller, _ int) error { return r.Do(caller, r.Size) })
	// Each caller by its own clock: who ends first does not wait for the others.
	var perNanosecond float64
	for _, mine := range turns {
		var took time.Duration
		for _, turn := range mine {
			took += turn
		}
		if took > 0 {
			perNanosecond += float64(len(mine)*r.Size) / float64(took)
		}
	}
	if perNanosecond > 0 {
		b.ReportMetric(1/perNanosecond, UnitBatched)
	}
}
