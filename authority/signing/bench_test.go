package signing_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
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

// BenchmarkSignature is one bare signature from the local keyring, of one Brand or
// of any of many. Those of Vault, in the package transit, have the same name.
func BenchmarkSignature(b *testing.B) {
	const most = 1000
	w := authoritytest.New(b)
	w.Exec(b, `
		INSERT INTO brands (id, provider_id, name, mode, state, delegation, interface_url, issuer, created_at)
		SELECT 'brand-' || n, 'demo', 'Brand', 'hosted', 'active', true, $1 || n, $1 || n || '/oauth', $2
		  FROM generate_series(0, $3::int - 1) AS n`, authoritytest.PublicURL+"/a2a/brand-", w.Clock.Now(), most)
	keyring := local.New(w.DB, w.Master, w.Clock.Now)
	for n := range most {
		signingtest.Create(b, keyring, brandOf(n), 1, signing.ES256)
	}
	raw := yardstick.Sign(b)
	jobs := []signing.Job{{Version: 1, Alg: signing.ES256, Digest: [32]byte{1}}}
	for _, brands := range []int{1, 10, most} {
		for _, callers := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("local keyring, Brands: %d, %s", brands, yardstick.Called(callers)), func(b *testing.B) {
				yardstick.Callers(b, callers, func(int) error {
					return keyring.Sign(b.Context(), brandOf(rand.IntN(brands)), jobs)[0].Err
				})
				raw.Beside(b, min(callers, 2)) // more wait for a core, and not for each other
			})
		}
	}
}

func brandOf(n int) tenants.BrandID { return tenants.BrandID(fmt.Sprintf("brand-%d", n)) }
