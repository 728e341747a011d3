package authority_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/e2e/bench/crowd"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// BenchmarkPostgreSQL is what the database asks of everybody: a round trip, the
// same inside a Brand's fence, and a write that a commit has made a fact. On a
// private test server fsync is off, and the last is dearer in earnest.
func BenchmarkPostgreSQL(b *testing.B) {
	w := authoritytest.New(b)
	var fsync, version string
	if err := w.Owner.QueryRow(b.Context(), `SELECT current_setting('fsync'), current_setting('server_version')`).Scan(&fsync, &version); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("postgresql: %s\nfsync: %s\n", version, fsync) // configuration lines of the benchmark format
	trip := yardstick.RoundTrip(w.DB.Pool())
	for _, n := range []int{1, 2, 16} {
		b.Run("round trip, "+yardstick.Called(n), func(b *testing.B) { trip.Benchmark(b, n) })
	}
	b.Run("round trip in the fence, 1 caller", func(b *testing.B) {
		yardstick.Callers(b, 1, func(int) error {
			_, err := tenants.One[struct{ N int }](b.Context(), w.DB, w.Hotel.ID, `SELECT 1 AS n`, pgx.NamedArgs{})
			return err
		})
		trip.Beside(b, 1)
	})
	b.Run("write of one row in the fence, 1 caller", func(b *testing.B) {
		const q = `INSERT INTO audit_events (brand_id, at, actor, event) VALUES (@brand, @at, 'system', 'benchmark')`
		args := pgx.NamedArgs{"brand": w.Hotel.ID, "at": w.Clock.Now()}
		yardstick.Callers(b, 1, func(int) error {
			_, err := w.DB.Exec(b.Context(), w.Hotel.ID, q, args)
			return err
		})
		trip.Beside(b, 1)
	})
}

// BenchmarkRules is every rule that somebody waits for, at a Brand with 100,000
// grants and 10,000 people who have not decided yet.
func BenchmarkRules(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	trip := yardstick.RoundTrip(w.DB.Pool())
	rota := &crowd.Rota{Clock: w.Clock, Tickets: crowd.Fill(b, w, authoritytest.Agent)}

	b.Run("poll on time, 1 caller", func(b *testing.B) {
		yardstick.Callers(b, 1, func(int) error {
			t := rota.Next()
			_, err := a.Poll(b.Context(), w.Hotel, t.Who, t.DeviceCode)
			return only(authority.ErrPending, err)
		})
		trip.Beside(b, 1)
	})
	b.Run("poll too soon, 1 caller", func(b *testing.B) {
		t := rota.Next()
		_, _ = a.Poll(b.Context(), w.Hotel, t.Who, t.DeviceCode)
		yardstick.Callers(b, 1, func(int) error {
			_, err := a.Poll(b.Context(), w.Hotel, t.Who, t.DeviceCode)
			return only(authority.ErrTooSoon, err)
		})
		trip.Beside(b, 1)
	})
	b.Run("redeem, 1 caller", func(b *testing.B) {
		tickets := crowd.Allow(b, w, authoritytest.Agent, b.N)
		yardstick.Callers(b, 1, func(int) error {
			t := tickets[0]
			tickets = tickets[1:]
			_, err := a.Poll(b.Context(), w.Hotel, t.Who, t.DeviceCode)
			return err
		})
		trip.Beside(b, 1)
	})
	held := 0
	b.Run("refresh, 1 caller", func(b *testing.B) {
		t := crowd.Holder(authoritytest.Agent, held)
		held++
		yardstick.Callers(b, 1, func(int) error {
			paid, err := a.Refresh(b.Context(), w.Hotel, t.Who, t.Refresh, nil)
			t.Refresh = paid.Refresh
			return err
		})
		trip.Beside(b, 1)
	})
	for _, n := range []int{1, 16} {
		b.Run("find by user code, "+yardstick.Called(n), func(b *testing.B) {
			yardstick.Callers(b, n, func(caller int) error {
				visitor := authority.Visitor{Session: strconv.Itoa(caller), Address: "192.0.2." + strconv.Itoa(caller)}
				_, _, err := a.Find(b.Context(), w.Hotel.ID, string(rota.Next().UserCode), visitor)
				return err
			})
			trip.Beside(b, n)
		})
	}
}

// only is nil for the refusal that was to come.
func only(want, got error) error {
	if errors.Is(got, want) {
		return nil
	}
	return fmt.Errorf("%w came instead of %w", got, want)
}

// BenchmarkBegin asks whether a start gets dearer with what the agent has piled
// up already: it is counted at every start.
func BenchmarkBegin(b *testing.B) {
	w := authoritytest.New(b)
	a := w.Authority(nil)
	trip := yardstick.RoundTrip(w.DB.Pool())
	started := 0
	begin := func() error {
		started++ // each person starts once, so that only the agent's limit is near
		who := authority.Caller{Agent: authoritytest.Agent, Sub: "starter-" + strconv.Itoa(started)}
		_, err := a.Begin(b.Context(), w.Hotel, who, []string{"bookings:read", "bookings:change"})
		return err
	}
	b.Run("start, few waiting, 1 caller", func(b *testing.B) {
		yardstick.Callers(b, 1, func(int) error {
			if started%100 == 0 {
				w.Clock.Advance(authority.RequestLife)
			}
			return begin()
		})
		trip.Beside(b, 1)
	})
	w.Clock.Advance(authority.RequestLife)
	crowd.Wait(b, w, authoritytest.Agent, 4500)
	w.Exec(b, `VACUUM ANALYZE`)
	b.Run("start, 4,500 waiting, 1 caller", func(b *testing.B) {
		room := 0
		yardstick.Callers(b, 1, func(int) error {
			if room--; room < 0 {
				b.StopTimer()
				room = 400
				w.Exec(b, `DELETE FROM device_requests WHERE agent_sub LIKE 'starter-%'`)
				b.StartTimer()
			}
			return begin()
		})
		trip.Beside(b, 1)
	})
}
