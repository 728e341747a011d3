package authority_test

import (
	"context"
	"encoding/json"
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

// refusedTurn counts on the turn's being refused, and on nothing of it in the log.
func refusedTurn(t *testing.T, w *authoritytest.World, a *authority.Authority, name string, served authority.Turn, want error) {
	t.Helper()
	before := w.Count(t, `SELECT count(*) FROM receipts`)
	if r, err := a.Countersign(t.Context(), w.Hotel, served); !errors.Is(err, want) || r.JWS != "" {
		t.Errorf("%s: %v, %+v", name, err, r)
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != before {
		t.Errorf("%s: %d receipts, %d before", name, n, before)
	}
}

// M17, M24: what the Brand's own key signed is a token only where it names this
// Brand, and a grant that is of this agent and this user.
func TestATokenIsOfItsGrant(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	countersigned(t, a, w.Hotel, servedTurn(tokens, "known"))
	var says map[string]any
	if err := json.Unmarshal(payload(t, tokens), &says); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]any){
		"another issuer":     func(c map[string]any) { c["iss"] = w.Shop.Issuer },
		"another audience":   func(c map[string]any) { c["aud"] = w.Shop.InterfaceURL },
		"a list of audience": func(c map[string]any) { c["aud"] = []string{w.Hotel.InterfaceURL} },
		"an unknown grant":   func(c map[string]any) { c["grant_id"] = "0190a5c4-7e00-7000-8000-000000000001" },
		"no grant":           func(c map[string]any) { delete(c, "grant_id") },
		"nothing of a grant": func(c map[string]any) {
			c["grant_id"], c["client_id"], c["sub"] = "0190a5c4-7e00-7000-8000-000000000001", "", ""
		},
		"a number as its id": func(c map[string]any) { c["jti"] = 7 },
		"another user":       func(c map[string]any) { c["sub"] = "guest-8" },
		"another agent":      func(c map[string]any) { c["client_id"] = authoritytest.OtherAgent },
		"of tomorrow":        func(c map[string]any) { c["iat"] = w.Clock.Now().Add(time.Minute).Unix() },
	} {
		changed := make(map[string]any)
		for k, v := range says {
			changed[k] = v
		}
		change(changed)
		text, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		jws, err := w.Keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []string{"known", "new"} {
			served := servedTurn(tokens, message)
			served.Token, served.Agent = jws, "" // the Brand vouches for the agent
			refusedTurn(t, w, a, name+", "+message, served, authority.ErrToken)
		}
	}
}

// M24: what cannot be put into a receipt is refused before anything is signed; so
// are more than a hundred turns, or actions, though each is good.
func TestWhatFitsIntoAReceipt(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	for name, change := range map[string]func(*authority.Turn){
		"no UTF-8":        func(x *authority.Turn) { x.MessageID = "a\xff" },
		"no UTF-8 either": func(x *authority.Turn) { x.ContextID = "\xc3(" },
		"a long tool":     func(x *authority.Turn) { x.Actions[0].Tool = strings.Repeat("x", 129) },
		"101 actions": func(x *authority.Turn) {
			x.Actions = nil
			for range 101 {
				x.Actions = append(x.Actions, authority.Action{Tool: "look"})
			}
		},
		"a hundred long actions of four bytes a letter": func(x *authority.Turn) {
			x.Actions = nil
			for range 100 {
				x.Actions = append(x.Actions, authority.Action{Tool: strings.Repeat("\U0001F97E", 128)})
			}
		},
	} {
		served := servedTurn(tokens, "m-"+name)
		change(&served)
		refusedTurn(t, w, a, name, served, authority.ErrMalformed)
	}
	var many []authority.Turn
	for i := range authority.MaxTurns + 1 {
		many = append(many, servedTurn(tokens, fmt.Sprint("m", i)))
	}
	for _, r := range a.CountersignMany(t.Context(), w.Hotel, many) {
		if !errors.Is(r.Err, authority.ErrMalformed) {
			t.Fatalf("one of %d: %v", len(many), r.Err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != 0 {
		t.Errorf("%d receipts", n)
	}
	// The most there may be, and each scope once.
	served := servedTurn(tokens, strings.Repeat("ä", 256))
	served.Actions, served.ScopesUsed = nil, []string{"bookings:read", "bookings:read"}
	for range 100 {
		served.Actions = append(served.Actions, authority.Action{Tool: strings.Repeat("x", 128)})
	}
	if r := countersigned(t, a, w.Hotel, served); !strings.Contains(string(r.Claims), `"scopesUsed":["bookings:read"]`) {
		t.Errorf("%s", r.Claims)
	}
}

// The log's times are ours, but for when the turn began, which is the Brand's word: a
// clock that goes a little before ours begins nothing in our future.
func TestTimesOfAnEntry(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	w.Clock.Advance(time.Minute)
	for name, tt := range map[string]struct{ began, want time.Duration }{
		"before": {-40 * time.Second, -40 * time.Second}, "a little ahead": {20 * time.Second, 0},
	} {
		served := servedTurn(tokens, name)
		served.Began = w.Clock.Now().Add(tt.began)
		r := countersigned(t, a, w.Hotel, served)
		line, err := a.LogEntry(t.Context(), w.Hotel.ID, r.Seq)
		if err != nil {
			t.Fatal(err)
		}
		var e receiptlog.Entry
		if err := json.Unmarshal(line.Entry, &e); err != nil || e.Began != receiptlog.At(w.Clock.Now().Add(tt.want)) {
			t.Errorf("%s: %s, %v", name, line.Entry, err)
		}
	}
}

// The receipt's ts is when it was signed, the entry's logged when it was written.
func TestSignedAndLoggedAreTwoTimes(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if typ == signing.TypReceipt {
			w.Clock.Advance(2 * time.Second)
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	r := countersigned(t, a, w.Hotel, servedTurn(delegated(t, w, a, "bookings:read"), "m"))
	line, err := a.LogEntry(t.Context(), w.Hotel.ID, r.Seq)
	if err != nil || !strings.Contains(string(line.Entry), `"at":"2026-11-30T12:00:00.000Z"`) ||
		!strings.Contains(string(line.Entry), `"logged":"2026-11-30T12:00:02.000Z"`) || !strings.Contains(string(r.Claims), `"ts":"2026-11-30T12:00:00.000Z"`) {
		t.Errorf("%s, %s, %v", r.Claims, line.Entry, err)
	}
}

// P33: a scope that was lost again counts from when it was lost last; what another
// grant lost says nothing; and a grant whose time is over has ended.
func TestWhenAScopeWasLost(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read", "bookings:change")
	began := w.Clock.Now()
	lose := func() {
		t.Helper()
		if err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID, "bookings:read"); err != nil {
			t.Fatal(err)
		}
	}
	turn := func(message string) authority.Turn {
		served := servedTurn(tokens, message)
		served.Began = began
		return served
	}
	w.Clock.Advance(time.Second)
	lose()
	if r := countersigned(t, a, w.Hotel, turn("first")); !r.Late {
		t.Errorf("%+v", r)
	}
	w.Clock.Advance(authority.LateTime)
	// Another person's grant loses the same now.
	sam := authority.Caller{Agent: authoritytest.Agent, Sub: "sam-phone"}
	s := authoritytest.Begin(t, a, w.Hotel, sam, "bookings:read", "bookings:change")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-8", "bookings:read", "bookings:change")
	others, err := a.Poll(t.Context(), w.Hotel, sam, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-8", others.GrantID, "bookings:read"); err != nil {
		t.Fatal(err)
	}
	refusedTurn(t, w, a, "what another lost", turn("second"), authority.ErrScope)
	// It is allowed again, and lost again.
	widen := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, widen, "guest-7", "bookings:read", "bookings:change")
	if r := countersigned(t, a, w.Hotel, turn("third")); r.Late {
		t.Errorf("%+v", r)
	}
	w.Clock.Advance(time.Second)
	lose()
	r := countersigned(t, a, w.Hotel, turn("fourth"))
	if again := countersigned(t, a, w.Hotel, turn("fourth")); !r.Late || !again.Late || !again.Again {
		t.Errorf("%+v, %+v", r, again)
	}
}

// A grant whose time is over has ended, whatever its token says.
func TestAGrantThatIsOverIsLate(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	served := servedTurn(tokens, "before")
	served.Began = w.Clock.Now()
	w.Clock.Advance(time.Minute)
	w.Exec(t, `UPDATE grants SET expires_at = $1`, w.Clock.Now())
	if r := countersigned(t, a, w.Hotel, served); !r.Late {
		t.Errorf("%+v", r)
	}
	refusedTurn(t, w, a, "began after", servedTurn(tokens, "after"), authority.ErrToken)
}

// R77: what is written down of a turn that could not be signed is of this turn, of
// the first time that it came, even where its caller is gone; and bounded.
func TestWhatIsKeptOfATurnThatCouldNotBeSigned(t *testing.T) {
	w := authoritytest.New(t)
	keys, down := w.NewKeys(), true
	var gone context.CancelFunc
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if !down || typ != signing.TypReceipt {
			return keys.Sign(ctx, brand, typ, payload)
		}
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > 5*time.Second {
			t.Errorf("a signature may take until %s", until)
		}
		if gone != nil {
			gone()
		}
		return "", errors.New("sealed")
	}))
	tokens := delegated(t, w, a, "bookings:read")
	began := w.Clock.Now()
	turn := func(context, message string) authority.Turn {
		served := servedTurn(tokens, message)
		served.ContextID, served.Began = context, began
		return served
	}
	refusedTurn(t, w, a, "sealed", turn("talk-1", "m1"), authority.ErrUnavailable)
	refusedTurn(t, w, a, "sealed", turn("talk-1", "m2"), authority.ErrUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	gone = cancel
	if _, err := a.Countersign(ctx, w.Hotel, turn("talk-1", "gone")); !errors.Is(err, authority.ErrUnavailable) {
		t.Error(err)
	}
	gone = nil
	w.Clock.Advance(time.Second)
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Second)
	refusedTurn(t, w, a, "again", turn("talk-1", "m1"), authority.ErrUnavailable)
	if n := w.Count(t, `SELECT count(*) FROM turns_accepted WHERE accepted_at = $1`, began); n != 3 {
		t.Errorf("%d turns of when they came first", n)
	}
	down = false
	w.Clock.Advance(time.Hour)
	refusedTurn(t, w, a, "another conversation", turn("talk-2", "m1"), authority.ErrToken)
	countersigned(t, a, w.Hotel, turn("talk-1", "m1"))
	if n := w.Count(t, `SELECT count(*) FROM turns_accepted`); n != 2 {
		t.Errorf("%d turns still wait, after one of 3 came", n)
	}
	countersigned(t, a, w.Hotel, turn("talk-1", "gone"))
	// No more than so many.
	down = true
	w.Exec(t, `INSERT INTO turns_accepted SELECT 'harbor-hotel', $1, 'full', n::text, '', $2 FROM generate_series(1, 9998) n`, tokens.GrantID, w.Clock.Now())
	tokens = delegated(t, w, a, "bookings:read")
	refusedTurn(t, w, a, "the last place", servedTurn(tokens, "m3"), authority.ErrUnavailable)
	refusedTurn(t, w, a, "full", servedTurn(tokens, "m4"), authority.ErrNotKept)
	if n := w.Count(t, `SELECT count(*) FROM turns_accepted`); n != 10_000 {
		t.Errorf("%d turns are kept", n)
	}
}

// A turn whose Brand is paused waits as in an outage: it has its receipt when the
// Brand goes on, however long its token has ended by then; and one that was no good
// does not wait.
func TestAPauseLosesNoReceipt(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	turn := servedTurn(tokens, "m1")
	turn.Began = w.Clock.Now()
	bad := servedTurn(tokens, "bad")
	bad.ScopesUsed = []string{"extras:order"}
	w.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`)
	w.Clock.Advance(time.Second)
	refusedTurn(t, w, a, "paused", turn, authority.ErrPaused)
	refusedTurn(t, w, a, "paused, and no good", bad, authority.ErrScope)
	w.Clock.Advance(w.Hotel.TokenLifetime + authority.LateTime)
	refusedTurn(t, w, a, "still paused", turn, authority.ErrPaused)
	unheard := turn
	unheard.MessageID = "m2"
	refusedTurn(t, w, a, "its token ended long ago", unheard, authority.ErrToken)
	w.Exec(t, `UPDATE brands SET state = 'active' WHERE id = 'harbor-hotel'`)
	if r := countersigned(t, a, w.Hotel, turn); !r.Late || r.Again {
		t.Errorf("%+v", r)
	}
	refusedTurn(t, w, a, "never heard", unheard, authority.ErrToken)
	if n := w.Count(t, `SELECT count(*) FROM turns_accepted`); n != 0 {
		t.Errorf("%d turns still wait", n)
	}
}

// whileSigning is an instance on which something happens while the first receipt is
// being signed.
func whileSigning(w *authoritytest.World, happens func()) *authority.Authority {
	keys := w.NewKeys()
	return w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		jws, err := keys.Sign(ctx, brand, typ, payload)
		if typ == signing.TypReceipt && happens != nil {
			do := happens
			happens = nil
			do()
		}
		return jws, err
	}))
}

// What was judged before it was signed is judged again with the log locked: what
// ended meanwhile makes a turn late, or leaves it without a receipt.
func TestATurnThatEndsMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		sql  string
		want error
	}{
		"the grant":   {`UPDATE grants SET ended_at = '2026-11-30T12:00:01Z', end_reason = 'person'`, nil},
		"the agent":   {`UPDATE agents SET enabled = false`, authority.ErrToken},
		"the Brand":   {`UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`, authority.ErrPaused},
		"the mandate": {`UPDATE grants SET subject = 'erased'`, authority.ErrToken},
	} {
		t.Run(name, func(t *testing.T) {
			w := authoritytest.New(t)
			tokens := delegated(t, w, w.Authority(nil), "bookings:read")
			w.Clock.Advance(time.Second)
			a := whileSigning(w, func() { w.Exec(t, tt.sql); w.Clock.Advance(time.Second) })
			served := servedTurn(tokens, "m")
			served.ScopesUsed, served.Began = nil, w.Clock.Now().Add(-time.Second)
			if tt.want != nil {
				refusedTurn(t, w, a, name, served, tt.want)
				return
			}
			r := countersigned(t, a, w.Hotel, served)
			line, err := a.LogEntry(t.Context(), w.Hotel.ID, r.Seq)
			if err != nil || !r.Late || !strings.Contains(string(line.Entry), `"late":true`) {
				t.Errorf("%+v, %s, %v", r, line.Entry, err)
			}
		})
	}
}

// P44: where another instance gave the same grant the same millisecond meanwhile,
// the later one looks again; what stands in the log already it does not try.
func TestNoTwoInstancesGiveOneMillisecond(t *testing.T) {
	w := authoritytest.New(t)
	other := w.Authority(nil)
	tokens := delegated(t, w, other, "bookings:read")
	for i := range 3 {
		countersigned(t, other, w.Hotel, servedTurn(tokens, fmt.Sprint("m", i)))
	}
	signed := 0
	keys := w.NewKeys()
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if signed++; signed == 2 {
			countersigned(t, other, w.Hotel, servedTurn(tokens, "meanwhile"))
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	if r := countersigned(t, a, w.Hotel, servedTurn(tokens, "next")); signed != 1 || !strings.Contains(string(r.Claims), "12:00:00.003Z") {
		t.Errorf("%d signatures, %s", signed, r.Claims)
	}
	if r := countersigned(t, a, w.Hotel, servedTurn(tokens, "last")); signed != 3 || r.Seq != 5 || !strings.Contains(string(r.Claims), "12:00:00.005Z") {
		t.Errorf("%d signatures, %d, %s", signed, r.Seq, r.Claims)
	}
}

// The head of a log is read once nobody else can move it: who waited goes on from
// where the other came to.
func TestTheHeadIsReadUnderItsLock(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	countersigned(t, a, w.Hotel, servedTurn(tokens, "m0"))
	tx, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	do := func(sql string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do(`SELECT FROM log_heads FOR UPDATE`)
	type answer struct {
		authority.Receipt
		err error
	}
	got := make(chan answer, 1)
	go func() {
		r, err := a.Countersign(t.Context(), w.Hotel, servedTurn(tokens, "m1"))
		got <- answer{r, err}
	}()
	for w.Count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		if len(got) > 0 {
			t.Fatal("it waited for nobody")
		}
	}
	do(`INSERT INTO receipts (brand_id, seq, grant_id, at, late, entry, hashes)
		SELECT brand_id, 1, gen_random_uuid(), at, late, entry, hashes || hashes FROM receipts`)
	do(`UPDATE log_heads SET size = 2`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.err != nil || r.Seq != 2 {
		t.Errorf("%+v", r)
	}
}

// What was signed and not written is not handed out; and nothing of it is left.
func TestNothingUnwrittenIsHandedOut(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	countersigned(t, a, w.Hotel, servedTurn(tokens, "m0"))
	w.Exec(t, `ALTER TABLE receipts ADD CONSTRAINT full_disk CHECK (false) NOT VALID`)
	if r, err := a.Countersign(t.Context(), w.Hotel, servedTurn(tokens, "m1")); err == nil || r.JWS != "" || r.Claims != nil {
		t.Errorf("%+v, %v", r, err)
	}
	w.Exec(t, `ALTER TABLE receipts DROP CONSTRAINT full_disk`)
	if r := countersigned(t, a, w.Hotel, servedTurn(tokens, "m1")); r.Again || r.Seq != 1 {
		t.Errorf("%+v", r)
	}
	logIsSound(t, w, a, 2)
}

// A caller who goes away takes nothing from the log, nor from those who share its
// transaction.
func TestTheLogWaitsForNoCaller(t *testing.T) {
	w := authoritytest.New(t)
	tokens := delegated(t, w, w.Authority(nil), "bookings:read")
	ctx, cancel := context.WithCancel(t.Context())
	a := whileSigning(w, cancel)
	r, err := a.Countersign(ctx, w.Hotel, servedTurn(tokens, "m"))
	if err != nil || ctx.Err() == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if again := countersigned(t, a, w.Hotel, servedTurn(tokens, "m")); !again.Again || again.JWS != r.JWS {
		t.Errorf("%+v", again)
	}
}
