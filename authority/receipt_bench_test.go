package authority_test

import (
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/e2e/bench/crowd"
	"countersign.dev/e2e/bench/yardstick"
)

// shift is a Brand at work: the holders of many grants take turns, each a new one,
// and the clock goes on by a millisecond for each.
type shift struct {
	w      *authoritytest.World
	tokens []string
	served atomic.Int64
}

func newShift(b *testing.B, w *authoritytest.World) *shift {
	b.Helper()
	const holders = 500
	s := &shift{w: w, tokens: make([]string, holders)}
	crowd.Grow(b, w, authoritytest.Agent, 0, holders)
	for n := range holders {
		var err error
		if s.tokens[n], err = w.Keys.Sign(b.Context(), w.Hotel.ID, signing.TypToken, token(w, n)); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func (s *shift) next() authority.Turn {
	n := s.served.Add(1)
	if n%8 == 0 { // not so far that the tokens end
		s.w.Clock.Advance(time.Millisecond)
	}
	return authority.Turn{
		Token: s.tokens[int(n)%len(s.tokens)], Agent: authoritytest.Agent, ContextID: "talk-" + strconv.FormatInt(n/10, 10),
		MessageID: strconv.FormatInt(n, 10), ScopesUsed: []string{"bookings:read"},
		Actions: []authority.Action{{Tool: "bookings.list", Args: []byte(`{"from":"2026-12-01","to":"2026-12-04","guests":2}`)}},
	}
}

// BenchmarkReceipt is a turn countersigned: judged, signed, and in the log.
func BenchmarkReceipt(b *testing.B) {
	w := authoritytest.New(b)
	a, raw := w.Authority(nil), yardstick.Sign(b)
	s := newShift(b, w)
	for _, callers := range []int{1, 16, 100} {
		b.Run("local keyring, "+yardstick.Called(callers), func(b *testing.B) {
			yardstick.Callers(b, callers, func(int) error {
				_, err := a.Countersign(b.Context(), w.Hotel, s.next())
				return err
			})
			raw.Beside(b, min(callers, 2))
		})
	}
	for _, callers := range []int{1, 4} {
		b.Run("local keyring, batches of 100, "+yardstick.Called(callers), func(b *testing.B) {
			yardstick.Batches(b, callers, 100, func(_, count int) error {
				turns := make([]authority.Turn, count)
				for i := range turns {
					turns[i] = s.next()
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
}

// BenchmarkLog asks whether appending and proving get dearer with the log.
func BenchmarkLog(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	s := newShift(b, w)
	trip := yardstick.RoundTrip(w.DB.Pool())
	for _, size := range []struct {
		entries int64
		name    string
	}{{1_000, "1,000"}, {1_000_000, "1,000,000"}} {
		growLog(b, w, size.entries)
		run := func(what string, do func() error) {
			b.Run(what+", "+size.name+" receipts", func(b *testing.B) {
				yardstick.Callers(b, 1, func(int) error { return do() })
				trip.Beside(b, 1)
			})
		}
		run("append", func() error {
			_, err := a.Countersign(b.Context(), w.Hotel, s.next())
			return err
		})
		run("inclusion", func() error {
			_, err := a.Inclusion(b.Context(), w.Hotel.ID, rand.Int64N(size.entries), size.entries)
			return err
		})
		run("consistency", func() error {
			_, err := a.Consistency(b.Context(), w.Hotel.ID, 1+rand.Int64N(size.entries-1), size.entries)
			return err
		})
	}
}

// growLog fills the log up to so many entries, in the database. They are of the
// right size and in the right places; what they say, and their hashes, is made up.
func growLog(b *testing.B, w *authoritytest.World, entries int64) {
	b.Helper()
	const fill = `
		WITH head AS (SELECT coalesce((SELECT size FROM log_heads WHERE brand_id = 'harbor-hotel'), 0) AS size)
		INSERT INTO receipts (brand_id, seq, grant_id, context_id, message_id, content, at, late, jws, salt, entry, hashes)
		SELECT 'harbor-hotel', n, md5((n % 100000)::text)::uuid, 'old-' || n / 10, 'old-' || n, sha256(n::text::bytea),
		       $2::timestamptz - n * interval '1 millisecond' - interval '1 day', false, repeat('x', 700), sha256(n::text::bytea), repeat('x', 600),
		       substr(decode(repeat(md5(n::text), 48), 'hex'), 1, 32 * (1 + length(substring(reverse((n + 1)::bit(40)::text) from '^0*'))))
		  FROM head, generate_series(head.size, $1::bigint - 1) n`
	const move = `
		INSERT INTO log_heads VALUES ('harbor-hotel', $1, decode(repeat('00', 32 * $2::int), 'hex'), sha256('last'), $3)
		ON CONFLICT (brand_id) DO UPDATE SET size = excluded.size, edge = excluded.edge`
	ones := 0
	for n := entries; n > 0; n &= n - 1 {
		ones++
	}
	w.Exec(b, fill, entries, w.Clock.Now())
	w.Exec(b, move, entries, ones, w.Clock.Now())
	w.Exec(b, `VACUUM ANALYZE receipts`)
}
