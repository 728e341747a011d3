package authority_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// Of two contents of one turn the first waits, and has the receipt: that something can be
// signed again does not make room for the other.
func TestWhatWaitsIsNotDisplaced(t *testing.T) {
	k := newTalk(t)
	first, other := servedTurn(k.tokens, "m1"), servedTurn(k.tokens, "m1")
	other.Actions = []authority.Action{{Tool: "another"}}
	k.down = true
	refusedTurn(t, k.World, k.rules, "sealed", first, authority.ErrUnavailable)
	k.down = false
	_, err := k.rules.Countersign(t.Context(), k.Hotel, other)
	wantErr(t, err, authority.ErrConflict)
	// Nor where it was looked up before the first came.
	other.MessageID, first.MessageID = "m2", "m2"
	a := whileSigning(k.World, func() {
		k.down = true
		refusedTurn(t, k.World, k.rules, "sealed", first, authority.ErrUnavailable)
		k.down = false
	})
	_, err = a.Countersign(t.Context(), k.Hotel, other)
	wantErr(t, err, authority.ErrConflict)
	if n, err := k.rules.Flush(t.Context(), k.Hotel); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n := k.Count(t, `SELECT count(*) FROM receipts`); n != 2 {
		t.Errorf("%d receipts", n)
	}
	countersigned(t, k.rules, k.Hotel, first)
}

// A turn that is written down, or flushed, while its person is erased leaves nothing of
// them behind.
func TestErasureLeavesNothingThatWaits(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		w := authoritytest.New(t)
		other := w.Authority(nil)
		tokens := delegated(t, w, other, "bookings:read")
		erases := false
		a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, _ []byte) (string, error) {
			if typ == signing.TypReceipt && erases {
				if _, err := other.Erase(ctx, brand, authority.ByOperator(), "guest-7"); err != nil {
					t.Error(err)
				}
			}
			return "", errors.New("sealed")
		}))
		if flushed {
			refusedTurn(t, w, a, "sealed", servedTurn(tokens, "m1"), authority.ErrUnavailable)
			erases = true
			_, _ = a.Flush(t.Context(), w.Hotel)
		} else {
			erases = true
			refusedTurn(t, w, a, "erased meanwhile", servedTurn(tokens, "m1"), authority.ErrToken)
		}
		if n := w.Count(t, `SELECT count(*) FROM turns_accepted`); n != 0 {
			t.Errorf("flushed %t: %d rows came back", flushed, n)
		}
	}
}

// A turn that a version before wrote down, of which nothing to sign was kept, is signed
// by itself once it came again.
func TestATurnOfAVersionBeforeIsFilled(t *testing.T) {
	k := newTalk(t)
	k.down = true
	turn := servedTurn(k.tokens, "m1")
	refusedTurn(t, k.World, k.rules, "sealed", turn, authority.ErrUnavailable)
	k.Exec(t, `UPDATE turns_accepted SET turn = NULL, n = NULL`)
	refusedTurn(t, k.World, k.rules, "again", turn, authority.ErrUnavailable)
	k.down = false
	if n, err := k.rules.Flush(t.Context(), k.Hotel); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// When a turn began stands as it was first handed in.
func TestWhatWaitsBeganWhenItSaidFirst(t *testing.T) {
	k := newTalk(t)
	k.down = true
	turn := servedTurn(k.tokens, "m1")
	turn.Began = k.Clock.Now()
	refusedTurn(t, k.World, k.rules, "sealed", turn, authority.ErrUnavailable)
	k.down = false
	k.Clock.Advance(time.Minute)
	began := turn.Began
	turn.Began = k.Clock.Now()
	r := countersigned(t, k.rules, k.Hotel, turn)
	line, err := k.rules.LogEntry(t.Context(), k.Hotel.ID, r.Seq)
	if err != nil || !strings.Contains(string(line.Entry), `"began":"`+receiptlog.At(began)+`"`) {
		t.Errorf("%s, %v", line.Entry, err)
	}
}

// The bound holds for many turns at once.
func TestSeveralTurnsFindOnlyTheRoomThatIsLeft(t *testing.T) {
	k := newTalk(t)
	k.down = true
	k.Exec(t, `INSERT INTO turns_accepted (brand_id, grant_id, context_id, message_id, content, accepted_at)
		SELECT 'harbor-hotel', $1, 'full', n::text, '', $2 FROM generate_series(1, 9999) n`, k.tokens.GrantID, k.Clock.Now())
	var turns []authority.Turn
	for n := range 5 {
		turns = append(turns, servedTurn(k.tokens, fmt.Sprint("m", n)))
	}
	full := 0
	for _, r := range k.rules.CountersignMany(t.Context(), k.Hotel, turns) {
		if errors.Is(r.Err, authority.ErrNotKept) {
			full++
		}
	}
	if n := k.Count(t, `SELECT count(*) FROM turns_accepted`); n != 10_000 || full != 4 {
		t.Errorf("%d wait, %d found no room", n, full)
	}
}

// What has its receipt is not said to have none, only because it was not taken away.
func TestWhatIsSignedIsNotGivenUp(t *testing.T) {
	k := newTalk(t)
	k.down = true
	turn := servedTurn(k.tokens, "m1")
	refusedTurn(t, k.World, k.rules, "sealed", turn, authority.ErrUnavailable)
	k.Exec(t, `CREATE TABLE aside AS SELECT * FROM turns_accepted`)
	k.down = false
	countersigned(t, k.rules, k.Hotel, turn)
	k.Exec(t, `INSERT INTO turns_accepted SELECT * FROM aside`)
	k.Clock.Advance(25 * time.Hour)
	if _, err := k.rules.Purge(t.Context(), k.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if n := k.Count(t, `SELECT count(*) FROM turns_accepted`); n != 0 || k.facts("waited") != 0 {
		t.Errorf("%d wait, %d facts", n, k.facts("waited"))
	}
}

// The trail names a turn without a receipt to whoever has its ids, and holds nothing that
// somebody typed; and who it was is erased with them.
func TestATurnWithoutAReceiptIsErased(t *testing.T) {
	k := newTalk(t)
	k.down = true
	turn := servedTurn(k.tokens, "Mary Smith, room 12")
	turn.ContextID = "mary@example.org"
	refusedTurn(t, k.World, k.rules, "sealed", turn, authority.ErrUnavailable)
	k.Clock.Advance(25 * time.Hour)
	if _, err := k.rules.Purge(t.Context(), k.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	const says = `SELECT count(*) FROM audit_events WHERE event = 'incident.not_countersigned' AND detail::text LIKE $1`
	of := receiptlog.SealMessage(k.tokens.GrantID[:], turn.ContextID, turn.MessageID)
	for text, want := range map[string]int{"guest-7": 1, of: 1, "Mary": 0, "mary": 0} {
		if n := k.Count(t, says, "%"+text+"%"); n < want || n > 0 && want == 0 {
			t.Errorf("%s: %d facts", text, n)
		}
	}
	if _, err := k.rules.Erase(t.Context(), k.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	if n := k.Count(t, says, "{}"); n == 0 || n != k.Count(t, says, "%") {
		t.Errorf("%d facts are erased, of %d", n, k.Count(t, says, "%"))
	}
}

// A message that the Brand's agent was called with, and of which nothing was kept, is
// settled when nobody can be at it any more: it may have acted, and the trail says so.
func TestATurnThatBrokeOffIsSaid(t *testing.T) {
	k := newTalk(t)
	x := k.hear("broken", nil)
	none := k.heard("no token")
	none.Context, none.Subject, none.Grant = [16]byte{}, "", [16]byte{}
	if _, err := k.rules.Hear(t.Context(), k.Hotel.ID, none); err != nil {
		t.Fatal(err)
	}
	for _, later := range []time.Duration{9 * time.Minute, 2 * time.Minute, time.Hour} {
		k.Clock.Advance(later)
		if _, err := k.rules.Purge(t.Context(), k.Hotel.ID); err != nil {
			t.Fatal(err)
		}
		want := 2 // with the one that began the conversation
		if later == 9*time.Minute {
			want = 0
		}
		if n := k.facts("broken"); n != want {
			t.Errorf("after %s more: %d facts, not %d", later, n, want)
		}
	}
	k.hear("broken", authority.ErrSpent)
	if err := k.rules.KeepAnswer(t.Context(), k.Hotel.ID, &x, `{"text":"Done."}`); err != nil || !k.gone("broken", "failed") {
		t.Errorf("it was brought back, %v", err)
	}
}

// A conversation is not bound while a turn of it waits, which would be missing: neither
// one that waited before nor one that comes while it is being signed. Another
// conversation's does not matter.
func TestAConversationIsBoundWhole(t *testing.T) {
	k := newTalk(t)
	countersigned(t, k.rules, k.Hotel, servedTurn(k.tokens, "m1"))
	wait := func(context, message string) {
		turn := servedTurn(k.tokens, message)
		turn.ContextID = context
		k.down = true
		refusedTurn(t, k.World, k.rules, "sealed", turn, authority.ErrUnavailable)
		k.down = false
	}
	wait("talk-2", "m1")
	bound, err := k.rules.CountersignTask(t.Context(), k.Hotel, k.tokens.GrantID, "talk-1")
	if err != nil || bound.Count != 1 {
		t.Fatalf("%d, %v", bound.Count, err)
	}
	wait("talk-1", "m2")
	_, err = k.rules.CountersignTask(t.Context(), k.Hotel, k.tokens.GrantID, "talk-1")
	wantErr(t, err, authority.ErrUnavailable)
	if n, err := k.rules.Flush(t.Context(), k.Hotel); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	keys := k.NewKeys()
	a := k.World.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		wait("talk-1", "m3")
		return keys.Sign(ctx, brand, typ, payload)
	}))
	_, err = a.CountersignTask(t.Context(), k.Hotel, k.tokens.GrantID, "talk-1")
	wantErr(t, err, authority.ErrUnavailable)
	if n, err := k.rules.Flush(t.Context(), k.Hotel); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if bound, err = k.rules.CountersignTask(t.Context(), k.Hotel, k.tokens.GrantID, "talk-1"); err != nil || bound.Count != 3 {
		t.Errorf("%d, %v", bound.Count, err)
	}
}
