package transit

import (
	"context"
	"fmt"
	"testing"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
)

// ungathered makes every signature a call of its own.
var ungathered = limits{batch: 1, perLane: defaultInFlight}

func newBenchmark(b *testing.B, brands int) *Backend {
	b.Helper()
	v := signingtest.StartVault(b)
	c := Config{Address: v.Addr, Auth: Token(v.RootToken)}
	auth, err := Setup(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	c.Auth = auth
	backend, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(backend.Close)
	for n := range brands {
		signingtest.Create(b, backend, brandOf(n), 1, signing.ES256)
	}
	return backend
}

func brandOf(n int) tenants.BrandID { return tenants.BrandID(fmt.Sprintf("brand-%d", n)) }

// BenchmarkSign is one signature, from one Brand or spread over many: each a call
// of its own, and gathered.
func BenchmarkSign(b *testing.B) {
	const most = 1000
	backend := newBenchmark(b, most)
	raw := yardstick.Sign(b)
	for _, brands := range []int{1, 10, most} {
		for _, callers := range []int{1, 10, 100, 1000} {
			for _, way := range []struct {
				name   string
				limits limits
			}{{"single", ungathered}, {"gathered", limits{}}} {
				if brands > 1 && (callers < 100 || way.name == "single") {
					continue
				}
				b.Run(fmt.Sprintf("%s, %d brands, %s", way.name, brands, yardstick.Called(callers)), func(b *testing.B) {
					backend.gather = newGatherer(way.limits, newMetrics(nil, "bench"), backend.send)
					jobs := []signing.Job{{Version: 1, Alg: signing.ES256, Digest: [32]byte{1}}}
					yardstick.Callers(b, callers, func(caller int) error {
						return backend.Sign(b.Context(), brandOf(caller%brands), jobs)[0].Err
					})
					raw.Beside(b, min(callers, 2))
				})
			}
		}
	}
}

// BenchmarkRawBatch is what Vault does at its best: batches of 100 for one key,
// one after the other and two at once, with nothing of ours but the client.
func BenchmarkRawBatch(b *testing.B) {
	const size = 100
	backend := newBenchmark(b, 1)
	raw := yardstick.Sign(b)
	for _, callers := range []int{1, 2} {
		b.Run(fmt.Sprintf("batch of %d, %s", size, yardstick.Called(callers)), func(b *testing.B) {
			items := make([]*item, size)
			for i := range items {
				items[i] = &item{ctx: context.Background(), result: make(chan signing.Result, 1)}
			}
			yardstick.Callers(b, callers, func(int) error {
				_, err := backend.signBatch(laneKey{brandOf(0), signing.ES256, 1}, items)
				return err
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/signature")
			raw.Beside(b, callers)
		})
	}
}
