package authority_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// talk is a conversation of alex's agent as guest-7, whose answers wait.
type talk struct {
	*authoritytest.World
	t      *testing.T
	rules  *authority.Authority
	tokens authority.Tokens
	open   authority.Exchange
	down   bool
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	k := &talk{World: authoritytest.New(t), t: t}
	keys := k.NewKeys()
	k.rules = k.World.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if k.down && typ == signing.TypReceipt {
			return "", errors.New("sealed")
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	k.tokens = delegated(t, k.World, k.rules, "bookings:read")
	k.open = k.hear("begins", nil)
	return k
}

func (k *talk) heard(message string) authority.Heard {
	return authority.Heard{
		Who: alex, Context: k.open.Context, MessageID: message, Subject: "guest-7", Grant: k.tokens.GrantID, Hash: receiptlog.HashText("Hi"),
	}
}

// hear gives the message its place, or is refused as wanted.
func (k *talk) hear(message string, want error) authority.Exchange {
	k.t.Helper()
	x, err := k.rules.Hear(k.t.Context(), k.Hotel.ID, k.heard(message))
	wantErr(k.t, err, want)
	return x
}

// answered lets the Brand's agent answer the message, which then waits.
func (k *talk) answered(message string) authority.Exchange {
	k.t.Helper()
	x := k.hear(message, nil)
	x.Claims = payload(k.t, k.tokens)
	if err := k.rules.KeepAnswer(k.t.Context(), k.Hotel.ID, &x, `{"text":"Done."}`); err != nil {
		k.t.Fatal(err)
	}
	return x
}

// gone reports whether the message is spent, and nothing of what was said is left.
func (k *talk) gone(message, state string) bool {
	k.t.Helper()
	return k.Count(k.t, `
		SELECT count(*) FROM turns
		 WHERE message_id = $1 AND state = $2 AND answer IS NULL AND claims IS NULL AND message_hash IS NULL AND reply IS NULL`, message, state) == 1
}

func (k *talk) waiting() int {
	k.t.Helper()
	w, err := k.rules.Waiting(k.t.Context(), k.Hotel.ID, authority.WaitingAnswer{})
	if err != nil {
		k.t.Fatal(err)
	}
	return len(w)
}

func (k *talk) facts(reason string) int {
	k.t.Helper()
	return k.Count(k.t, `
		SELECT count(*) FROM audit_events
		 WHERE event = 'incident.not_countersigned' AND detail->>'reason' = $1 AND detail->>'agent' = $2 AND grant_id = $3`,
		reason, alex.Agent, k.tokens.GrantID)
}

// What came to nothing is spent for everybody: nobody can take the turn again, by
// whichever token, nothing waits, and what was said and under which claims is erased.
func TestAnAnswerThatCameToNothingIsErased(t *testing.T) {
	k := newTalk(t)
	failed, refused := k.answered("failed"), k.answered("refused")
	k.Clock.Advance(2 * time.Minute)
	if n := k.waiting(); n != 2 {
		t.Fatalf("%d wait", n)
	}
	if err := k.rules.KeepFailure(t.Context(), k.Hotel.ID, failed); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is too late, and says nothing more
		if err := k.rules.KeepRefusal(t.Context(), k.Hotel.ID, refused, k.tokens.GrantID, alex.Agent, authority.ErrToken); err != nil {
			t.Fatal(err)
		}
	}
	if n := k.facts("token"); n != 1 {
		t.Errorf("%d facts", n)
	}
	for _, message := range []string{"failed", "refused"} {
		if !k.gone(message, "failed") {
			t.Errorf("%s: something is left", message)
		}
		k.hear(message, authority.ErrNoReply)
		other := k.heard(message)
		other.Grant = delegated(t, k.World, k.rules, "bookings:read").GrantID
		_, err := k.rules.Hear(t.Context(), k.Hotel.ID, other)
		wantErr(t, err, authority.ErrNoReply)
		other.Who.Sub, other.Context = "somebody", k.open.Context
		_, err = k.rules.Hear(t.Context(), k.Hotel.ID, other)
		wantErr(t, err, authority.ErrContext)
	}
	if n := k.waiting(); n != 0 {
		t.Errorf("%d wait for ever", n)
	}
	// Nor does a late answer bring one back.
	if err := k.rules.KeepAnswer(t.Context(), k.Hotel.ID, &failed, `{"text":"Done."}`); err != nil || !k.gone("failed", "failed") {
		t.Errorf("it was brought back, %v", err)
	}
}

// After a day what was said is erased, with the claims. What then still waits has no
// receipt for good, and that is said, once; what has its receipt, or was replied, is not.
func TestWhatWaitsForADayIsGivenUp(t *testing.T) {
	k := newTalk(t)
	k.answered("waits")
	settled := k.answered("settled")
	replied := k.answered("replied")
	for _, x := range []authority.Exchange{settled, replied} {
		_, err := k.rules.Countersign(t.Context(), k.Hotel, authority.Turn{
			Claims: x.Claims, Agent: alex.Agent, ContextID: x.Context.String(), MessageID: x.MessageID, Began: x.Began, Kept: x.Answered,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.rules.KeepReply(t.Context(), k.Hotel.ID, replied, "{}"); err != nil {
		t.Fatal(err)
	}
	k.down = true
	handedIn := servedTurn(k.tokens, "handed in")
	_, err := k.rules.Countersign(t.Context(), k.Hotel, handedIn)
	wantErr(t, err, authority.ErrUnavailable)
	k.Clock.Advance(24*time.Hour - time.Second)
	for _, later := range []time.Duration{0, 2 * time.Second, time.Hour} {
		k.Clock.Advance(later)
		if _, err := k.rules.Purge(t.Context(), k.Hotel.ID); err != nil {
			t.Fatal(err)
		}
		want := 2
		if later == 0 {
			want = 0
		}
		if n := k.facts("waited"); n != want {
			t.Errorf("after %s more: %d facts of turns that waited for too long, not %d", later, n, want)
		}
	}
	for message, state := range map[string]string{"waits": "failed", "settled": "failed", "replied": "replied"} {
		if !k.gone(message, state) {
			t.Errorf("%s: something is left, or it is not %s", message, state)
		}
		k.hear(message, authority.ErrNoReply)
	}
	if n := k.Count(t, `SELECT count(*) FROM turns_accepted`); n != 0 || k.waiting() != 0 {
		t.Errorf("%d wait for ever", n)
	}
}

// What a Brand handed in stands in the log in its order: one that fails holds up those
// after it, three times, and no longer.
func TestOneThatFailsDoesNotHoldUpWhatWasHandedIn(t *testing.T) {
	w := authoritytest.New(t)
	keys, down, bad := w.NewKeys(), true, "2"
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if typ == signing.TypReceipt && (down || strings.Contains(string(payload), `"tool":"`+bad+`"`)) {
			return "", errors.New("sealed")
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	tokens := delegated(t, w, a, "bookings:read")
	for _, tool := range []string{"1", "2", "3"} {
		turn := servedTurn(tokens, "m"+tool)
		turn.Actions = []authority.Action{{Tool: tool}}
		refusedTurn(t, w, a, "sealed", turn, authority.ErrUnavailable)
	}
	flushed := func(want int) {
		t.Helper()
		if n, err := a.Flush(t.Context(), w.Hotel); n != want || err != nil && !errors.Is(err, authority.ErrUnavailable) {
			t.Errorf("%d instead of %d, %v", n, want, err)
		}
		w.Clock.Advance(time.Minute)
	}
	for range 5 {
		flushed(0) // nobody signs: that is nobody's fault
	}
	down = false
	for _, want := range []int{1, 0, 0, 1, 0, 0} {
		flushed(want)
	}
	bad = ""
	w.Clock.Advance(time.Hour)
	flushed(1)
	if n := w.Count(t, `SELECT count(*) FROM receipts WHERE (seq, message_id) IN ((0, 'm1'), (1, 'm3'), (2, 'm2'))`); n != 3 {
		t.Errorf("%d are in their places", n)
	}
}

// Where nobody says when a turn began, it is when it was first handed in, however often it
// comes again.
func TestAnUndatedTurnBeganWhenItCameFirst(t *testing.T) {
	k := newTalk(t)
	k.down = true
	turn := servedTurn(k.tokens, "undated")
	turn.Began = time.Time{}
	first := k.Clock.Now()
	_, err := k.rules.Countersign(t.Context(), k.Hotel, turn)
	wantErr(t, err, authority.ErrUnavailable)
	k.down = false
	k.Clock.Advance(time.Minute)
	r := countersigned(t, k.rules, k.Hotel, turn)
	line, err := k.rules.LogEntry(t.Context(), k.Hotel.ID, r.Seq)
	if err != nil || !strings.Contains(string(line.Entry), `"began":"`+receiptlog.At(first)+`"`) {
		t.Errorf("%s, %v", line.Entry, err)
	}
}
