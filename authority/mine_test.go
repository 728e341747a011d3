package authority_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// What the Brand user sees of grants, and ends, on My agents.

// corner is one grant of those that are easily taken for one another.
type corner struct {
	brand   *tenants.Brand
	who     authority.Caller
	subject string
	tokens  authority.Tokens
}

// corners are all collisions at once (B96): one sub at two agents, one user id
// at two Brands, one agent's sub for two Brand users, two subs for one.
func corners(t *testing.T, w *authoritytest.World, a *authority.Authority) []*corner {
	t.Helper()
	all := []*corner{
		{brand: w.Hotel, who: alex, subject: "7"},
		{brand: w.Hotel, who: authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}, subject: "7"},
		{brand: w.Hotel, who: authority.Caller{Agent: alex.Agent, Sub: "tablet"}, subject: "7"},
		{brand: w.Hotel, who: alex, subject: "8"},
		{brand: w.Shop, who: alex, subject: "7"},
	}
	for _, c := range all {
		s := authoritytest.Begin(t, a, c.brand, c.who, c.brand.Scopes[0].ID, c.brand.Scopes[1].ID)
		authoritytest.Approve(t, a, c.brand, s, c.subject, c.brand.Scopes[0].ID, c.brand.Scopes[1].ID)
		var err error
		if c.tokens, err = a.Poll(t.Context(), c.brand, c.who, s.DeviceCode); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// mustHold refreshes every corner and demands what it then holds: as many scopes
// as said, or none: it has ended.
func mustHold(t *testing.T, a *authority.Authority, all []*corner, want ...int) {
	t.Helper()
	for i, c := range all {
		next, err := a.Refresh(t.Context(), c.brand, c.who, c.tokens.Refresh, nil)
		if want[i] == 0 {
			if !errors.Is(err, authority.ErrEnded) {
				t.Errorf("corner %d lives on: %v", i, err)
			}
			continue
		}
		if err != nil || len(next.Scopes) != want[i] {
			t.Errorf("corner %d holds %v, %v; want %d", i, next.Scopes, err, want[i])
			continue
		}
		c.tokens = next
	}
}

// B29, B96, P33: one permission, one agent, everything: exactly the named thing
// ends, whoever names it, and every other token lives.
func TestOnMyAgentsExactlyTheNamedThingEnds(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	all := corners(t, w, a)
	ids := make([]uuid.UUID, len(all))
	for i, c := range all {
		ids[i] = c.tokens.GrantID
	}

	// Others first: nobody ends what is not theirs, however they name it.
	for _, c := range []corner{{brand: w.Hotel, subject: "8"}, {brand: w.Shop, subject: "7"}, {brand: w.Hotel, subject: ""}} {
		wantErr(t, a.EndScopeByUser(t.Context(), c.brand.ID, c.subject, ids[0], "bookings:read"), authority.ErrUnknown)
		wantErr(t, a.EndByUser(t.Context(), c.brand.ID, c.subject, ids[0]), authority.ErrUnknown)
		if n, err := a.EndAllByUser(t.Context(), c.brand.ID, c.subject, ids[:3]); n != 0 || err != nil {
			t.Errorf("%q at %s ended %d of 7's, %v", c.subject, c.brand.ID, n, err)
		}
	}
	wantErr(t, a.EndScopeByUser(t.Context(), w.Hotel.ID, "7", ids[0], "account:read"), authority.ErrUnknown) // not held
	mustHold(t, a, all, 2, 2, 2, 2, 2)

	if err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "7", ids[0], "bookings:read"); err != nil {
		t.Fatal(err)
	}
	mustHold(t, a, all, 1, 2, 2, 2, 2)
	wantErr(t, a.EndScopeByUser(t.Context(), w.Hotel.ID, "7", ids[0], "bookings:read"), authority.ErrUnknown) // twice
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "7", ids[1]); err != nil {
		t.Fatal(err)
	}
	mustHold(t, a, all, 1, 0, 2, 2, 2)

	// Everything of 7's at the hotel; what others hold is named too, in vain. The
	// count is of what this call ended.
	if n, err := a.EndAllByUser(t.Context(), w.Hotel.ID, "7", ids); n != 2 || err != nil {
		t.Fatalf("ended %d, %v", n, err)
	}
	mustHold(t, a, all, 0, 0, 0, 2, 2)
	if n, err := a.EndAllByUser(t.Context(), w.Hotel.ID, "7", ids); n != 0 || err != nil {
		t.Errorf("ended %d a second time, %v", n, err)
	}
	if n, err := a.EndAllByUser(t.Context(), w.Hotel.ID, "8", nil); n != 0 || err != nil {
		t.Errorf("naming none ended %d, %v", n, err)
	}
	// Which{Subject} is everything, by rule.
	if n, err := a.End(t.Context(), w.Hotel.ID, authority.ByUser("8"), authority.Which{Subject: "8"}); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	mustHold(t, a, all, 0, 0, 0, 0, 2)
}

// What ended is told to whom it belonged, with how and when, the last first, and
// not for ever. What has run out is over, whether or not upkeep has come by.
func TestEndedTellsHow(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	all := corners(t, w, a)
	start := w.Clock.Now()
	step := func() { w.Clock.Advance(time.Hour) }

	step()
	if _, err := a.Refresh(t.Context(), w.Hotel, all[0].who, all[0].tokens.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	step()
	_, err := a.Refresh(t.Context(), w.Hotel, all[0].who, all[0].tokens.Refresh, nil)
	wantErr(t, err, authority.ErrReused)
	step()
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "7", all[1].tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	step()
	if err := a.EndByToken(t.Context(), w.Hotel.ID, all[3].who, all[3].tokens.Refresh); err != nil {
		t.Fatal(err)
	}
	type told struct {
		Reason string
		At     time.Duration
	}
	ended := func(brand *tenants.Brand, subject string, since time.Time) []told {
		t.Helper()
		list, err := a.Ended(t.Context(), brand.ID, subject, since)
		if err != nil {
			t.Fatal(err)
		}
		var out []told
		for _, g := range list {
			out = append(out, told{g.EndReason, g.EndedAt.Sub(start)})
		}
		return out
	}
	want := []told{{"revoked_by_user", 3 * time.Hour}, {"reuse_detected", 2 * time.Hour}}
	if got := ended(w.Hotel, "7", start); !slices.Equal(got, want) {
		t.Errorf("7 is told %v, want %v", got, want)
	}
	if got := ended(w.Hotel, "8", start); !slices.Equal(got, []told{{"revoked_by_agent", 4 * time.Hour}}) {
		t.Errorf("8 is told %v", got)
	}
	if got := ended(w.Shop, "7", start); len(got) != 0 {
		t.Errorf("at the shop 7 is told %v", got)
	}
	if got := ended(w.Hotel, "7", start.Add(3*time.Hour)); len(got) != 0 {
		t.Errorf("what ended before is told: %v", got)
	}

	// Thirty days later the last of 7's has run out.
	const life = 30 * 24 * time.Hour
	w.Clock.Advance(start.Add(life).Sub(w.Clock.Now()))
	want = append([]told{{"expired", life}}, want...)
	if got := ended(w.Hotel, "7", start); !slices.Equal(got, want) {
		t.Errorf("before upkeep: %v, want %v", got, want)
	}
	// Nobody ends any more what has run out: it is upkeep's, and told as that.
	wantErr(t, a.EndByUser(t.Context(), w.Hotel.ID, "7", all[2].tokens.GrantID), authority.ErrUnknown)
	if n, err := a.EndAllByUser(t.Context(), w.Hotel.ID, "7", []uuid.UUID{all[2].tokens.GrantID}); n != 0 || err != nil {
		t.Errorf("ended %d that had run out, %v", n, err)
	}
	step()
	if _, err := a.Expire(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if got := ended(w.Hotel, "7", start); !slices.Equal(got, want) {
		t.Errorf("after upkeep: %v, want %v", got, want)
	}
	one, err := a.Grant(t.Context(), w.Hotel.ID, "7", all[2].tokens.GrantID)
	if err != nil || one.EndReason != "expired" || one.EndedAt == nil {
		t.Errorf("the grant by itself: %+v, %v", one, err)
	}
}

// A consent is shown to who gave it, in the words of then.
func TestConsentsKeepTheWordsOfThen(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	all := corners(t, w, a)
	w.Hotel = w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Scopes[0].Description = "See everything about your bookings" })
	w.Clock.Advance(time.Hour)
	wider := authoritytest.Begin(t, a, w.Hotel, alex, "account:read")
	authoritytest.Approve(t, a, w.Hotel, wider, "7", "bookings:read", "account:read")

	said, err := a.Consents(t.Context(), w.Hotel.ID, "7", all[0].tokens.GrantID)
	if err != nil || len(said) != 2 {
		t.Fatalf("%d consents, %v", len(said), err)
	}
	words := func(c authority.Consent) (out []string) {
		for _, s := range c.Allowed {
			out = append(out, s.Description)
		}
		return out
	}
	if got := words(said[0]); !slices.Equal(got, []string{"See everything about your bookings", "See your name and contact details"}) {
		t.Errorf("the newer: %q", got)
	}
	if got := words(said[1]); !slices.Equal(got, []string{"See your bookings", "Change or cancel a booking"}) {
		t.Errorf("the older: %q", got)
	}
	if c := said[1]; c.Language != "en" || c.Days != 30 || c.Answer != "allowed" || !c.At.Before(said[0].At) {
		t.Errorf("%+v", c)
	}
	for what, try := range map[string]struct {
		brand   *tenants.Brand
		subject string
	}{"another user": {w.Hotel, "8"}, "another Brand": {w.Shop, "7"}, "nobody": {w.Hotel, ""}} {
		if said, err := a.Consents(t.Context(), try.brand.ID, try.subject, all[0].tokens.GrantID); len(said) != 0 || err != nil {
			t.Errorf("%s reads %d consents, %v", what, len(said), err)
		}
	}
}

// A suspension is one user's at one Brand, and keeps what was allowed.
func TestSuspendedIsToldToWhomItConcerns(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	corners(t, w, a)
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "7"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		brand   *tenants.Brand
		subject string
		want    bool
	}{{w.Hotel, "7", true}, {w.Hotel, "8", false}, {w.Shop, "7", false}} {
		if got, err := a.Suspended(t.Context(), tt.brand.ID, tt.subject); got != tt.want || err != nil {
			t.Errorf("%s at %s: %v, %v", tt.subject, tt.brand.ID, got, err)
		}
	}
	if got := grants(t, w, a, w.Hotel, "7"); len(got) != 3 {
		t.Errorf("%d grants are kept", len(got))
	}
}
