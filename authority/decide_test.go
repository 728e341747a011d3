package authority_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func grants(t *testing.T, w *authoritytest.World, a *authority.Authority, brand *tenants.Brand, subject string) []authority.Grant {
	t.Helper()
	out, err := a.Grants(t.Context(), brand.ID, subject)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// M20, P21, R38: only ticked and offered and still on the card is granted.
func TestOnlyWhatWasOfferedAndTickedIsGranted(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read", "bookings:change")
	w.Exec(t, `UPDATE brand_scopes SET retired_at = now() WHERE id = 'bookings:change'`) // B42
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read", "bookings:change", "extras:order", "nonsense")
	got := grants(t, w, a, w.Hotel, "guest-7")
	if len(got) != 1 || !slices.Equal(got[0].Scopes, []string{"bookings:read"}) {
		t.Fatalf("granted %+v", got)
	}
}

// M20, P17: nothing ticked is a no, and what was held ends; Deny changes nothing.
func TestNothingTickedEndsWhatWasHeld(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	delegated(t, w, a, "bookings:read")
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:change")
	if err := a.Deny(t.Context(), w.Hotel.ID, authority.Decision{Request: s.ID, Subject: "guest-7"}); err != nil {
		t.Fatal(err)
	}
	if got := grants(t, w, a, w.Hotel, "guest-7"); len(got) != 1 {
		t.Fatal("a no ended what was held")
	}
	s = authoritytest.Begin(t, a, w.Hotel, alex, "bookings:change")
	wantErr(t, authoritytest.TryApprove(t.Context(), a, w.Hotel, s, "guest-7"), authority.ErrDenied)
	_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	wantErr(t, err, authority.ErrDenied)
	if got := grants(t, w, a, w.Hotel, "guest-7"); len(got) != 0 {
		t.Fatalf("still held: %+v", got)
	}
}

// Held scopes are offered again, and unticking narrows (P10, M20).
func TestUntickingNarrowsTheLivingGrant(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read", "bookings:change")
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read", "account:read")
	q, err := a.Ask(t.Context(), w.Hotel.ID, s.ID, "guest-7")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bookings:read", "bookings:change"}, q.Held); diff != "" {
		t.Fatal(diff)
	}
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "account:read", "bookings:change")
	next, err := a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bookings:change", "account:read"}, next.Scopes); diff != "" {
		t.Fatal(diff)
	}
}

// P25, B20: two decisions at once, of the same or of two people: exactly one counts.
func TestFirstDecisionIsFinal(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	for range 10 {
		s := authoritytest.Begin(t, instances[0], w.Hotel, alex, "bookings:read")
		var decided atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				subject := fmt.Sprintf("guest-%d", i)
				var err error
				if i%4 == 3 {
					err = instances[i%2].Deny(t.Context(), w.Hotel.ID, authority.Decision{Request: s.ID, Subject: subject})
				} else {
					err = authoritytest.TryApprove(t.Context(), instances[i%2], w.Hotel, s, subject, "bookings:read")
				}
				switch {
				case err == nil:
					decided.Add(1)
				case !errors.Is(err, authority.ErrDecided):
					t.Errorf("a late decision got %v", err)
				}
			})
		}
		wg.Wait()
		if decided.Load() != 1 {
			t.Fatalf("%d decisions counted", decided.Load())
		}
		w.Clock.Advance(time.Minute)
	}
	if n := w.Count(t, `SELECT count(*) FROM (SELECT FROM audit_events WHERE event IN ('request.approved', 'request.denied') GROUP BY request_id HAVING count(*) > 1) AS twice`); n != 0 {
		t.Fatalf("%d requests decided twice", n)
	}
}

// A page that showed another state of the grant decides nothing (B42).
func TestDecisionOnAnOldPageIsRefused(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	one := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	two := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:change")
	decide := func(s authority.Started, seen int, ticked ...string) error {
		return a.Approve(t.Context(), w.Hotel, authority.Decision{
			Request: s.ID, Subject: "guest-7", Ticked: ticked, SeenVersion: seen, Days: 30,
		})
	}
	if err := decide(one, 0, "bookings:read"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, decide(two, 0, "bookings:change"), authority.ErrChanged)
	wantErr(t, decide(two, 7, "bookings:change"), authority.ErrChanged)
	if err := decide(two, 1, "bookings:change", "bookings:read"); err != nil {
		t.Fatal(err)
	}
	// How long is one of the Brand's choices, never a number from a form.
	three := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	wantErr(t, a.Approve(t.Context(), w.Hotel, authority.Decision{Request: three.ID, Subject: "guest-7", Ticked: []string{"bookings:read"}, SeenVersion: 2, Days: 100000}), authority.ErrChanged)
}

// B96: the same agent's sub, the same Brand user id, another agent, another
// Brand: grants never run into one another.
func TestGrantsAreKeptApart(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	type key struct {
		brand   *tenants.Brand
		who     authority.Caller
		subject string
	}
	keys := []key{
		{w.Hotel, alex, "7"},
		{w.Hotel, alex, "8"},
		{w.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}, "7"},
		{w.Hotel, authority.Caller{Agent: alex.Agent, Sub: "sam"}, "7"},
		{w.Shop, alex, "7"},
	}
	var tokens []authority.Tokens
	for _, k := range keys {
		s := authoritytest.Begin(t, a, k.brand, k.who, "bookings:read")
		authoritytest.Approve(t, a, k.brand, s, k.subject, "bookings:read")
		got, err := a.Poll(t.Context(), k.brand, k.who, s.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, got)
	}
	q := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	seen, err := a.Ask(t.Context(), w.Hotel.ID, q.ID, "7")
	if err != nil || !seen.OtherUser || seen.FirstGrant {
		t.Fatalf("another account's grant is not noticed: %+v, %v", seen, err)
	}
	// B29: exactly the named thing ends.
	wantErr(t, a.EndByUser(t.Context(), w.Hotel.ID, "8", tokens[0].GrantID), authority.ErrUnknown)
	wantErr(t, a.EndByUser(t.Context(), w.Shop.ID, "7", tokens[0].GrantID), authority.ErrUnknown)
	wantErr(t, a.EndByUser(t.Context(), w.Hotel.ID, "7", uuid.New()), authority.ErrUnknown)
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "7", tokens[0].GrantID); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		_, err := a.Refresh(t.Context(), k.brand, k.who, tokens[i].Refresh, nil)
		if want := map[bool]error{true: authority.ErrEnded}[i == 0]; !errors.Is(err, want) {
			t.Errorf("grant %d: %v, want %v", i, err, want)
		}
	}
	// P34: approving again makes a new grant.
	authoritytest.Approve(t, a, w.Hotel, q, "7", "bookings:read")
	again, err := a.Poll(t.Context(), w.Hotel, alex, q.DeviceCode)
	if err != nil || again.GrantID == tokens[0].GrantID {
		t.Fatalf("%v, %v", again.GrantID, err)
	}
}

// M14, B42: an agent disabled or a Brand paused while the page is open gets no
// grant; what was ticked and has left the card meanwhile is no "no".
func TestApprovalAsksWhoMayNow(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	for _, tt := range []struct {
		break_, mend string
		want         error
	}{
		{`UPDATE agents SET enabled = false`, `UPDATE agents SET enabled = true`, authority.ErrAgentDisabled},
		{`UPDATE brands SET state = 'paused'`, `UPDATE brands SET state = 'active'`, authority.ErrPaused},
		{`UPDATE brands SET delegation = false`, `UPDATE brands SET delegation = true`, authority.ErrPaused},
		{`UPDATE brand_scopes SET retired_at = now()`, `UPDATE brand_scopes SET retired_at = NULL`, authority.ErrChanged},
	} {
		w.Exec(t, tt.break_)
		wantErr(t, authoritytest.TryApprove(t.Context(), a, w.Hotel, s, "guest-7", "bookings:read"), tt.want)
		w.Exec(t, tt.mend)
	}
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
}

// A suspended person decides nothing.
func TestSuspendedPersonCannotApprove(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, authoritytest.TryApprove(t.Context(), a, w.Hotel, s, "guest-7", "bookings:read"), authority.ErrSuspended)
	if err := a.Resume(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
}
