package authority_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/e2e/bench/yardstick"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// populate makes grants from the first up to the last of two agents, one of them
// rare, a hundredth ended. Indexes are made anew afterwards and foreign keys not
// looked up, which turns minutes into seconds.
func populate(b *testing.B, w *authoritytest.World, first, last int) {
	b.Helper()
	const indexes = `
		SELECT indexname, indexdef FROM pg_indexes
		 WHERE tablename = 'grants' AND indexname <> 'grants_pkey' ORDER BY indexname`
	// Ids follow one another in time, as version 7 does.
	const fill = `
		INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at, ended_at, end_reason)
		SELECT @brand, (lpad(to_hex(@epoch::bigint + n), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid,
		       CASE WHEN n % 1000 = 7 THEN @rare ELSE @common END, 'holder-' || n, 'guest-' || n, '{bookings:read,bookings:change}',
		       @now::timestamptz, @now::timestamptz + interval '30 days',
		       CASE WHEN n % 100 = 0 THEN @now::timestamptz END, CASE WHEN n % 100 = 0 THEN 'revoked_by_user' END
		  FROM generate_series(@first::int, @last::int - 1) AS n`
	err := pgx.BeginFunc(b.Context(), w.Owner, func(tx pgx.Tx) error {
		rows, err := tx.Query(b.Context(), indexes)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Name, Definition string }])
		if err != nil {
			return err
		}
		run := func(q string, args ...any) {
			if err == nil {
				_, err = tx.Exec(b.Context(), q, args...)
			}
		}
		for _, i := range found {
			run(`DROP INDEX ` + i.Name)
		}
		run(`SET LOCAL session_replication_role = replica`)
		run(fill, pgx.NamedArgs{
			"brand": w.Hotel.ID, "epoch": benchEpoch, "rare": authoritytest.OtherAgent, "common": authoritytest.Agent,
			"now": w.Clock.Now(), "first": first, "last": last,
		})
		for _, i := range found {
			run(i.Definition)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	w.Exec(b, `VACUUM ANALYZE grants`)
}

// benchEpoch is the millisecond in which the first of these grants was made.
const benchEpoch = 1_700_000_000_000

// bornAt is the smallest id of the n-th grant's millisecond.
func bornAt(n int) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(benchEpoch+n)<<16)
	return id
}

// BenchmarkList asks whether a page of the admins' list gets dearer with what a
// Brand has piled up.
func BenchmarkList(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	trip := yardstick.RoundTrip(w.DB.Pool())
	const few, many = 1_000, 1_000_000
	have := 0
	for _, n := range []struct {
		grants int
		said   string
	}{{few, "1,000"}, {many, "1,000,000"}} {
		filled := false
		for _, what := range []struct {
			name   string
			filter authority.Filter
			deep   bool
		}{
			{"page of 50", authority.Filter{}, false},
			{"page of 50, from the middle", authority.Filter{}, true},
			{"page of 50, of a rare agent", authority.Filter{Agent: authoritytest.OtherAgent}, false},
			{"page of 50, ended", authority.Filter{State: authority.Ended}, false},
			{"one person's", authority.Filter{Subject: "guest-77"}, false},
			{"page of 50, of a rare permission of a rare agent", authority.Filter{Agent: authoritytest.OtherAgent, Scope: "bookings:change"}, false},
		} {
			b.Run(fmt.Sprintf("%s, %s grants, 1 caller", what.name, n.said), func(b *testing.B) {
				if !filled { // only where such a benchmark was asked for
					populate(b, w, have, n.grants)
					have, filled = n.grants, true
				}
				var after uuid.UUID
				if what.deep {
					after = bornAt(n.grants / 2)
				}
				yardstick.Callers(b, 1, func(int) error {
					got, err := a.List(b.Context(), w.Hotel.ID, what.filter, after, 50)
					if err == nil && len(got) == 0 {
						return fmt.Errorf("%s: nothing", what.name)
					}
					return err
				})
				trip.Beside(b, 1)
			})
		}
	}
}

// BenchmarkTrail is a trail verified, from the database to both hashes. One op
// is a thousand events.
func BenchmarkTrail(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	trip := yardstick.RoundTrip(w.DB.Pool())
	const events = 1_000
	w.Exec(b, `
		INSERT INTO audit_events (brand_id, at, actor, actor_id, channel, event, grant_id, detail)
		SELECT $1, $2, 'user', 'guest-' || n, 'page', 'grant.created', gen_random_uuid(),
		       json_build_object('agent', 'https://agent.example', 'scopes', '{bookings:read,bookings:change}'::text[])
		  FROM generate_series(1, $3::int) AS n`, w.Hotel.ID, w.Clock.Now(), events)
	b.Run("verify 1,000 events, 1 caller", func(b *testing.B) {
		yardstick.Callers(b, 1, func(int) error {
			p, err := a.VerifyTrail(b.Context(), w.Hotel.ID, nil)
			if err == nil && p.Events != events {
				err = fmt.Errorf("%d events", p.Events)
			}
			return err
		})
		trip.Beside(b, 1)
	})
}
