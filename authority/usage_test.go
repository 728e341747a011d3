package authority_test

import (
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/go-cmp/cmp"
)

// What is counted survives the purge of what it was counted from, once and not
// twice, and on the day on which it happened.
func TestUsageOutlivesThePurge(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	no := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:change")
	if err := a.Deny(t.Context(), w.Hotel.ID, authority.Decision{Request: no.ID, Subject: "guest-7"}); err != nil {
		t.Fatal(err)
	}
	authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:change") // nobody answers
	_, err := a.StepUp(t.Context(), w.Hotel, authority.StepUp{Who: authoritytest.Alex, Scopes: []string{"account:read"}, Reason: "To reach you."})
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(24 * time.Hour)
	if _, err := a.End(t.Context(), w.Hotel.ID, authority.ByMember("m"), authority.Which{Grant: first.GrantID}); err != nil {
		t.Fatal(err)
	}
	elsewhere := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, elsewhere, "guest-7", "orders:read")
	counted := func() []authority.Day {
		t.Helper()
		days, err := a.Usage(t.Context(), w.Hotel.ID, 3)
		if err != nil {
			t.Fatal(err)
		}
		return days
	}
	date := func(day int) time.Time { return time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC) }
	want := []authority.Day{
		{Date: date(29)},
		{Date: date(30), Asked: 3, StepUps: 1, Approved: 1, Denied: 1},
		{Date: date(31), Revoked: 1}, // the first of December
	}
	if diff := cmp.Diff(want, counted()); diff != "" {
		t.Errorf("before the purge: %s", diff)
	}
	w.Clock.Advance(11 * time.Hour) // 24 hours after the requests are over, and the same day
	for range 2 {
		if _, err := a.Purge(t.Context(), w.Hotel.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM device_requests WHERE brand_id = 'harbor-hotel'`); n != 0 {
		t.Fatalf("%d requests are left", n)
	}
	if diff := cmp.Diff(want, counted()); diff != "" {
		t.Errorf("after the purge: %s", diff)
	}
	if n, err := a.Alarms(t.Context(), w.Hotel.ID, date(1)); err != nil || n != 0 {
		t.Errorf("%d alarms, %v", n, err)
	}
}

// R46: an alarm is counted from its moment on.
func TestAlarmsAreCounted(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	old := delegated(t, w, a, "bookings:read")
	fresh, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, old.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, fresh.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Hour)
	if _, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, old.Refresh, nil); err == nil {
		t.Fatal("a spent token was paid")
	}
	for since, want := range map[time.Time]int{w.Clock.Now(): 1, w.Clock.Now().Add(time.Second): 0} {
		if n, err := a.Alarms(t.Context(), w.Hotel.ID, since); err != nil || n != want {
			t.Errorf("since %s: %d, %v", since, n, err)
		}
	}
	if days, err := a.Usage(t.Context(), w.Hotel.ID, 1); err != nil || days[0].Reused != 1 || days[0].Revoked != 0 {
		t.Errorf("%+v, %v", days, err)
	}
}
