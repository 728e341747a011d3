package agent_test

import (
	"testing"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkVerify compares a pa-jwt seen before with one seen for the first time,
// and both with the bare signature.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	pa := w.pa(b)
	token := pa.Token(b, agenttest.Claims{})
	w.accepts(b, token)
	raw := yardstick.Verify(b)

	for _, n := range []int{1, 2} {
		b.Run("pa-jwt, remembered, "+yardstick.Called(n), func(b *testing.B) {
			yardstick.Callers(b, n, func(int) error {
				_, err := w.verifier.Verify(b.Context(), token, audience)
				return err
			})
			raw.Beside(b, n)
		})
	}
	b.Run("pa-jwt, cold, 1 caller", func(b *testing.B) {
		forgetful := agent.NewVerifier(agent.Config{Registry: w.registry, Fetch: devFetch(), Now: w.clock.Now, Remember: 1})
		other := pa.Token(b, agenttest.Claims{})
		third := pa.Token(b, agenttest.Claims{})
		tokens := []string{token, other, third} // one more than it remembers
		i := 0
		yardstick.Callers(b, 1, func(int) error {
			i++
			_, err := forgetful.Verify(b.Context(), tokens[i%3], audience)
			return err
		})
		raw.Beside(b, 1)
	})
}
