package verify

import (
	"testing"

	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkKit is what a Brand's own check costs, in its process and without a
// fetch: two signatures, the agent's and the authority's, and the status list.
func BenchmarkKit(b *testing.B) {
	s := newScene(b)
	alone, both := shown(s.proof(nil), ""), shown(s.proof(nil), s.token(nil))
	raw := yardstick.Verify(b)
	for _, n := range []int{1, 2} {
		b.Run("pa-jwt, "+yardstick.Called(n), func(b *testing.B) {
			yardstick.Callers(b, n, func(int) error {
				_, err := s.door.Call(b.Context(), alone)
				return err
			})
			raw.Beside(b, n)
		})
		b.Run("pa-jwt and token, "+yardstick.Called(n), func(b *testing.B) {
			yardstick.Callers(b, n, func(int) error {
				_, err := s.door.Call(b.Context(), both)
				return err
			})
			raw.Beside(b, n)
		})
	}
}
