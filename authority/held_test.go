package authority_test

import (
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// What is said of how many people something concerns counts living grants alone,
// of this Brand, agent and scope, and each person once.
func TestCountHeldCountsTheLiving(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	allow := func(agent, sub, subject string, ticked ...string) {
		t.Helper()
		s := authoritytest.Begin(t, a, w.Hotel, authority.Caller{Agent: agent, Sub: sub}, ticked...)
		authoritytest.Approve(t, a, w.Hotel, s, subject, ticked...)
	}
	allow(authoritytest.Agent, "phone", "guest-1", "bookings:read", "account:read")
	allow(authoritytest.OtherAgent, "phone", "guest-1", "bookings:read")
	allow(authoritytest.Agent, "desk", "guest-2", "account:read")
	s := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, a, w.Shop, s, "c-1", "bookings:read")
	count := func(f authority.Filter) authority.HeldCount {
		t.Helper()
		n, err := a.CountHeld(t.Context(), w.Hotel.ID, f)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tt := range []struct {
		filter authority.Filter
		want   authority.HeldCount
	}{
		{authority.Filter{}, authority.HeldCount{Grants: 3, People: 2}},
		{authority.Filter{Scope: "bookings:read"}, authority.HeldCount{Grants: 2, People: 1}},
		{authority.Filter{Agent: authoritytest.Agent}, authority.HeldCount{Grants: 2, People: 2}},
		{authority.Filter{Agent: authoritytest.Agent, Scope: "bookings:read"}, authority.HeldCount{Grants: 1, People: 1}},
		{authority.Filter{Subject: "guest-2"}, authority.HeldCount{Grants: 1, People: 1}},
		{authority.Filter{Scope: "nothing"}, authority.HeldCount{}},
	} {
		if got := count(tt.filter); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.filter, got, tt.want)
		}
	}
	w.Exec(t, `UPDATE grants SET ended_at = $1, end_reason = 'revoked' WHERE brand_id = $2 AND subject = 'guest-2'`, w.Clock.Now(), w.Hotel.ID)
	if got := count(authority.Filter{}); got.People != 1 {
		t.Errorf("what has ended counts: %+v", got)
	}
	w.Clock.Advance(400 * 24 * time.Hour)
	if got := count(authority.Filter{}); got != (authority.HeldCount{}) {
		t.Errorf("what has run out counts: %+v", got)
	}
}
