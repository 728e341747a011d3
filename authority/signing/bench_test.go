package signing_test

import (
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkES256 is Go's own ES256: what every signature of ours is measured by.
func BenchmarkES256(b *testing.B) {
	sign, verify := yardstick.Sign(b), yardstick.Verify(b)
	b.Run("sign, 1 caller", func(b *testing.B) { sign.Benchmark(b, 1) })
	b.Run("sign, 2 callers", func(b *testing.B) { sign.Benchmark(b, 2) })
	b.Run("verify, 1 caller", func(b *testing.B) { verify.Benchmark(b, 1) })
	b.Run("verify, 2 callers", func(b *testing.B) { verify.Benchmark(b, 2) })
}

// BenchmarkSign is a whole JWS from the local keyring: encoded, signed, and
// verified before it leaves.
func BenchmarkSign(b *testing.B) {
	w := authoritytest.New(b)
	raw := yardstick.Sign(b)
	payload := []byte(`{"scope":"` + strings.Repeat("x", 350) + `"}`) // as long as a token's
	b.Run("token, local keyring, 1 caller", func(b *testing.B) {
		yardstick.Callers(b, 1, func(int) error {
			_, err := w.Keys.Sign(b.Context(), w.Hotel.ID, signing.TypToken, payload)
			return err
		})
		raw.Beside(b, 1)
	})
}
