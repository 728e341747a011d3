package crowd

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// How big the crowd is.
const (
	Grants  = 100_000 // living, each with one unspent refresh token
	Waiting = 10_000  // pending requests
	People  = 1_000   // whose agents wait and are paid out
)

// A Ticket is what one agent holds for one person.
type Ticket struct {
	Who        authority.Caller
	DeviceCode string
	UserCode   authority.UserCode
	Refresh    string
}

var scopes = []string{"bookings:read", "bookings:change"}

// Fill puts the whole crowd, all of one agent, into the Hotel.
func Fill(tb testing.TB, w *authoritytest.World, agent string) (waiting []Ticket) {
	tb.Helper()
	Grow(tb, w, agent, 0, Grants)
	waiting = Wait(tb, w, agent, Waiting)
	// Plans are to be those of a database that has settled.
	w.Exec(tb, `VACUUM ANALYZE`)
	return waiting
}

// Holder is the ticket of the n-th of the Grants: a refresh token to spend.
func Holder(agent string, n int) Ticket {
	return Ticket{
		Who:     authority.Caller{Agent: agent, Sub: "holder-" + strconv.Itoa(n)},
		Refresh: "rt_crowd_" + strconv.Itoa(n),
	}
}

// GrantID is the id of the n-th holder's grant. Ids follow one another in time, as
// version 7 does.
func GrantID(n int) uuid.UUID {
	sum := md5.Sum([]byte(strconv.Itoa(n)))
	const began, digits = 1_700_000_000_000, 15
	return uuid.MustParse(fmt.Sprintf("%012x70008%s", began+n, hex.EncodeToString(sum[:])[:digits]))
}

// Grow adds the grants from the one number to before the other, each with an
// unspent refresh token and a status index, inside the database. Its status lists
// begin behind the first, which Listed may have filled.
func Grow(tb testing.TB, w *authoritytest.World, agent string, from, to int) {
	tb.Helper()
	const id = `(lpad(to_hex(1700000000000 + n), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid`
	const perList = authority.StatusListSize / 2
	ctx := tb.Context()
	conn, err := w.Owner.Acquire(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Release()
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`SET session_replication_role = replica`, nil}, // what is generated refers to what is generated
		{
			`INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at, status_list, status_idx)
			 SELECT $1, ` + id + `, $2, 'holder-' || n, 'guest-' || n, $3, $4::timestamptz - n * interval '1 second',
			        $4::timestamptz + interval '30 days', 1 + n / $7::int, n % $7::int
			   FROM generate_series($5::int, $6::int - 1) AS n`,
			[]any{w.Hotel.ID, agent, scopes, w.Clock.Now(), from, to, perList},
		},
		{
			`INSERT INTO refresh_tokens (brand_id, hash, grant_id, family_id, generation, key_version, created_at)
			 SELECT $1, sha256(convert_to('rt_crowd_' || n, 'UTF8')), ` + id + `, ` + id + `, 0, $2, $3::timestamptz - n * interval '1 second'
			   FROM generate_series($4::int, $5::int - 1) AS n`,
			[]any{w.Hotel.ID, w.Master.Version(), w.Clock.Now(), from, to},
		},
		{
			`INSERT INTO status_entries (brand_id, list, idx, grant_id)
			 SELECT $1, 1 + n / $4::int, n % $4::int, ` + id + ` FROM generate_series($2::int, $3::int - 1) AS n`,
			[]any{w.Hotel.ID, from, to, perList},
		},
		{
			`INSERT INTO status_lists AS l (brand_id, list, used, version)
			 SELECT $1, 1 + n / $4::int, count(*), 0 FROM generate_series($2::int, $3::int - 1) AS n GROUP BY 1 + n / $4::int
			 ON CONFLICT (brand_id, list) DO UPDATE SET used = l.used + excluded.used`,
			[]any{w.Hotel.ID, from, to, perList},
		},
		{`RESET session_replication_role`, nil},
	} {
		if _, err := conn.Exec(ctx, step.sql, step.args...); err != nil {
			tb.Fatalf("grow from %d to %d: %v", from, to, err)
		}
	}
}

// drawn numbers the tickets of a process, so that no code is given out twice.
var (
	mu    sync.Mutex
	drawn int
)

func draw(agent string, n int) []Ticket {
	mu.Lock()
	defer mu.Unlock()
	tickets := make([]Ticket, n)
	for i := range tickets {
		tickets[i] = Ticket{
			Who:        authority.Caller{Agent: agent, Sub: Person(i)},
			DeviceCode: "dc_crowd_" + strconv.Itoa(drawn),
			UserCode:   userCode(drawn),
		}
		drawn++
	}
	return tickets
}

// Person is the sub of the i-th person; there are People of them.
func Person(i int) string { return "person-" + strconv.Itoa(i%People) }

func userCode(n int) authority.UserCode {
	const letters = "BCDFGHJKLMNPQRSTVWXZ"
	var code [8]byte
	for i := range code {
		code[i], n = letters[n%len(letters)], n/len(letters)
	}
	return authority.UserCode(code[:])
}

// Wait makes n pending requests.
func Wait(tb testing.TB, w *authoritytest.World, agent string, n int) []Ticket {
	tb.Helper()
	tickets := draw(agent, n)
	requests(tb, w, tickets, nil)
	return tickets
}

// Allow makes n requests that have just been approved, each with a grant of its
// own: the next poll pays out.
func Allow(tb testing.TB, w *authoritytest.World, agent string, n int) []Ticket {
	tb.Helper()
	tickets := draw(agent, n)
	now := w.Clock.Now()
	ids := make([]uuid.UUID, n)
	put(tb, w, "grants",
		[]string{"brand_id", "id", "agent", "agent_sub", "subject", "scopes", "created_at", "expires_at"},
		n, func(i int) ([]any, error) {
			ids[i] = uuid.Must(uuid.NewV7())
			return []any{
				string(w.Hotel.ID), ids[i], agent, tickets[i].Who.Sub, "guest-of-" + tickets[i].DeviceCode,
				scopes, now, now.AddDate(0, 0, 30),
			}, nil
		})
	requests(tb, w, tickets, ids)
	return tickets
}

// requests stores the tickets' requests: pending, or approved where there are grants.
func requests(tb testing.TB, w *authoritytest.World, tickets []Ticket, grants []uuid.UUID) {
	tb.Helper()
	now := w.Clock.Now()
	// Longer than the ten minutes of the rules: the clock of a benchmark runs fast.
	const life = 24 * time.Hour
	put(tb, w, "device_requests",
		[]string{
			"brand_id", "id", "agent", "agent_sub", "scopes", "device_code_hash", "user_code_mac",
			"user_code_sealed", "state", "grant_id", "decided_at", "created_at", "expires_at",
		},
		len(tickets), func(i int) ([]any, error) {
			t := tickets[i]
			hash := sha256.Sum256([]byte(t.DeviceCode))
			mac, err := w.Master.MAC(w.Master.Version(), w.Hotel.ID, "user-code", []byte(t.UserCode))
			if err != nil {
				return nil, err
			}
			row := []any{
				string(w.Hotel.ID), uuid.Must(uuid.NewV7()), t.Who.Agent, t.Who.Sub, scopes, hash[:], mac,
				nil, "approved", nil, now, now, now.Add(life),
			}
			const sealed, state, grant, decided = 7, 8, 9, 10
			if grants != nil {
				row[grant] = grants[i]
				return row, nil
			}
			row[sealed], err = w.Master.Seal(tb.Context(), w.Hotel.ID, "user-code", []byte(t.UserCode))
			row[state], row[decided] = "pending", nil
			return row, err
		})
}

func put(tb testing.TB, w *authoritytest.World, table string, columns []string, n int, row func(int) ([]any, error)) {
	tb.Helper()
	copied, err := w.Owner.CopyFrom(tb.Context(), pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, row))
	if err == nil && copied != int64(n) {
		err = fmt.Errorf("%d of %d rows", copied, n)
	}
	if err != nil {
		tb.Fatalf("fill %s: %v", table, err)
	}
}
