package authority_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// servedTurn is one that was served under the token.
func servedTurn(tokens authority.Tokens, message string) authority.Turn {
	return authority.Turn{
		Token: tokens.JWS, Agent: authoritytest.Agent, ContextID: "talk-1", MessageID: message,
		ScopesUsed: []string{"bookings:read"}, Actions: []authority.Action{{Tool: "bookings.list", Args: json.RawMessage(`{"b":1,"a":[]}`)}},
	}
}

func countersigned(t *testing.T, a *authority.Authority, b *tenants.Brand, turn authority.Turn) authority.Receipt {
	t.Helper()
	r, err := a.Countersign(t.Context(), b, turn)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// M24, P43: exactly seven claims, signed as a receipt by the Brand's published key;
// the payload is the claims to the byte.
func TestAReceiptSaysSevenThings(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read", "bookings:change")
	served := servedTurn(tokens, "m1")
	served.Actions = append(served.Actions, authority.Action{Tool: "look"}, authority.Action{Tool: "pay", ArgsHash: strings.Repeat("A", 43)})
	r := countersigned(t, a, w.Hotel, served)
	payload, err := w.Keys.Verify(t.Context(), w.Hotel.ID, signing.TypReceipt, r.JWS)
	if err != nil || string(payload) != string(r.Claims) {
		t.Fatalf("%s, %s, %v", payload, r.Claims, err)
	}
	want := `{"actions":[{"argsHash":"HI-IFlBqjMvFUUDYp7twIUqJQscDD8D8KRTOxnXNHBU","tool":"bookings.list"},{"tool":"look"},{"argsHash":"` +
		strings.Repeat("A", 43) + `","tool":"pay"}],"brand":"https://countersign.example/a2a/harbor-hotel","grantId":"` + tokens.GrantID.String() +
		`","pa":"https://agent.example","scopesUsed":["bookings:read"],"ts":"2026-11-30T12:00:00.000Z","user":"guest-7"}`
	if diff := cmp.Diff(want, string(r.Claims)); diff != "" {
		t.Error(diff)
	}
	header, _ := base64.RawURLEncoding.DecodeString(strings.Split(r.JWS, ".")[0])
	if !strings.Contains(string(header), `"typ":"pact-receipt+jws"`) || !strings.Contains(string(header), `"kid":`) {
		t.Errorf("%s", header)
	}
	for _, other := range []struct {
		brand tenants.BrandID
		typ   string
	}{{w.Shop.ID, signing.TypReceipt}, {w.Hotel.ID, signing.TypToken}} {
		if _, err := w.Keys.Verify(t.Context(), other.brand, other.typ, r.JWS); !errors.Is(err, signing.ErrNotOurs) {
			t.Errorf("%v: %v", other, err)
		}
	}
	bare := countersigned(t, a, w.Hotel, authority.Turn{Token: tokens.JWS, ContextID: "c", MessageID: "m"})
	if !strings.Contains(string(bare.Claims), `"actions":[]`) || !strings.Contains(string(bare.Claims), `"scopesUsed":[]`) {
		t.Errorf("%s", bare.Claims)
	}
}

// P45, R73: the same turn has the same receipt, on whatever instance, however late;
// with other content it is a conflict, and nothing changes.
func TestATurnHasOneReceipt(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.Authority(nil), w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read", "bookings:change")
	first := countersigned(t, a, w.Hotel, servedTurn(tokens, "m1"))
	w.Clock.Advance(10 * time.Minute)
	again := servedTurn(tokens, "m1")
	again.Actions[0].Args = json.RawMessage(`{ "a": [], "b": 1.0 }`) // the same arguments
	if r := countersigned(t, b, w.Hotel, again); !r.Again || r.JWS != first.JWS || r.Seq != first.Seq {
		t.Errorf("%+v", r)
	}
	for name, change := range map[string]func(*authority.Turn){
		"scopes": func(x *authority.Turn) { x.ScopesUsed = []string{"bookings:change"} },
		"tool":   func(x *authority.Turn) { x.Actions = []authority.Action{{Tool: "other"}} },
		"args": func(x *authority.Turn) {
			x.Actions = []authority.Action{{Tool: "bookings.list", Args: json.RawMessage(`{}`)}}
		},
		"no deeds": func(x *authority.Turn) { x.Actions = nil },
	} {
		other := servedTurn(tokens, "m1")
		change(&other)
		if _, err := b.Countersign(t.Context(), w.Hotel, other); !errors.Is(err, authority.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Clock.Advance(24 * time.Hour)
	if r := countersigned(t, b, w.Hotel, servedTurn(tokens, "m1")); r.JWS != first.JWS {
		t.Error("after its token's end the receipt is another")
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != 1 {
		t.Errorf("%d receipts", n)
	}
	// Another context or message is another turn.
	tokens = delegated(t, w, a, "bookings:read")
	other := servedTurn(tokens, "m1")
	other.ContextID = "talk-2"
	if r := countersigned(t, a, w.Hotel, other); r.Again || r.JWS == first.JWS {
		t.Errorf("%+v", r)
	}
}

// P44, M24: two turns never share a JWS, though everything in them is the same and
// the clock stands still; nor do many at once, on two instances.
func TestTwoTurnsNeverShareAReceipt(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	tokens := delegated(t, w, instances[0], "bookings:read")
	var mu sync.Mutex
	claims := make(map[string]int)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			var turns []authority.Turn
			for j := range 6 {
				turns = append(turns, servedTurn(tokens, fmt.Sprint(i, "-", j)))
			}
			for _, r := range instances[i%2].CountersignMany(t.Context(), w.Hotel, turns) {
				mu.Lock()
				if r.Err != nil {
					t.Error(r.Err)
				}
				claims[string(r.Receipt.Claims)]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(claims) != 24 {
		t.Errorf("24 turns have %d different receipts", len(claims))
	}
}

// R73: of many calls with one turn, on two instances, all get the one receipt.
func TestOneTurnInParallelHasOneReceipt(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	tokens := delegated(t, w, instances[0], "bookings:read")
	got := make([]authority.Receipt, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = instances[i%2].Countersign(t.Context(), w.Hotel, servedTurn(tokens, "m1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	fresh := 0
	for _, r := range got {
		if r.JWS != got[0].JWS {
			t.Error("two receipts of one turn")
		}
		if !r.Again {
			fresh++
		}
	}
	if fresh != 1 || w.Count(t, `SELECT count(*) FROM receipts`) != 1 {
		t.Errorf("%d times it was the first", fresh)
	}
}

// M18, M17, P43, P45: no delegation, no receipt, and nobody else's either.
func TestWhoGetsNoReceipt(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read", "bookings:change")
	narrow, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, []string{"bookings:read"})
	if err != nil {
		t.Fatal(err)
	}
	countersigned(t, a, w.Hotel, servedTurn(tokens, "known"))
	long := strings.Repeat("x", 257)
	for name, tt := range map[string]struct {
		brand  *tenants.Brand
		change func(*authority.Turn)
		want   error
	}{
		"another Brand":          {w.Shop, func(*authority.Turn) {}, authority.ErrToken},
		"another agent":          {nil, func(x *authority.Turn) { x.Agent = authoritytest.OtherAgent }, authority.ErrToken},
		"another agent, known":   {nil, func(x *authority.Turn) { x.Agent, x.MessageID = authoritytest.OtherAgent, "known" }, authority.ErrToken},
		"a bare grant id":        {nil, func(x *authority.Turn) { x.Token = tokens.GrantID.String() }, authority.ErrToken},
		"no token":               {nil, func(x *authority.Turn) { x.Token = "" }, authority.ErrToken},
		"a changed token":        {nil, func(x *authority.Turn) { x.Token = x.Token[:len(x.Token)-8] + "AAAAAAAA" }, authority.ErrToken},
		"a receipt as token":     {nil, func(x *authority.Turn) { x.Token = countersigned(t, a, w.Hotel, servedTurn(tokens, "known")).JWS }, authority.ErrToken},
		"before there was one":   {nil, func(x *authority.Turn) { x.Began = w.Clock.Now().Add(-time.Hour) }, authority.ErrToken},
		"scope not in the token": {nil, func(x *authority.Turn) { x.Token, x.ScopesUsed = narrow.JWS, []string{"bookings:change"} }, authority.ErrScope},
		"scope not in the grant": {nil, func(x *authority.Turn) { x.ScopesUsed = []string{"extras:order"} }, authority.ErrScope},
		"from the future":        {nil, func(x *authority.Turn) { x.Began = w.Clock.Now().Add(time.Minute) }, authority.ErrMalformed},
		"no context":             {nil, func(x *authority.Turn) { x.ContextID = "" }, authority.ErrMalformed},
		"no message":             {nil, func(x *authority.Turn) { x.MessageID = "" }, authority.ErrMalformed},
		"a long message":         {nil, func(x *authority.Turn) { x.MessageID = long }, authority.ErrMalformed},
		"a line break":           {nil, func(x *authority.Turn) { x.MessageID = "a\nb" }, authority.ErrMalformed},
		"no tool":                {nil, func(x *authority.Turn) { x.Actions[0].Tool = "" }, authority.ErrMalformed},
		"arguments twice":        {nil, func(x *authority.Turn) { x.Actions[0].ArgsHash = strings.Repeat("A", 43) }, authority.ErrMalformed},
		"not a hash":             {nil, func(x *authority.Turn) { x.Actions[0] = authority.Action{Tool: "x", ArgsHash: "abc"} }, authority.ErrMalformed},
		"a rounded argument":     {nil, func(x *authority.Turn) { x.Actions[0].Args = json.RawMessage(`{"a":9007199254740993}`) }, authority.ErrMalformed},
		"an argument twice":      {nil, func(x *authority.Turn) { x.Actions[0].Args = json.RawMessage(`{"a":1,"a":2}`) }, authority.ErrMalformed},
		"too much":               {nil, func(x *authority.Turn) { x.Actions = make([]authority.Action, 101) }, authority.ErrMalformed},
	} {
		served := servedTurn(tokens, "m-"+name)
		tt.change(&served)
		if tt.brand == nil {
			tt.brand = w.Hotel
		}
		if r, err := a.Countersign(t.Context(), tt.brand, served); !errors.Is(err, tt.want) || r.JWS != "" {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != 1 {
		t.Errorf("%d receipts", n)
	}
	w.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`)
	_, err = a.Countersign(t.Context(), w.Hotel, servedTurn(tokens, "paused"))
	wantErr(t, err, authority.ErrPaused)
	w.Exec(t, `UPDATE brands SET state = 'active' WHERE id = 'harbor-hotel'`)
	w.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, authoritytest.Agent)
	_, err = a.Countersign(t.Context(), w.Hotel, servedTurn(tokens, "off"))
	wantErr(t, err, authority.ErrToken)
}

// Issue 6, P33: what ended gives receipts to turns that began before, for five
// minutes, and the log marks them late; never to those that began after.
func TestALateTurnIsMarked(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *authoritytest.World, *authority.Authority, authority.Tokens){
		"revoked": func(t *testing.T, w *authoritytest.World, a *authority.Authority, tokens authority.Tokens) {
			if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID); err != nil {
				t.Fatal(err)
			}
		},
		"suspended": func(t *testing.T, w *authoritytest.World, a *authority.Authority, _ authority.Tokens) {
			w.Exec(t, `INSERT INTO suspended_users VALUES ('harbor-hotel', 'guest-7', $1)`, w.Clock.Now())
		},
		"narrowed": func(t *testing.T, w *authoritytest.World, a *authority.Authority, tokens authority.Tokens) {
			if err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID, "bookings:read"); err != nil {
				t.Fatal(err)
			}
		},
		"token over": func(t *testing.T, w *authoritytest.World, _ *authority.Authority, _ authority.Tokens) {
			w.Clock.Advance(w.Hotel.TokenLifetime - time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := authoritytest.New(t)
			a := w.Authority(nil)
			tokens := delegated(t, w, a, "bookings:read", "bookings:change")
			began := w.Clock.Now()
			w.Clock.Advance(time.Minute)
			end(t, w, a, tokens)
			late := func(message string, began time.Time, want error) {
				t.Helper()
				served := servedTurn(tokens, message)
				served.Began = began
				r, err := a.Countersign(t.Context(), w.Hotel, served)
				if !errors.Is(err, want) || err == nil && !r.Late {
					t.Errorf("%s: %+v, %v", message, r, err)
				}
				if n := w.Count(t, `SELECT count(*) FROM receipts WHERE message_id = $1 AND late AND entry LIKE '%"late":true%'`, message); (n == 1) != (err == nil) {
					t.Errorf("%s: %d in the log", message, n)
				}
			}
			refusal := authority.ErrToken
			if name == "narrowed" {
				refusal = authority.ErrScope
			}
			late("at once", began, nil)
			late("began after", w.Clock.Now(), refusal)
			w.Clock.Advance(authority.LateTime - time.Millisecond)
			late("just in time", began, nil)
			w.Clock.Advance(time.Millisecond)
			late("too late", began, refusal)
		})
	}
}

// R77, R83: while nothing can be signed nothing is half done, and the same turn
// gets its one receipt afterwards, though its grant ended long before; any other
// turn does not.
func TestAnOutageLosesNoReceipt(t *testing.T) {
	w := authoritytest.New(t)
	keys, down := w.NewKeys(), true
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if down && typ == signing.TypReceipt {
			return "", errors.New("vault is sealed")
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	tokens := delegated(t, w, a, "bookings:read")
	served := servedTurn(tokens, "m1")
	served.Began = w.Clock.Now()
	for range 2 {
		r, err := a.Countersign(t.Context(), w.Hotel, served)
		if !errors.Is(err, authority.ErrUnavailable) || r.JWS != "" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != 0 {
		t.Fatalf("%d receipts", n)
	}
	w.Clock.Advance(time.Second)
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(3 * time.Hour)
	down = false
	other := servedTurn(tokens, "m2")
	other.Began = served.Began
	_, err := a.Countersign(t.Context(), w.Hotel, other)
	wantErr(t, err, authority.ErrToken)
	changed := served
	changed.Actions = nil
	_, err = a.Countersign(t.Context(), w.Hotel, changed)
	wantErr(t, err, authority.ErrConflict)
	r := countersigned(t, a, w.Hotel, served)
	if r.Again || !r.Late || !strings.Contains(string(r.Claims), receiptlog.At(w.Clock.Now())) {
		t.Errorf("%+v", r)
	}
	if again := countersigned(t, a, w.Hotel, served); again.JWS != r.JWS {
		t.Error("the retry has another receipt")
	}
	if n := w.Count(t, `SELECT count(*) FROM turns_accepted`); n != 0 {
		t.Errorf("%d turns still wait", n)
	}
	// What nobody came back with is forgotten.
	down = true
	_, err = a.Countersign(t.Context(), w.Hotel, servedTurn(delegated(t, w, a, "bookings:read"), "m3"))
	wantErr(t, err, authority.ErrUnavailable)
	w.Clock.Advance(25 * time.Hour)
	if _, err := a.Purge(t.Context(), w.Hotel.ID); err != nil || w.Count(t, `SELECT count(*) FROM turns_accepted`) != 0 {
		t.Errorf("still there, %v", err)
	}
}

// R76: in a batch every turn fails alone, those that do not stand in the log in
// their order, and doing it again doubles nothing.
func TestOneBadTurnFailsAlone(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if strings.Contains(string(payload), "unsignable") {
			return "", signing.ErrUnavailable
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	tokens := delegated(t, w, a, "bookings:read")
	batch := make([]authority.Turn, 100)
	for i := range batch {
		batch[i] = servedTurn(tokens, fmt.Sprint("m", i))
	}
	wrong := map[int]error{10: authority.ErrToken, 20: authority.ErrScope, 30: authority.ErrMalformed, 40: authority.ErrUnavailable, 50: authority.ErrConflict}
	batch[10].Token = "nothing"
	batch[20].ScopesUsed = []string{"extras:order"}
	batch[30].ContextID = ""
	batch[40].Actions = []authority.Action{{Tool: "unsignable"}}
	batch[50].MessageID, batch[50].Actions = "m49", nil // another content of m49
	batch[60] = batch[59]
	for round := range 2 {
		last := int64(-1)
		for i, r := range a.CountersignMany(t.Context(), w.Hotel, batch) {
			if !errors.Is(r.Err, wrong[i]) {
				t.Errorf("%d: %v, want %v", i, r.Err, wrong[i])
			}
			if r.Err != nil {
				continue
			}
			if r.Receipt.Again != (round == 1 || i == 60) || r.Receipt.Seq < last || r.Receipt.Seq == last && i != 60 {
				t.Errorf("%d: %+v after %d", i, r.Receipt, last)
			}
			last = r.Receipt.Seq
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != 94 {
		t.Errorf("%d receipts", n)
	}
	for _, r := range a.CountersignMany(t.Context(), w.Hotel, make([]authority.Turn, 101)) {
		wantErr(t, r.Err, authority.ErrMalformed)
	}
}
