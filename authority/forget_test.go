package authority_test

import (
	"strconv"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// R49: a grant whose agent stays away ends though nobody comes to hear of it, to the
// moment; the Brand is told once, and another Brand's grants are its own.
func TestAForgottenGrantEndsByItself(t *testing.T) {
	const day = 24 * time.Hour
	w := authoritytest.New(t)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 10 })
	w.Shop = w.Save(t, w.Shop, func(b *tenants.Brand) { b.IdleDays = 11 })
	a, other := w.Authority(nil), w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	s := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, s, "shopper", "orders:read")
	w.Clock.Advance(5 * day)
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	forget := func(b *tenants.Brand, want int) {
		t.Helper()
		for range 2 { // the second looks from the beginning again
			n, err := a.Forget(t.Context(), b)
			if err != nil || n != want {
				t.Errorf("%d of %s were forgotten, not %d: %v", n, b.ID, want, err)
			}
			want = 0
		}
	}
	w.Clock.Advance(10*day - time.Microsecond)
	forget(w.Hotel, 0)
	w.Clock.Advance(time.Microsecond)
	forget(w.Hotel, 1)
	forget(w.Shop, 1)
	if n, err := other.Forget(t.Context(), w.Hotel); n != 0 || err != nil {
		t.Errorf("another instance: %d, %v", n, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND event = 'grant.expired' AND detail->>'reason' = 'idle' AND actor = 'system'`); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// R49: nobody is forgotten who is kept out, or has been until just now, or whom the
// person has just allowed something again.
func TestUpkeepForgetsNobodyWhoIsKeptOut(t *testing.T) {
	const day = 24 * time.Hour
	w := authoritytest.New(t)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 1 })
	a := w.Authority(nil)
	edit := a.Editor(authority.ByOperator())
	registry := agent.NewRegistry(agent.RegistryConfig{DB: w.DB.Pool(), Now: w.Clock.Now, Note: a.NoteAgent(authority.ByOperator())})
	for what, turn := range map[string]struct{ out, in func() error }{
		"a suspension": {
			func() error { return a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7") },
			func() error { return a.Resume(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7") },
		},
		"a pause": {
			func() error { return tenants.Stop(t.Context(), edit, w.Hotel.ID) },
			func() error { return tenants.Start(t.Context(), edit, w.Hotel.ID) },
		},
		"the operator": {
			func() error { return registry.SetEnabled(t.Context(), alex.Agent, false) },
			func() error { return registry.SetEnabled(t.Context(), alex.Agent, true) },
		},
		"a denial": {
			func() error { return tenants.ListAgent(t.Context(), edit, w.Hotel.ID, alex.Agent, false) },
			func() error { return tenants.ListAgent(t.Context(), edit, w.Hotel.ID, alex.Agent, true) },
		},
	} {
		forget := func(when string, want int) {
			t.Helper()
			if n, err := a.Forget(t.Context(), w.Hotel); err != nil || n != want {
				t.Errorf("%s, %s: %d, %v", what, when, n, err)
			}
		}
		tokens := delegated(t, w, a, "bookings:read")
		if err := turn.out(); err != nil {
			t.Fatal(what, err)
		}
		w.Clock.Advance(2 * day)
		forget("while it lasts", 0)
		if err := turn.in(); err != nil {
			t.Fatal(what, err)
		}
		forget("just over", 0)
		w.Clock.Advance(day - time.Microsecond)
		forget("a moment before", 0)
		if _, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.Clock.Advance(day - time.Microsecond)
		s := authoritytest.Begin(t, a, w.Hotel, alex, "account:read")
		authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read", "account:read")
		w.Clock.Advance(time.Microsecond)
		forget("allowed anew", 0)
		w.Clock.Advance(day)
		forget("at last", 1)
	}
}

// However many grants there are, each is come to.
func TestForgettingWalksOverAllGrants(t *testing.T) {
	w := authoritytest.New(t)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 1 })
	a := w.Authority(nil)
	const many = 20_003 // more than one look takes
	w.Exec(t, `
		INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at, last_used_at)
		SELECT 'harbor-hotel', lpad(n::text, 32, '0')::uuid, $1, 'sub-' || n, 'guest', '{bookings:read}', $2, $2::timestamptz + interval '30 days',
		       CASE WHEN n IN (1, 20001, 20003) THEN $2::timestamptz WHEN n = 2 THEN $2::timestamptz + interval '30 minutes' ELSE $2::timestamptz + interval '1 hour' END
		  FROM generate_series(1, $3::int) n`, authoritytest.Agent, w.Clock.Now(), many)
	w.Clock.Advance(24 * time.Hour)
	for i, want := range []int{1, 2, 0, 0} {
		if n, err := a.Forget(t.Context(), w.Hotel); err != nil || n != want {
			t.Errorf("%s: %d, not %d: %v", strconv.Itoa(i), n, want, err)
		}
	}
	w.Clock.Advance(30 * time.Minute) // and the first ones are come to again
	if n, err := a.Forget(t.Context(), w.Hotel); err != nil || n != 1 {
		t.Errorf("the second time around: %d, %v", n, err)
	}
}
