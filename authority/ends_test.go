package authority_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// delegation is one agent's for one person at one Brand, and what it holds.
type delegation struct {
	brand   *tenants.Brand
	who     authority.Caller
	subject string
	tokens  authority.Tokens
}

// town is two agents, two people and two Brands: eight delegations, in which
// every id but the grant's occurs more than once (B96).
type town struct {
	*authoritytest.World
	t     *testing.T
	rules *authority.Authority
	all   map[string]*delegation // "hotel one alex"
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := authoritytest.New(t)
	tn := &town{World: w, t: t, rules: w.Authority(nil), all: make(map[string]*delegation)}
	for _, b := range []*tenants.Brand{w.Hotel, w.Shop} {
		for agent, issuer := range map[string]string{"one": authoritytest.Agent, "two": authoritytest.OtherAgent} {
			for _, person := range []string{"alex", "sam"} {
				d := &delegation{brand: b, who: authority.Caller{Agent: issuer, Sub: person}, subject: "guest-of-" + person}
				s := authoritytest.Begin(t, tn.rules, b, d.who, "bookings:read")
				authoritytest.Approve(t, tn.rules, b, s, d.subject, "bookings:read")
				var err error
				if d.tokens, err = tn.rules.Poll(t.Context(), b, d.who, s.DeviceCode); err != nil {
					t.Fatal(err)
				}
				place, _, _ := strings.Cut(strings.ReplaceAll(string(b.ID), "fern", "shop-"), "-")
				tn.all[strings.ReplaceAll(place, "harbor", "hotel")+" "+agent+" "+person] = d
			}
		}
	}
	return tn
}

// works reports whether the delegation's tokens do: its access token is worth
// something, and its refresh token pays out. The two must agree.
func (tn *town) works(name string) bool {
	tn.t.Helper()
	d := tn.all[name]
	payload, err := tn.Keys.Verify(tn.t.Context(), d.brand.ID, signing.TypToken, d.tokens.JWS)
	if err != nil {
		tn.t.Fatal(err)
	}
	_, standing := tn.rules.Standing(tn.t.Context(), d.brand, payload)
	next, refresh := tn.rules.Refresh(tn.t.Context(), d.brand, d.who, d.tokens.Refresh, nil)
	if (standing == nil) != (refresh == nil) {
		tn.t.Fatalf("%s: worth %v, but refresh %v", name, standing, refresh)
	}
	if refresh == nil {
		d.tokens = next
	}
	return refresh == nil
}

// dead checks that of all delegations exactly those do not work whose names
// contain all the words.
func (tn *town) dead(when string, words ...string) {
	tn.t.Helper()
	for name := range tn.all {
		named := len(words) > 0
		for _, w := range words {
			named = named && strings.Contains(name, w)
		}
		if tn.works(name) == named {
			tn.t.Errorf("%s: %s works: %v", when, name, !named)
		}
	}
}

// B29, B34, B96, R51: whoever ends whatever, exactly the named thing ends, at
// once and for good: every other token is tried.
func TestExactlyTheNamedThingEnds(t *testing.T) {
	operator := authority.ByOperator()
	for what, tt := range map[string]struct {
		end   func(*town) error
		words []string
		actor string // who stands in the trail
	}{
		"one refresh token": {func(tn *town) error {
			d := tn.all["hotel one alex"]
			return tn.rules.EndByToken(t.Context(), d.brand.ID, d.who, d.tokens.Refresh)
		}, []string{"hotel", "one", "alex"}, "agent"},
		"one grant, by its agent": {func(tn *town) error {
			d := tn.all["shop two sam"]
			return tn.rules.EndByAgent(t.Context(), d.brand.ID, d.who, d.tokens.GrantID)
		}, []string{"shop", "two", "sam"}, "agent"},
		"one grant, by its person": {func(tn *town) error {
			d := tn.all["hotel two alex"]
			return tn.rules.EndByUser(t.Context(), d.brand.ID, d.subject, d.tokens.GrantID)
		}, []string{"hotel", "two", "alex"}, "user"},
		"one grant, by an admin": {func(tn *town) error {
			d := tn.all["hotel two sam"]
			_, err := tn.rules.End(t.Context(), d.brand.ID, authority.ByAdminKey("key"), authority.Which{Grant: d.tokens.GrantID})
			return err
		}, []string{"hotel", "two", "sam"}, "admin"},
		"its only permission": {func(tn *town) error {
			d := tn.all["hotel one sam"]
			return tn.rules.EndScope(t.Context(), d.brand.ID, operator, d.tokens.GrantID, "bookings:read")
		}, []string{"hotel", "one", "sam"}, "operator"},
		"an agent at one Brand": {func(tn *town) error {
			_, err := tn.rules.End(t.Context(), tn.Hotel.ID, operator, authority.Which{Agent: authoritytest.Agent})
			return err
		}, []string{"hotel", "one"}, "operator"},
		"an agent everywhere": {func(tn *town) error {
			_, here := tn.rules.End(t.Context(), tn.Hotel.ID, operator, authority.Which{Agent: authoritytest.Agent})
			_, there := tn.rules.End(t.Context(), tn.Shop.ID, operator, authority.Which{Agent: authoritytest.Agent})
			return errors.Join(here, there)
		}, []string{"one"}, "operator"},
		"a person at one Brand": {func(tn *town) error {
			_, err := tn.rules.End(t.Context(), tn.Shop.ID, operator, authority.Which{Subject: "guest-of-alex"})
			return err
		}, []string{"shop", "alex"}, "operator"},
		"a person's use of an agent": {func(tn *town) error {
			_, err := tn.rules.End(t.Context(), tn.Shop.ID, operator, authority.Which{Subject: "guest-of-alex", Agent: authoritytest.OtherAgent})
			return err
		}, []string{"shop", "two", "alex"}, "operator"},
		"everything at one Brand": {func(tn *town) error {
			n, err := tn.rules.EndAll(t.Context(), tn.Shop.ID, operator)
			if n != 4 {
				t.Errorf("%d ended", n)
			}
			return err
		}, []string{"shop"}, "operator"},
		"a Brand": {func(tn *town) error {
			n, err := tn.rules.Close(t.Context(), tn.Shop.ID, operator)
			if n != 4 {
				t.Errorf("%d ended", n)
			}
			return err
		}, []string{"shop"}, "operator"},
	} {
		t.Run(what, func(t *testing.T) {
			tn := newTown(t)
			tn.t = t
			tn.dead("before")
			if err := tt.end(tn); err != nil {
				t.Fatal(err)
			}
			tn.dead("after", tt.words...)
			tn.Clock.Advance(time.Minute)
			tn.dead("a minute later", tt.words...)
			if err := tn.rules.Resume(t.Context(), tn.Shop.ID, operator, "guest-of-alex"); err != nil { // nothing brings it back
				t.Fatal(err)
			}
			tn.dead("for good", tt.words...)
			ended := tn.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`)
			if n := tn.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked' AND actor = $1`, tt.actor); n != ended || n == 0 {
				t.Errorf("%d ended, %d told of %s", ended, n, tt.actor)
			}
		})
	}
}

// “Suspending is reversible”: an agent disabled, a Brand paused or a user
// suspended stops exactly that, ends nothing, and goes on as it was.
func TestWhatIsSuspendedComesBack(t *testing.T) {
	operator := authority.ByOperator()
	state := func(to func(context.Context, tenants.Editor, tenants.BrandID) error) func(*town) error {
		return func(tn *town) error { return to(t.Context(), tn.rules.Editor(operator), tn.Hotel.ID) }
	}
	for what, tt := range map[string]struct {
		stop, resume func(*town) error
		words        []string
	}{
		"agent": {
			func(tn *town) error {
				tn.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, authoritytest.OtherAgent)
				return nil
			},
			func(tn *town) error {
				tn.Exec(t, `UPDATE agents SET enabled = true WHERE issuer = $1`, authoritytest.OtherAgent)
				return nil
			},
			[]string{"two"},
		},
		"Brand": {state(tenants.Stop), state(tenants.Start), []string{"hotel"}},
		"user": {
			func(tn *town) error { return tn.rules.Suspend(t.Context(), tn.Shop.ID, operator, "guest-of-sam") },
			func(tn *town) error { return tn.rules.Resume(t.Context(), tn.Shop.ID, operator, "guest-of-sam") },
			[]string{"shop", "sam"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			tn := newTown(t)
			tn.t = t
			for range 2 {
				if err := tt.stop(tn); err != nil {
					t.Fatal(err)
				}
				tn.dead("stopped", tt.words...)
				tn.Clock.Advance(time.Minute)
				if err := tt.resume(tn); err != nil {
					t.Fatal(err)
				}
				tn.dead("resumed")
			}
			if n := tn.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
				t.Errorf("%d grants ended", n)
			}
		})
	}
}

// Closing waits for an approval under way, or the approval for closing: either
// way no grant is born into a closed Brand.
func TestNoGrantIsBornIntoAClosedBrand(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	tx, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // committed below
	if _, err := tx.Exec(t.Context(), `UPDATE brands SET state = 'closed' WHERE id = $1`, w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answered <- authoritytest.TryApprove(t.Context(), a, w.Hotel, s, "guest-7", "bookings:read")
	}()
	awaitLock(t, w, answered)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-answered, authority.ErrPaused)
	if n := w.Count(t, `SELECT count(*) FROM grants`); n != 0 {
		t.Errorf("%d grants", n)
	}
}

// awaitLock returns when somebody waits for a lock.
func awaitLock(t *testing.T, w *authoritytest.World, answered <-chan error) {
	t.Helper()
	const q = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for w.Count(t, q) == 0 {
		select {
		case err := <-answered:
			t.Fatalf("nobody waited: %v", err)
		default:
		}
	}
}

// Ending many goes on until none is left, also where somebody else has just
// ended the ones that it found.
func TestEndingManyLeavesNone(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	const many = 1200
	w.Exec(t, `INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at)
		SELECT 'harbor-hotel', gen_random_uuid(), $1, n::text, 'guest-7', '{bookings:read}', $2::timestamptz, $2::timestamptz + interval '1 day'
		  FROM generate_series(1, $3::int) n`, authoritytest.Agent, w.Clock.Now(), many)
	// The first batch is locked while it is being ended by somebody else.
	tx, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // committed below
	const first = `UPDATE grants SET ended_at = @now, end_reason = 'x' WHERE id IN (SELECT id FROM grants ORDER BY id LIMIT 500)`
	if _, err := tx.Exec(t.Context(), first, pgx.NamedArgs{"now": w.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	ended := 0
	answered := make(chan error, 1)
	go func() {
		var err error
		ended, err = a.End(t.Context(), w.Hotel.ID, authority.ByOperator(), authority.Which{Agent: authoritytest.Agent})
		answered <- err
	}()
	awaitLock(t, w, answered)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil || ended != many-500 {
		t.Errorf("%d ended, %v", ended, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NULL`); n != 0 {
		t.Errorf("%d live", n)
	}
}

// What ran out has expired, whoever would end it before upkeep comes by: the Brand
// is not told that somebody revoked it, and of an end later than it was.
func TestWhatRanOutIsNotRevoked(t *testing.T) {
	tn := newTown(t)
	d := tn.all["hotel one alex"]
	id := d.tokens.GrantID
	tn.Clock.Advance(31 * 24 * time.Hour)
	for name, end := range map[string]func() error{
		"a token": func() error { return tn.rules.EndByToken(t.Context(), d.brand.ID, d.who, d.tokens.Refresh) },
		"the agent": func() error {
			if err := tn.rules.EndByAgent(t.Context(), d.brand.ID, d.who, id); !errors.Is(err, authority.ErrUnknown) {
				return errors.Join(errors.New("not unknown"), err)
			}
			return nil
		},
		"the operator": func() error {
			_, err := tn.rules.End(t.Context(), d.brand.ID, authority.ByOperator(), authority.Which{Grant: id})
			return err
		},
		"the person": func() error {
			_, err := tn.rules.EndAllByUser(t.Context(), d.brand.ID, d.subject, []uuid.UUID{id})
			return err
		},
	} {
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := tn.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
			t.Fatalf("%s ended it", name)
		}
	}
	if _, err := tn.rules.Expire(t.Context(), d.brand.ID); err != nil {
		t.Fatal(err)
	}
	const q = `SELECT count(*) FROM audit_events WHERE grant_id = $1 AND event = 'grant.expired'`
	if n := tn.Count(t, q, id); n != 1 {
		t.Errorf("%d times expired", n)
	}
}
