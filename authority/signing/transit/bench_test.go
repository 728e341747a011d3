package transit

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	health, err := v.Client(b, "").Sys().HealthWithContext(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("vault: %s\n", health.Version) // a configuration line of the benchmark format
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
		// The engine has read the key by then.
		if err := backend.Sign(b.Context(), brandOf(n), oneJob)[0].Err; err != nil {
			b.Fatal(err)
		}
	}
	return backend
}

var oneJob = []signing.Job{{Version: 1, Alg: signing.ES256, Digest: [32]byte{1}}}

func brandOf(n int) tenants.BrandID { return tenants.BrandID(fmt.Sprintf("brand-%d", n)) }

// BenchmarkSignature is what Vault does at its best, then one signature, of one
// Brand or of any of many: each a call of its own, and gathered. Every one of them
// is set beside Vault's best as well as beside Go's own.
func BenchmarkSignature(b *testing.B) {
	const most = 1000
	backend := newBenchmark(b, most)
	for _, at := range []struct{ callers, size int }{{1, 100}, {2, 100}, {2, 250}} {
		b.Run(fmt.Sprintf("Vault, raw batch_input of %d, %s", at.size, yardstick.Called(at.callers)), func(b *testing.B) {
			rawBatch(b, backend, at.callers, at.size).Benchmark(b)
		})
	}
	raw, batch := yardstick.Sign(b), rawBatch(b, backend, 2, 100)
	for _, brands := range []int{1, 10, most} {
		for _, callers := range []int{1, 10, 100, 1000} {
			for _, way := range []struct {
				name   string
				limits limits
			}{{"single", ungathered}, {"gathered", limits{}}} {
				b.Run(fmt.Sprintf("Vault, %s, Brands: %d, %s", way.name, brands, yardstick.Called(callers)), func(b *testing.B) {
					backend.gather = newGatherer(way.limits, newMetrics(nil, "bench"), backend.send)
					yardstick.Callers(b, callers, func(int) error {
						return backend.Sign(b.Context(), brandOf(rand.IntN(brands)), oneJob)[0].Err
					})
					raw.Beside(b, min(callers, 2))
					batch.Beside(b)
				})
			}
		}
	}
}

// rawBatch is Vault's own batch_input for one key, with nothing of ours but the
// client: no queue, and nobody who waits for one of the signatures.
func rawBatch(b *testing.B, backend *Backend, callers, size int) yardstick.Batch {
	b.Helper()
	items := make([]*item, size)
	for i := range items {
		items[i] = &item{digest: oneJob[0].Digest}
	}
	return yardstick.Batch{Callers: callers, Size: size, Do: func(_, count int) error {
		secret, err := backend.signBatch(laneKey{brandOf(0), signing.ES256, 1}, items[:count])
		if err == nil && secret == nil {
			err = errors.New("no answer")
		}
		return err
	}}
}
