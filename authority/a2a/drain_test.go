package a2a_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/tenants"
)

// What an agent did in an outage has its receipts after it, in its order and once,
// though nobody comes again and its token ended long ago; whoever comes gets them.
func TestWhatWaitsIsCountersignedByItself(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"]}`)
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrUnavailable
	}
	ids := []string{"m3", "m1", "m2"}
	for _, id := range ids {
		d.send(d.pa, "alex", tokens.JWS, said(id, open, "Hi")).is(t, "no signer", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
		d.Clock.Advance(time.Second)
	}
	d.sign = nil
	drained := func(want int) {
		t.Helper()
		if n, err := a2a.Drain(t.Context(), d.rules, d.Hotel); err != nil || n != want {
			t.Errorf("%d of %d, %v", n, want, err)
		}
	}
	drained(0) // their calls may still be at it
	d.Clock.Advance(d.Hotel.TokenLifetime + authority.LateTime + time.Minute)
	d.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`)
	if n, err := a2a.Drain(t.Context(), d.rules, d.Hotel); n != 0 || err == nil {
		t.Errorf("paused: %d, %v", n, err)
	}
	d.Exec(t, `UPDATE brands SET state = 'active' WHERE id = 'harbor-hotel'`)
	var both sync.WaitGroup
	for range 2 {
		rules := d.World.Authority(nil)
		both.Go(func() {
			if _, err := a2a.Drain(t.Context(), rules, d.Hotel); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	drained(0)
	if n := d.Count(t, `SELECT count(*) FROM receipts WHERE late AND message_id <> 'm0'`); n != len(ids) {
		t.Errorf("%d receipts of %d turns", n, len(ids))
	}
	if n := d.Count(t, `SELECT count(*) FROM receipts WHERE (seq, message_id) IN ((1, 'm3'), (2, 'm1'), (3, 'm2'))`); n != len(ids) {
		t.Errorf("%d receipts are in their order", n)
	}
	later, err := d.rules.Refresh(t.Context(), d.Hotel, authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}, tokens.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if a := d.send(d.pa, "alex", later.JWS, said(id, open, "Hi")); a.status != http.StatusOK || !strings.Contains(a.body, "pact.receipt") {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
	if n := d.agent.count(); n != 1+len(ids) {
		t.Errorf("the agent ran %d times", n)
	}
	if n := d.Count(t, `SELECT count(*) FROM receipts`); n != 1+len(ids) {
		t.Errorf("%d receipts", n)
	}
}
