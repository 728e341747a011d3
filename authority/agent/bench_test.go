package agent_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
)

// BenchmarkVerify compares a token seen before with one seen for the first time,
// and both with the bare signature.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	pa := w.pa(b)
	token := pa.Token(b, agenttest.Claims{})
	w.accepts(b, token)

	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.verifier.Verify(b.Context(), token, audience); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered, in parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := w.verifier.Verify(b.Context(), token, audience); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("cold", func(b *testing.B) {
		forgetful := agent.NewVerifier(agent.Config{Registry: w.registry, Fetch: devFetch(), Now: w.clock.Now, Remember: 1})
		other := pa.Token(b, agenttest.Claims{})
		third := pa.Token(b, agenttest.Claims{})
		tokens := []string{token, other, third} // one more than it remembers
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := forgetful.Verify(b.Context(), tokens[i%3], audience); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare ES256", func(b *testing.B) {
		key, _ := pa.Key()
		digest := sha256.Sum256([]byte(token))
		signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
				b.Fatal("does not verify")
			}
		}
	})
}
