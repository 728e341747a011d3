package authority_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// R77, R78: a log that did not grow is not signed again, but by a new key; one that
// grew is kept signed once an hour; and while nothing can be signed an instance that
// has just begun has the last checkpoint all the same.
func TestCheckpointsAreKept(t *testing.T) {
	w, writes, tokens, _ := logged(t, 2)
	keys, signed, down := w.NewKeys(), 0, false
	instance := func() *authority.Authority {
		return w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
			if down {
				return "", errors.New("sealed")
			}
			signed++
			return keys.Sign(ctx, brand, typ, payload)
		}))
	}
	grow := func(message string) { countersigned(t, writes, w.Hotel, servedTurn(tokens, message)) }
	keep := func(name string, want int) {
		t.Helper()
		if err := instance().KeepCheckpoint(t.Context(), w.Hotel); err != nil || signed != want {
			t.Errorf("%s: %d signatures instead of %d, %v", name, signed, want, err)
		}
	}
	first, err := instance().Checkpoint(t.Context(), w.Hotel)
	if again, err := instance().Checkpoint(t.Context(), w.Hotel); err != nil || again != first || signed != 1 {
		t.Errorf("%+v, %v, %d signatures", again, err, signed)
	}
	if err != nil {
		t.Fatal(err)
	}
	down = true
	grow("later")
	if c, err := instance().Checkpoint(t.Context(), w.Hotel); err != nil || c != first {
		t.Errorf("sealed: %+v, %v", c, err)
	}
	down = false
	keep("just signed", 1)
	w.Clock.Advance(time.Hour)
	keep("an hour later", 2)
	w.Clock.Advance(time.Hour)
	keep("nothing new", 2)
	w.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = 'harbor-hotel'`)
	keep("without a key", 2)
	if err := keys.Ensure(t.Context(), w.Hotel.ID, "local", signing.ES256); err != nil {
		t.Fatal(err)
	}
	keep("a new key", 3)
	// A hash that is gone is not made up.
	w.Exec(t, `DELETE FROM receipts WHERE seq = 1`)
	_, err = writes.Inclusion(t.Context(), w.Hotel.ID, 2, 3)
	wantErr(t, err, authority.ErrForked)
}

// One task receipt is given out of the same receipts, where another instance was
// faster too; and none of a conversation that was erased while it was being signed.
func TestTaskReceiptsMeanwhile(t *testing.T) {
	w, other, tokens, _ := logged(t, 2)
	keys := w.NewKeys()
	var meanwhile func()
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		meanwhile()
		return keys.Sign(ctx, brand, typ, payload)
	}))
	var first authority.TaskReceipt
	meanwhile = func() {
		var err error
		w.Clock.Advance(time.Second)
		if first, err = other.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-1"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-1"); err != nil || got.JWS != first.JWS || !got.Again {
		t.Errorf("%+v, %v", got, err)
	}
	countersigned(t, other, w.Hotel, servedTurn(tokens, "one more"))
	meanwhile = func() {
		if _, err := other.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-1")
	wantErr(t, err, authority.ErrUnknown)
	if n := w.Count(t, `SELECT count(*) FROM task_receipts`); n != 0 {
		t.Errorf("%d task receipts of what was erased", n)
	}
}

// A conversation of more receipts than are read at a time is bound whole.
func TestALongConversationIsBound(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	const turns = 507
	for from := 0; from < turns; from += authority.MaxTurns {
		var batch []authority.Turn
		for i := from; i < min(from+authority.MaxTurns, turns); i++ {
			batch = append(batch, servedTurn(tokens, fmt.Sprint("m", i)))
		}
		for _, r := range a.CountersignMany(t.Context(), w.Hotel, batch) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	if got, err := a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-1"); err != nil || got.Count != turns {
		t.Errorf("%d of %d, %v", got.Count, turns, err)
	}
}

// What was done under a grant is listed by its time, the latest first, page after
// page, and counted; another grant's is not, nor what was erased.
func TestDoneIsOfOneGrant(t *testing.T) {
	w, a, tokens, receipts := logged(t, 5)
	lives(t, w, a, "guest-2")
	var got []string
	var before time.Time
	for range 4 {
		page, err := a.Done(t.Context(), w.Hotel.ID, tokens.GrantID, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			got, before = append(got, d.MessageID), d.At
		}
	}
	if fmt.Sprint(got) != "[m4 m3 m2 m1 m0]" {
		t.Errorf("%v", got)
	}
	count := func() int {
		t.Helper()
		n, err := a.CountDone(t.Context(), w.Hotel.ID, tokens.GrantID)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != len(receipts) {
		t.Errorf("%d were done", n)
	}
	if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d were done, and erased", n)
	}
	_, err := w.Authority(nil).LogEntryOfAgent(t.Context(), w.Hotel.ID, authority.Caller{Agent: authoritytest.Agent, Sub: "somebody"}, 0)
	wantErr(t, err, authority.ErrUnknown)
}
