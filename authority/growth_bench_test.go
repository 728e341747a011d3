package authority_test

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/e2e/bench/crowd"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
)

// BenchmarkGrowth asks whether what agents and Brands wait for gets dearer with the
// grants that a Brand has. Whose turn it is jumps through all of them.
func BenchmarkGrowth(b *testing.B) {
	w := authoritytest.New(b)
	a := told(b, w)
	trip := yardstick.RoundTrip(w.DB.Pool())
	grown := 0
	for _, size := range []struct {
		grants int
		name   string
	}{{1_000, "1,000"}, {10_000, "10,000"}, {100_000, "100,000"}, {1_000_000, "1,000,000"}} {
		crowd.Grow(b, w, authoritytest.Agent, grown, size.grants)
		grown = size.grants
		w.Exec(b, `VACUUM ANALYZE`)
		turn := 0
		next := func() int {
			const prime = 7919
			turn++
			return turn * prime % size.grants
		}
		run := func(what string, do func() error) {
			b.Run(what+", "+size.name+" grants", func(b *testing.B) {
				yardstick.Callers(b, 1, func(int) error { return do() })
				trip.Beside(b, 1)
			})
		}
		held := make(map[int]string) // whoever comes again has a successor
		run("refresh", func() error {
			n := next()
			t := crowd.Holder(authoritytest.Agent, n)
			if successor, ok := held[n]; ok {
				t.Refresh = successor
			}
			paid, err := a.Refresh(b.Context(), w.Hotel, t.Who, t.Refresh, nil)
			held[n] = paid.Refresh
			return err
		})
		run("introspect", func() error {
			_, err := a.Standing(b.Context(), w.Hotel, token(w, next()))
			return err
		})
		left := 0
		b.Run("revoke, "+size.name+" grants", func(b *testing.B) {
			yardstick.Callers(b, 1, func(int) error {
				if left--; left < 0 {
					b.StopTimer()
					left = 500
					w.Exec(b, `UPDATE grants SET ended_at = NULL, end_reason = NULL WHERE ended_at IS NOT NULL`)
					w.Exec(b, `UPDATE status_entries SET invalid_at = NULL WHERE invalid_at IS NOT NULL`)
					w.Exec(b, `DELETE FROM river_job`) // nobody delivers here
					w.Exec(b, `DELETE FROM webhook_deliveries`)
					b.StartTimer()
				}
				n := next()
				return a.EndByUser(b.Context(), w.Hotel.ID, "guest-"+strconv.Itoa(n), crowd.GrantID(n))
			})
			trip.Beside(b, 1)
		})
		w.Exec(b, `UPDATE grants SET ended_at = NULL, end_reason = NULL WHERE ended_at IS NOT NULL`)
		w.Exec(b, `UPDATE status_entries SET invalid_at = NULL WHERE invalid_at IS NOT NULL`)
		w.Exec(b, `DELETE FROM refresh_tokens WHERE generation > 0`)
		w.Exec(b, `UPDATE refresh_tokens SET used_at = NULL WHERE used_at IS NOT NULL`)
	}
}

// told are the rules as they run: whoever ends a grant writes to the outbox that a
// receiver of the Brand is to hear of it.
func told(b *testing.B, w *authoritytest.World) *authority.Authority {
	b.Helper()
	edit := w.Authority(nil).Editor(authority.ByUpkeep())
	courier, err := events.NewCourier(events.Config{
		DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Log: slog.New(slog.DiscardHandler), AllowLoopback: true, Edit: edit,
	})
	if err != nil {
		b.Fatal(err)
	}
	_, _, err = tenants.CreateWebhook(b.Context(), edit, w.Master, tenants.Site{AllowLoopback: true}, w.Hotel.ID, tenants.WebhookDraft{URL: "http://127.0.0.1:9/hook"})
	if err != nil {
		b.Fatal(err)
	}
	return authority.New(authority.Config{DB: w.DB, Signer: w.NewKeys(), Verifier: w.Keys, Master: w.Master, Now: w.Clock.Now, Announce: courier.Announce})
}

// token is what the n-th holder's access token says.
func token(w *authoritytest.World, n int) []byte {
	now := w.Clock.Now()
	payload, _ := json.Marshal(map[string]any{
		"iss": w.Hotel.Issuer, "aud": w.Hotel.InterfaceURL, "sub": "guest-" + strconv.Itoa(n),
		"client_id": authoritytest.Agent, "scope": "bookings:read", "grant_id": crowd.GrantID(n),
		"iat": now.Unix(), "exp": now.Add(authority.RequestLife).Unix(), "jti": strconv.Itoa(n),
	})
	return payload
}
