package authority_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/go-cmp/cmp"
)

var alex = authoritytest.Alex

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// M10, P7: only scopes on the card, at least one; duplicates fold, order kept.
func TestBeginTakesOnlyScopesOnTheCard(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	for _, scopes := range [][]string{nil, {"unknown"}, {"bookings:read", "unknown"}, {"Bookings:Read"}, {"orders:read"}} {
		_, err := a.Begin(t.Context(), w.Hotel, alex, scopes)
		wantErr(t, err, authority.ErrScope)
	}
	if n := w.Count(t, `SELECT count(*) FROM device_requests`); n != 0 {
		t.Fatalf("%d requests stored", n)
	}
	s := authoritytest.Begin(t, a, w.Hotel, alex, "extras:order", "bookings:read", "extras:order")
	q, err := a.Ask(t.Context(), w.Hotel.ID, s.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"extras:order", "bookings:read"}, q.Requested); diff != "" {
		t.Fatal(diff)
	}
}

// R1, P9, R43: no code and no refresh token stands in the database in clear.
func TestDatabaseHoldsNoCodeInClear(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
	tokens, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	pending := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	secrets := []string{
		s.DeviceCode, pending.DeviceCode, tokens.Refresh, tokens.JWS,
		string(s.UserCode), string(pending.UserCode), pending.UserCode.String(),
	}
	rows, err := w.Owner.Query(t.Context(), `SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if len(tables) < 10 {
		t.Fatalf("only %d tables seen", len(tables))
	}
	for _, table := range tables {
		var dump *string
		if err := w.Owner.QueryRow(t.Context(), `SELECT string_agg(r::text, E'\n') FROM `+table+` r`).Scan(&dump); err != nil {
			t.Fatal(err)
		}
		if dump == nil {
			continue
		}
		for _, secret := range secrets {
			// bytea prints as hex: look for the bytes as well.
			if strings.Contains(*dump, secret) || strings.Contains(*dump, hexOf(secret)) {
				t.Errorf("table %s holds a secret in clear", table)
			}
		}
	}
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
	return b.String()
}

// P11, R15: thirty starts by one (agent, person), then wait; others go on.
func TestStartsAreLimitedPerPerson(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	for range 30 {
		authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	}
	_, err := a.Begin(t.Context(), w.Hotel, alex, []string{"bookings:read"})
	limit := new(authority.LimitError)
	if !errors.As(err, &limit) || limit.RetryAfter <= 0 {
		t.Fatalf("31st start: %v", err)
	}
	authoritytest.Begin(t, a, w.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: "sam"}, "bookings:read")
	authoritytest.Begin(t, a, w.Shop, alex, "orders:read")
	w.Clock.Advance(authority.RequestLife + time.Second)
	authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
}

// R15: what one agent can pile up at one Brand is bounded; others go on.
func TestWaitingRequestsAreLimitedPerAgent(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	w.Exec(t, `INSERT INTO device_requests (brand_id, id, agent, agent_sub, scopes, device_code_hash, user_code_mac, state, created_at, expires_at)
		SELECT 'harbor-hotel', gen_random_uuid(), $1, 'p' || n, '{bookings:read}', sha256(n::text::bytea), sha256(n::text::bytea), 'pending', $2::timestamptz, $2::timestamptz + interval '10 min'
		  FROM generate_series(1, 5000) n`, alex.Agent, w.Clock.Now())
	_, err := a.Begin(t.Context(), w.Hotel, alex, []string{"bookings:read"})
	if limit := new(authority.LimitError); !errors.As(err, &limit) {
		t.Fatal(err)
	}
	authoritytest.Begin(t, a, w.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "x"}, "bookings:read")
	authoritytest.Begin(t, a, w.Shop, alex, "orders:read")
}

// P5 (M14): a disabled or unknown agent starts nothing; a paused Brand neither.
func TestBeginAsksWhoMayNow(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	w.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, authoritytest.Agent)
	_, err := a.Begin(t.Context(), w.Hotel, alex, []string{"bookings:read"})
	wantErr(t, err, authority.ErrAgentDisabled)
	_, err = a.Begin(t.Context(), w.Hotel, authority.Caller{Agent: "https://nobody.example", Sub: "x"}, []string{"bookings:read"})
	wantErr(t, err, authority.ErrAgentDisabled)
	w.Exec(t, `UPDATE agents SET enabled = true`)
	w.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = $1`, w.Hotel.ID)
	_, err = a.Begin(t.Context(), w.Hotel, alex, []string{"bookings:read"})
	wantErr(t, err, authority.ErrPaused)
	if n := w.Count(t, `SELECT count(*) FROM device_requests`); n != 0 {
		t.Fatalf("%d requests stored", n)
	}
}

// B23: two live codes of one Brand are never equal; a clash draws another.
func TestUserCodesNeverClashWhileLive(t *testing.T) {
	w := authoritytest.New(t)
	// Twice the same bytes, then others: the second start meets the first's code.
	stutter := &stutterReader{}
	a := authority.New(authority.Config{DB: w.DB, Signer: w.Keys, Master: w.Master, Now: w.Clock.Now, Rand: stutter})
	first := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	stutter.again()
	second := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	if first.UserCode == second.UserCode {
		t.Fatal("two live requests share a user code")
	}
	if stutter.repeats < 2 {
		t.Fatal("the clash was not provoked")
	}
	// The same code at another Brand is another request.
	stutter.again()
	elsewhere := authoritytest.Begin(t, a, w.Shop, alex, "orders:read")
	if elsewhere.UserCode != first.UserCode {
		t.Fatal("codes of another Brand must not stand in the way")
	}
	id, _, err := a.Find(t.Context(), w.Shop.ID, elsewhere.UserCode.String(), authority.Visitor{})
	if err != nil || id != elsewhere.ID {
		t.Fatalf("found %v, %v", id, err)
	}
}

// stutterReader yields fresh 32-byte draws (device codes) but, after again(),
// one repeat of its first 16-byte draw (user codes).
type stutterReader struct {
	mu      sync.Mutex
	n       byte
	first   []byte
	repeat  bool
	repeats int
}

func (s *stutterReader) again() { s.repeat = true; s.repeats++ }

func (s *stutterReader) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 16 && s.first == nil {
		s.first = []byte("0123456789abcdef")
		return copy(p, s.first), nil
	}
	if len(p) == 16 && s.repeat {
		s.repeat = false
		s.repeats++
		return copy(p, s.first), nil
	}
	for i := range p {
		s.n += 7
		p[i] = s.n % 230
	}
	return len(p), nil
}
