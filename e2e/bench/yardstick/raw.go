package yardstick

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Units in which raw costs are reported.
const (
	UnitSign      = "ns/sign"
	UnitVerify    = "ns/verify"
	UnitRoundTrip = "ns/round-trip"
	UnitExchange  = "ns/exchange"
	UnitDirect    = "ns/direct"
)

// Raw is a cost that no design of ours can avoid. Do may be called from many
// goroutines; caller tells them apart.
type Raw struct {
	Unit string
	Do   func(ctx context.Context, caller int) error
}

var digest = sha256.Sum256([]byte("countersign"))

func key(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Sign is one ES256 signature of Go's own library.
func Sign(tb testing.TB) Raw {
	k := key(tb)
	return Raw{UnitSign, func(context.Context, int) error {
		_, err := ecdsa.SignASN1(rand.Reader, k, digest[:])
		return err
	}}
}

// Verify is one ES256 verification of Go's own library.
func Verify(tb testing.TB) Raw {
	k := key(tb)
	signature, err := ecdsa.SignASN1(rand.Reader, k, digest[:])
	if err != nil {
		tb.Fatal(err)
	}
	return Raw{UnitVerify, func(context.Context, int) error {
		if !ecdsa.VerifyASN1(&k.PublicKey, digest[:], signature) {
			return errors.New("does not verify")
		}
		return nil
	}}
}

// RoundTrip is SELECT 1 through the pool, prepared and outside of any fence.
func RoundTrip(pool *pgxpool.Pool) Raw {
	return Raw{UnitRoundTrip, func(ctx context.Context, _ int) error {
		var one int
		return pool.QueryRow(ctx, `SELECT 1`).Scan(&one)
	}}
}

// Benchmark measures the raw cost itself, from n callers at once.
func (r Raw) Benchmark(b *testing.B, n int) {
	b.Helper()
	Callers(b, n, func(caller int) error { return r.Do(b.Context(), caller) })
	r.Beside(b, n)
}

// worthwhile is how long a turn of the testing package must last for its result
// to be shown; in shorter ones it feels its way.
const worthwhile = 50 * time.Millisecond

// Beside measures the raw cost, from n callers at once, next to what b has just
// measured, and reports its median: on a shared machine the mean is what others
// made of it. Turns that are not worthwhile
// are passed over.
func (r Raw) Beside(b *testing.B, n int) {
	b.Helper()
	b.StopTimer()
	const window, expected = 60 * time.Millisecond, 4096
	if b.Elapsed() < worthwhile {
		return
	}
	end := time.Now().Add(window)
	turns := clock(b, n, expected, until(end), func(caller, _ int) error { return r.Do(b.Context(), caller) })
	if took := sorted(turns); len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2]), r.Unit)
	}
}

func until(end time.Time) func() int {
	return func() int {
		if time.Now().Before(end) {
			return 1
		}
		return 0
	}
}
