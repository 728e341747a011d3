package authority_test

import (
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// R49: an agent that stays away too long is forgotten, to the moment; one that
// comes in time may come for as long as its grant lives, and no longer.
func TestAnAgentThatStaysAwayIsForgotten(t *testing.T) {
	const day = 24 * time.Hour
	w := authoritytest.New(t)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 10 })
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	for range 2 { // 30 days in all
		w.Clock.Advance(10*day - time.Microsecond)
		next, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens = next
	}
	kept := tokens
	w.Clock.Advance(10 * day)
	_, err := a.Refresh(t.Context(), w.Hotel, alex, kept.Refresh, nil)
	wantErr(t, err, authority.ErrEnded)
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.expired' AND detail->>'reason' = 'idle'`); n != 1 {
		t.Errorf("%d grants are said to be forgotten", n)
	}

	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 366 })
	tokens = delegated(t, w, a, "bookings:read")
	w.Clock.Advance(30 * day)
	_, err = a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil)
	wantErr(t, err, authority.ErrEnded)
}

// R49, P32: whoever could not come has not stayed away, and what the person has
// just answered for is not forgotten.
func TestWhoWasKeptOutIsNotForgotten(t *testing.T) {
	const day = 24 * time.Hour
	w := authoritytest.New(t)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 5 })
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	refresh := func() error {
		next, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil)
		if err == nil {
			tokens = next
		}
		return err
	}
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(6 * day)
	wantErr(t, refresh(), authority.ErrSuspended)
	if err := a.Resume(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(4 * day)
	if err := refresh(); err != nil {
		t.Errorf("back from a suspension: %v", err)
	}

	w.Clock.Advance(6 * day)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "account:read")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read", "account:read")
	if err := refresh(); err != nil {
		t.Errorf("just allowed anew: %v", err)
	}
	w.Clock.Advance(6 * day)
	wantErr(t, refresh(), authority.ErrEnded)
}

// R49: nor has an agent stayed away whom the Brand or the operator kept out, however
// they did it.
func TestAnAgentThatWasKeptOutIsNotForgotten(t *testing.T) {
	const day = 24 * time.Hour
	w := authoritytest.New(t)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.IdleDays = 1 })
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	refresh := func() error {
		next, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil)
		if err == nil {
			tokens = next
		}
		return err
	}
	edit := a.Editor(authority.ByOperator())
	registry := agent.NewRegistry(agent.RegistryConfig{DB: w.DB.Pool(), Now: w.Clock.Now, Note: a.NoteAgent(authority.ByOperator())})
	list := func(allowed bool) error { return tenants.ListAgent(t.Context(), edit, w.Hotel.ID, alex.Agent, allowed) }
	rule := func(which string) error {
		_, err := tenants.ChangeSettings(t.Context(), edit, tenants.Site{AllowLoopback: true}, w.Hotel.ID, func(s *tenants.Settings) error {
			s.Agents = which
			return nil
		})
		return err
	}
	for what, turn := range map[string]struct {
		out, in func() error
		want    error
	}{
		"a pause": {
			func() error { return tenants.Stop(t.Context(), edit, w.Hotel.ID) },
			func() error { return tenants.Start(t.Context(), edit, w.Hotel.ID) }, authority.ErrPaused,
		},
		"the operator": {
			func() error { return registry.SetEnabled(t.Context(), alex.Agent, false) },
			func() error { return registry.SetEnabled(t.Context(), alex.Agent, true) }, authority.ErrAgentDisabled,
		},
		"a denial, and is allowed": {func() error { return list(false) }, func() error { return list(true) }, authority.ErrAgentDisabled},
		"a denial, and the rule holds": {
			func() error { return list(false) },
			func() error { return tenants.UnlistAgent(t.Context(), edit, w.Hotel.ID, alex.Agent) }, authority.ErrAgentDisabled,
		},
		"another rule": {func() error { return rule("listed") }, func() error { return rule("registered") }, authority.ErrAgentDisabled},
	} {
		if err := tenants.UnlistAgent(t.Context(), edit, w.Hotel.ID, alex.Agent); err != nil {
			t.Fatal(err)
		}
		if err := turn.out(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		w.Clock.Advance(day)
		wantErr(t, refresh(), turn.want)
		if err := turn.in(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		w.Clock.Advance(day - time.Second)
		if err := refresh(); err != nil {
			t.Errorf("back after %s: %v", what, err)
		}
	}
}

// P31: nobody could answer a retry while the agent was kept out, so the window goes
// on when it is let in; a thief's second use is found out after that as ever.
func TestARetryWhileKeptOutIsNoReuse(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	edit := a.Editor(authority.ByOperator())
	for what, turn := range map[string]struct {
		out, in func() error
		want    error
	}{
		"a pause": {
			func() error { return tenants.Stop(t.Context(), edit, w.Hotel.ID) },
			func() error { return tenants.Start(t.Context(), edit, w.Hotel.ID) }, authority.ErrPaused,
		},
		"a suspension": {
			func() error { return a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7") },
			func() error { return a.Resume(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7") }, authority.ErrSuspended,
		},
	} {
		spent := delegated(t, w, a, "bookings:read").Refresh
		refresh := func() (authority.Tokens, error) { return a.Refresh(t.Context(), w.Hotel, alex, spent, nil) }
		lost, err := refresh() // and the reply does not arrive
		if err != nil {
			t.Fatal(what, err)
		}
		if err := turn.out(); err != nil {
			t.Fatal(what, err)
		}
		for range 2 {
			_, err = refresh()
			wantErr(t, err, turn.want)
			w.Clock.Advance(time.Hour)
		}
		if err := turn.in(); err != nil {
			t.Fatal(what, err)
		}
		w.Clock.Advance(w.Hotel.Grace)
		if again, err := refresh(); err != nil || again.Refresh != lost.Refresh {
			t.Errorf("back after %s: %v", what, err)
		}
		w.Clock.Advance(time.Microsecond)
		_, err = refresh()
		wantErr(t, err, authority.ErrReused)

		// Whose successor was in use before all that, came back from a thief.
		spent = delegated(t, w, a, "bookings:read").Refresh
		next, err := refresh()
		if err == nil {
			_, err = a.Refresh(t.Context(), w.Hotel, alex, next.Refresh, nil)
		}
		if err != nil {
			t.Fatal(what, err)
		}
		w.Clock.Advance(time.Hour)
		for _, do := range []func() error{turn.out, turn.in} {
			if err := do(); err != nil {
				t.Fatal(what, err)
			}
		}
		_, err = refresh()
		wantErr(t, err, authority.ErrReused)
	}
}
