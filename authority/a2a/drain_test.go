package a2a_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/receiptlog"
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

// What is refused by the time that it can be signed has no receipt for good: that is said
// at once, once, and never tried again; its message is spent, and what it waited before
// goes on.
func TestWhatIsRefusedIsSettledAtOnce(t *testing.T) {
	d := newDoor(t)
	tokens, others := d.delegated(d.pa, "alex", "guest-1", "bookings:read"), d.delegated(d.other, "sam", "guest-2", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	theirs := d.send(d.other, "sam", others.JWS, said("m0", "", "Hi")).context()
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrUnavailable
	}
	d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi"))
	d.send(d.other, "sam", others.JWS, said("m1", theirs, "Hi"))
	d.sign = nil
	d.Clock.Advance(2 * time.Minute)
	d.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, d.pa.Issuer)
	for _, want := range []int{1, 0} {
		if n, err := a2a.Drain(t.Context(), d.rules, d.Hotel); n != want || err != nil {
			t.Errorf("%d instead of %d, %v", n, want, err)
		}
	}
	const facts = `
		SELECT count(*) FROM audit_events
		 WHERE event = 'incident.not_countersigned' AND grant_id = $1 AND detail->>'reason' = 'token' AND detail->>'turn' = $2
		   AND detail->>'subject' = 'guest-1' AND NOT (detail::text LIKE '%m1%' OR detail::text LIKE '%' || $3 || '%')`
	if n := d.Count(t, facts, tokens.GrantID, receiptlog.SealMessage(tokens.GrantID[:], open, "m1"), open); n != 1 {
		t.Errorf("%d facts", n)
	}
	d.Exec(t, `UPDATE agents SET enabled = true`)
	before := d.agent.count()
	d.Clock.Advance(time.Minute)
	if n, err := a2a.Drain(t.Context(), d.rules, d.Hotel); n != 0 || err != nil {
		t.Errorf("it was tried again: %d, %v", n, err)
	}
	d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi")).invalid(t, "a spent message")
	if a := d.send(d.other, "sam", others.JWS, said("m1", theirs, "Hi")); a.status != http.StatusOK || d.agent.count() != before {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// One that fails while others do not keeps them waiting three times, so that the log is in
// order, and then no longer.
func TestOneThatFailsDoesNotHoldUpTheRest(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrUnavailable
	}
	for _, id := range []string{"first", "second", "third"} {
		d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"],"actions":[{"tool":"` + id + `"}]}`)
		d.send(d.pa, "alex", tokens.JWS, said(id, open, "Hi"))
		d.Clock.Advance(time.Second)
	}
	d.sign = nil
	keys, bad := d.NewKeys(), true
	rules := d.World.Authority(signs(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if bad && strings.Contains(string(payload), `"second"`) {
			return "", authority.ErrUnavailable
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	for minute, want := range []int{1, 0, 0, 1, 0, 0, 0} {
		d.Clock.Advance(time.Minute)
		if n, err := a2a.Drain(t.Context(), rules, d.Hotel); n != want || err != nil && !errors.Is(err, authority.ErrUnavailable) {
			t.Errorf("minute %d: %d got their receipts, not %d: %v", minute, n, want, err)
		}
	}
	bad = false
	d.Clock.Advance(time.Hour)
	if n, err := a2a.Drain(t.Context(), rules, d.Hotel); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

type signs func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error)

func (f signs) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	return f(ctx, brand, typ, payload)
}

// An answer that this version cannot read is not refused for good, since another may read
// it: it waits, ever longer, and others with it three times.
func TestAnAnswerThatCannotBeReadWaits(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrUnavailable
	}
	for _, id := range []string{"first", "new", "last"} {
		d.send(d.pa, "alex", tokens.JWS, said(id, open, "Hi"))
		d.Clock.Advance(time.Second)
	}
	d.sign = nil
	d.Exec(t, `UPDATE turns SET answer = '{"text":"Done.","later":true}' WHERE message_id = 'new'`)
	for minute, want := range []int{1, 0, 0, 1, 0} {
		d.Clock.Advance(time.Minute)
		if n, _ := a2a.Drain(t.Context(), d.rules, d.Hotel); n != want {
			t.Errorf("minute %d: %d instead of %d", minute, n, want)
		}
	}
	if n := d.Count(t, `SELECT count(*) FROM turns WHERE message_id = 'new' AND state = 'answered' AND answer IS NOT NULL`); n != 1 {
		t.Error("it waits no more")
	}
	d.Exec(t, `UPDATE turns SET answer = '{"text":"Done."}' WHERE message_id = 'new'`)
	d.Clock.Advance(time.Hour)
	if n, err := a2a.Drain(t.Context(), d.rules, d.Hotel); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
