package transit_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkReceipt is a turn countersigned with a key that rests in Vault: judged,
// signed, and in the log.
func BenchmarkReceipt(b *testing.B) {
	w := authoritytest.New(b)
	v := signingtest.StartVault(b)
	c := transit.Config{Address: v.Addr, Auth: transit.Token(v.RootToken)}
	auth, err := transit.Setup(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	c.Auth = auth
	backend, err := transit.New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(backend.Close)
	w.Exec(b, `DELETE FROM signing_keys WHERE brand_id = 'harbor-hotel'`)
	keys := signing.NewKeys(signing.Config{DB: w.DB, Backends: []signing.Backend{backend}, Log: slog.New(slog.DiscardHandler), Now: w.Clock.Now})
	if err := keys.Ensure(b.Context(), w.Hotel.ID, backend.Name(), signing.ES256); err != nil {
		b.Fatal(err)
	}
	a := authority.New(authority.Config{DB: w.DB, Signer: keys, Verifier: keys, Master: w.Master, Now: w.Clock.Now})
	const holders = 200
	tokens := make([]string, holders)
	for n := range tokens {
		who := authority.Caller{Agent: authoritytest.Agent, Sub: "sub-" + strconv.Itoa(n)}
		s := authoritytest.Begin(b, a, w.Hotel, who, "bookings:read")
		authoritytest.Approve(b, a, w.Hotel, s, "guest-"+strconv.Itoa(n), "bookings:read")
		paid, err := a.Poll(b.Context(), w.Hotel, who, s.DeviceCode)
		if err != nil {
			b.Fatal(err)
		}
		tokens[n] = paid.JWS
	}
	var served atomic.Int64
	next := func() authority.Turn {
		n := served.Add(1)
		if n%4 == 0 {
			w.Clock.Advance(1e6)
		}
		return authority.Turn{
			Token: tokens[int(n)%holders], Agent: authoritytest.Agent, ContextID: fmt.Sprint("talk-", n/10), MessageID: fmt.Sprint(n),
			ScopesUsed: []string{"bookings:read"}, Actions: []authority.Action{{Tool: "bookings.list"}},
		}
	}
	raw := yardstick.Sign(b)
	for _, callers := range []int{1, 100} {
		b.Run("Vault, "+yardstick.Called(callers), func(b *testing.B) {
			yardstick.Callers(b, callers, func(int) error {
				_, err := a.Countersign(b.Context(), w.Hotel, next())
				return err
			})
			raw.Beside(b, min(callers, 2))
		})
	}
	b.Run("Vault, batches of 100, 1 caller", func(b *testing.B) {
		yardstick.Batches(b, 1, 100, func(_, count int) error {
			turns := make([]authority.Turn, count)
			for i := range turns {
				turns[i] = next()
			}
			for _, r := range a.CountersignMany(b.Context(), w.Hotel, turns) {
				if r.Err != nil {
					return r.Err
				}
			}
			return nil
		})
		raw.Beside(b, 2)
	})
}
