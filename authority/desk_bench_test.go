package authority_test

import (
	"errors"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkDesk asks what the dashboard's pages cost a Brand whose trail has grown
// to a million facts, made over ninety days.
func BenchmarkDesk(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	trip := yardstick.RoundTrip(w.DB.Pool())
	const facts = 1_000_000
	// The chain is not what is measured here.
	w.Exec(b, `ALTER TABLE audit_events DISABLE TRIGGER USER`)
	w.Exec(b, `
		INSERT INTO audit_events (brand_id, seq, at, actor, actor_id, channel, event, grant_id, detail, digest, hash)
		SELECT $1, n, $2::timestamptz - interval '90 days' * (1 - n / $3::float8),
		       CASE n % 4 WHEN 3 THEN 'agent' ELSE 'user' END,
		       CASE n % 4 WHEN 3 THEN 'https://agent.example' ELSE 'guest-' || n / 4 END, 'page',
		       CASE WHEN n % 100000 = 50000 THEN 'grant.reuse_detected'
		            ELSE (ARRAY['request.approved', 'grant.created', 'grant.revoked', 'request.redeemed'])[n % 4 + 1] END,
		       gen_random_uuid(), '{"agent":"https://agent.example"}', '', ''
		  FROM generate_series(1, $3::int) AS n`, w.Hotel.ID, w.Clock.Now(), facts)
	w.Exec(b, `ALTER TABLE audit_events ENABLE TRIGGER USER`)
	w.Exec(b, `VACUUM ANALYZE audit_events`)
	now := w.Clock.Now()
	page := func(which authority.Events, before int64) func() error {
		return func() error {
			got, err := a.Latest(b.Context(), w.Hotel.ID, which, before, 51)
			if err == nil && len(got) == 0 {
				err = errors.New("nothing")
			}
			return err
		}
	}
	for _, what := range []struct {
		name string
		do   func() error
	}{
		{"usage of 90 days", func() error { _, err := a.Usage(b.Context(), w.Hotel.ID, 90); return err }},
		{"usage of 30 days", func() error { _, err := a.Usage(b.Context(), w.Hotel.ID, 30); return err }},
		{"alarms of a day", func() error { _, err := a.Alarms(b.Context(), w.Hotel.ID, now.Add(-24*time.Hour)); return err }},
		{"trail, newest", page(authority.Events{}, 0)},
		{"trail, from the middle", page(authority.Events{}, facts/2)},
		{"trail, a rare event", page(authority.Events{Event: "grant.reuse_detected"}, 0)},
		{"trail, one person", page(authority.Events{Actor: "guest-77"}, 0)},
		{"trail, a day long ago", page(authority.Events{From: now.AddDate(0, 0, -80), Until: now.AddDate(0, 0, -79)}, 0)},
		{"trail, a rare event of a day", page(authority.Events{Event: "grant.reuse_detected", From: now.AddDate(0, 0, -14), Until: now.AddDate(0, 0, -13)}, 0)},
		{"suspensions", func() error { _, err := a.Suspensions(b.Context(), w.Hotel.ID, "guest-77"); return err }},
	} {
		b.Run(what.name+", 1,000,000 facts, 1 caller", func(b *testing.B) {
			yardstick.Callers(b, 1, func(int) error { return what.do() })
			trip.Beside(b, 1)
		})
	}
}

// BenchmarkToll asks what it costs to say how much would end, at the worst: an
// agent that holds nearly all of a million grants.
func BenchmarkToll(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	trip := yardstick.RoundTrip(w.DB.Pool())
	populate(b, w, 0, 1_000_000)
	for _, what := range []struct {
		name  string
		which authority.Which
	}{
		{"all of an agent", authority.Which{Agent: authoritytest.Agent}},
		{"all of a rare agent", authority.Which{Agent: authoritytest.OtherAgent}},
		{"all of a person", authority.Which{Subject: "guest-77"}},
	} {
		b.Run("toll, "+what.name+", 1,000,000 grants, 1 caller", func(b *testing.B) {
			yardstick.Callers(b, 1, func(int) error {
				_, err := a.Toll(b.Context(), w.Hotel.ID, what.which, nil)
				return err
			})
			trip.Beside(b, 1)
		})
	}
	b.Run("end some thousands, 1,000,000 grants, 1 caller", func(b *testing.B) {
		yardstick.Callers(b, 1, func(int) error {
			_, err := a.EndSome(b.Context(), w.Hotel.ID, authority.ByMember("m"), authority.Which{Agent: authoritytest.Agent})
			return err
		})
		trip.Beside(b, 1)
	})
}
