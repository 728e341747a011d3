package authority_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// payload is what a verified token of ours says.
func payload(t *testing.T, tokens authority.Tokens) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.JWS, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func stepUp(t *testing.T, w *authoritytest.World, a *authority.Authority, s authority.StepUp) authority.SteppedUp {
	t.Helper()
	got, err := a.StepUp(t.Context(), w.Hotel, s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// opened is the request behind the link.
func opened(t *testing.T, w *authoritytest.World, a *authority.Authority, code authority.UserCode) authority.Started {
	t.Helper()
	id, _, err := a.Find(t.Context(), w.Hotel.ID, code.String(), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	return authority.Started{ID: id, UserCode: code}
}

func stepUps(t *testing.T, w *authoritytest.World) int {
	t.Helper()
	return w.Count(t, `SELECT count(*) FROM device_requests WHERE kind = 'stepup'`)
}

// M22, B33, wire.md §7: the step-up's link widens the grant that the agent has;
// its next refresh carries the union. The old token is worth what it says and no
// more, and a family from before gains nothing but what the grant holds.
func TestStepUpWidensTheSameGrant(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.Authority(nil), w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	family := delegated(t, w, a, "bookings:read") // another device of the same person
	up := stepUp(t, w, a, authority.StepUp{
		Who: alex, Token: payload(t, first), Scopes: []string{"bookings:read", "bookings:change", "bookings:change"}, Reason: "To move your stay.",
	})
	if diff := cmp.Diff([]string{"bookings:change"}, up.Missing); diff != "" || up.ExpiresIn != authority.RequestLife {
		t.Fatal(up, diff)
	}
	r := opened(t, w, b, up.UserCode)
	q, err := b.Ask(t.Context(), w.Hotel.ID, r.ID, "guest-7")
	if err != nil || q.Kind != "stepup" || q.Reason != "To move your stay." || q.WrongUser || *q.Expected != "guest-7" {
		t.Fatalf("%+v, %v", q, err)
	}
	authoritytest.Approve(t, b, w.Hotel, r, "guest-7", "bookings:read", "bookings:change")
	union := []string{"bookings:read", "bookings:change"}
	for name, refresh := range map[string]string{"first": first.Refresh, "old family": family.Refresh} {
		next, err := a.Refresh(t.Context(), w.Hotel, alex, refresh, nil)
		if err != nil || next.GrantID != first.GrantID || cmp.Diff(union, next.Scopes) != "" {
			t.Errorf("%s: %v of grant %v, %v", name, next.Scopes, next.GrantID, err)
		}
		for token, want := range map[*authority.Tokens][]string{&first: {"bookings:read"}, &next: union} { // in turn
			s, err := b.Standing(t.Context(), w.Hotel, payload(t, *token))
			if err != nil || cmp.Diff(want, s.Scopes) != "" {
				t.Errorf("%s: a token is worth %v, %v; want %v", name, s.Scopes, err, want)
			}
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM grants`); n != 1 {
		t.Errorf("%d grants", n)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.widened'`); n != 1 {
		t.Errorf("told %d times that it was widened", n)
	}
}

// M22: the agent's own flow for granted ∪ missing reaches the same grant; what
// the step-up asked for is then already there.
func TestTheAgentsOwnFlowWidensTheSameGrantToo(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	up := stepUp(t, w, a, authority.StepUp{Who: alex, Token: payload(t, first), Scopes: []string{"bookings:change"}})
	own := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read", "bookings:change")
	authoritytest.Approve(t, a, w.Hotel, own, "guest-7", "bookings:read", "bookings:change")
	second, err := a.Poll(t.Context(), w.Hotel, alex, own.DeviceCode)
	if err != nil || second.GrantID != first.GrantID {
		t.Fatalf("%v, %v", second, err)
	}
	third, err := a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil || cmp.Diff(second.Scopes, third.Scopes) != "" {
		t.Fatalf("%v, %v", third.Scopes, err)
	}
	// The token does not say it yet, but its grant holds it: the agent needs to
	// refresh, the person nothing to allow.
	again := stepUp(t, w, a, authority.StepUp{Who: alex, Token: payload(t, first), Scopes: []string{"bookings:change"}})
	if again.Missing == nil || len(again.Missing) != 0 || again.UserCode != "" {
		t.Errorf("asks for what is held: %+v", again)
	}
	// The first link still stands and changes nothing more.
	q, err := a.Ask(t.Context(), w.Hotel.ID, opened(t, w, a, up.UserCode).ID, "guest-7")
	if err != nil || cmp.Diff([]string{"bookings:read", "bookings:change"}, q.Held) != "" {
		t.Errorf("%+v, %v", q, err)
	}
}

// M22: a code that was approved before the step-up and is paid out after it
// carries the union, too.
func TestRedemptionCarriesTheUnion(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	own := authoritytest.Begin(t, a, w.Hotel, alex, "account:read")
	authoritytest.Approve(t, a, w.Hotel, own, "guest-7", "account:read")
	up := stepUp(t, w, a, authority.StepUp{Who: alex, Scopes: []string{"bookings:read"}})
	authoritytest.Approve(t, a, w.Hotel, opened(t, w, a, up.UserCode), "guest-7", "account:read", "bookings:read")
	tokens, err := a.Poll(t.Context(), w.Hotel, alex, own.DeviceCode)
	if err != nil || cmp.Diff([]string{"account:read", "bookings:read"}, tokens.Scopes) != "" {
		t.Fatalf("%v, %v", tokens.Scopes, err)
	}
}

// wire.md §10: the same question while pending is the same link, on any instance
// and in parallel; another scope, another Brand user or no token is another.
func TestTheSameStepUpIsOneRequest(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	first := delegated(t, w, instances[0], "account:read")
	ask := authority.StepUp{Who: alex, Token: payload(t, first), Scopes: []string{"bookings:read", "bookings:change"}}
	var mu sync.Mutex
	codes := make(map[authority.UserCode]int)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			mine := ask
			if i%4 > 1 {
				mine.Scopes = []string{"bookings:change", "bookings:read", "account:read"} // the same once what is held drops out
			}
			got, err := instances[i%2].StepUp(t.Context(), w.Hotel, mine)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			codes[got.UserCode]++
		})
	}
	wg.Wait()
	if len(codes) != 1 || stepUps(t, w) != 1 {
		t.Fatalf("%d links, %d requests", len(codes), stepUps(t, w))
	}
	w.Clock.Advance(time.Minute)
	got := stepUp(t, w, instances[1], ask)
	if codes[got.UserCode] == 0 || got.ExpiresIn != authority.RequestLife-time.Minute {
		t.Errorf("a minute later: another link, or one that lives %v", got.ExpiresIn)
	}
	for _, other := range []struct {
		what string
		ask  authority.StepUp
	}{
		{"more scopes", authority.StepUp{Who: alex, Token: ask.Token, Scopes: append([]string{"extras:order"}, ask.Scopes...)}},
		{"fewer scopes", authority.StepUp{Who: alex, Token: ask.Token, Scopes: []string{"bookings:read"}}},
		{"no token", authority.StepUp{Who: alex, Scopes: ask.Scopes}},
		{"another sub", authority.StepUp{Who: authority.Caller{Agent: alex.Agent, Sub: "sam-phone"}, Scopes: ask.Scopes}},
	} {
		one := stepUp(t, w, instances[0], other.ask)
		if codes[one.UserCode]++; codes[one.UserCode] != 1 {
			t.Errorf("%s: the same link", other.what)
		}
	}
	// Answered, it is no longer the same.
	authoritytest.Approve(t, instances[0], w.Hotel, opened(t, w, instances[0], got.UserCode), "guest-7", "account:read")
	if next := stepUp(t, w, instances[0], ask); next.UserCode == got.UserCode {
		t.Error("a decided request is given again")
	}
	// Nor is it once its time is over.
	w.Clock.Advance(authority.RequestLife)
	late, err := instances[0].Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Token = payload(t, late)
	if next := stepUp(t, w, instances[0], ask); next.ExpiresIn != authority.RequestLife {
		t.Errorf("an expired request is given again: %v", next.ExpiresIn)
	}
}

// Two that look at the same moment do not both find nothing: while one cannot
// write, the other does not even look.
func TestStepUpsLookInTurn(t *testing.T) {
	w := authoritytest.New(t)
	hold, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.Exec(t.Context(), `LOCK TABLE device_requests IN SHARE MODE`); err != nil { // reads pass, writes wait
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, err := w.Authority(nil).StepUp(t.Context(), w.Hotel, authority.StepUp{Who: alex, Scopes: []string{"bookings:read"}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for w.Count(t, `SELECT count(*) FROM pg_locks WHERE NOT granted AND database IN (SELECT oid FROM pg_database WHERE datname = current_database())`) < 2 {
		if t.Context().Err() != nil {
			t.Fatal("they do not wait")
		}
	}
	if err := hold.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := stepUps(t, w); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// B33: two step-ups at once, both approved at once: one grant holds both, once
// whoever was late has seen what the other changed.
func TestTwoStepUpsAtOnceMakeOneGrant(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	first := delegated(t, w, instances[0], "account:read")
	var wg sync.WaitGroup
	for i, scope := range []string{"bookings:read", "bookings:change"} {
		wg.Go(func() {
			a := instances[i]
			up, err := a.StepUp(t.Context(), w.Hotel, authority.StepUp{Who: alex, Token: payload(t, first), Scopes: []string{scope}})
			if err != nil {
				t.Error(err)
				return
			}
			id, _, err := a.Find(t.Context(), w.Hotel.ID, up.UserCode.String(), authority.Visitor{})
			for range 4 { // shown again, and everything left ticked
				q, askErr := a.Ask(t.Context(), w.Hotel.ID, id, "guest-7")
				if err = errors.Join(err, askErr); err != nil {
					break
				}
				err = a.Approve(t.Context(), w.Hotel, authoritytest.Answer(w.Hotel, q, "guest-7", append(q.Held, scope)...))
				if !errors.Is(err, authority.ErrChanged) {
					break
				}
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	next, err := instances[0].Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil || cmp.Diff([]string{"bookings:read", "bookings:change", "account:read"}, next.Scopes) != "" {
		t.Fatalf("%v, %v", next.Scopes, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants`); n != 1 {
		t.Errorf("%d grants", n)
	}
}

// wire.md §10: another Brand user than the token's decides nothing, neither yes
// nor no nor on; without a token whoever logs in selects the grant.
func TestStepUpIsForTheTokensUserAlone(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "account:read")
	up := stepUp(t, w, a, authority.StepUp{Who: alex, Token: payload(t, first), Scopes: []string{"bookings:read"}})
	r := opened(t, w, a, up.UserCode)
	q, err := a.Ask(t.Context(), w.Hotel.ID, r.ID, "guest-8")
	if err != nil || !q.WrongUser {
		t.Fatalf("%+v, %v", q, err)
	}
	d := authoritytest.Answer(w.Hotel, q, "guest-8", "bookings:read")
	wantErr(t, a.Approve(t.Context(), w.Hotel, d), authority.ErrWrongUser)
	wantErr(t, a.Deny(t.Context(), w.Hotel.ID, d), authority.ErrWrongUser)
	wantErr(t, a.Proceed(t.Context(), w.Hotel, d), authority.ErrWrongUser)
	d.Ticked = nil
	wantErr(t, a.Approve(t.Context(), w.Hotel, d), authority.ErrWrongUser)
	if n := w.Count(t, `SELECT count(*) FROM consents WHERE subject = 'guest-8'`) + w.Count(t, `SELECT count(*) FROM grants WHERE subject = 'guest-8'`); n != 0 {
		t.Fatal("something was written for the wrong user")
	}
	authoritytest.Approve(t, a, w.Hotel, r, "guest-7", "account:read", "bookings:read")

	open := stepUp(t, w, a, authority.StepUp{Who: alex, Scopes: []string{"account:read"}})
	if cmp.Diff([]string{"account:read"}, open.Missing) != "" {
		t.Fatalf("without a token nobody's grant counts: %+v", open)
	}
	authoritytest.Approve(t, a, w.Hotel, opened(t, w, a, open.UserCode), "guest-8", "account:read")
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'request.approved' AND detail->>'kind' = 'stepup' AND (detail->>'another_user_holds_a_grant')::bool`); n != 1 {
		t.Error("a second Brand user is not in the trail")
	}
}

// M18, M11, B90: a token of another agent, of another person of the same agent,
// of another Brand, of an ended grant or past its time leads nowhere, and leaves
// no request behind.
func TestStepUpTakesNobodyElsesToken(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	good := delegated(t, w, a, "account:read")
	ask := func(who authority.Caller, token []byte) error {
		_, err := a.StepUp(t.Context(), w.Hotel, authority.StepUp{Who: who, Token: token, Scopes: []string{"bookings:read"}})
		return err
	}
	wantErr(t, ask(authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}, payload(t, good)), authority.ErrToken)
	wantErr(t, ask(authority.Caller{Agent: alex.Agent, Sub: "mallory"}, payload(t, good)), authority.ErrToken)
	wantErr(t, ask(alex, []byte(`{"grant_id":"`+uuid.NewString()+`"}`)), authority.ErrToken)
	wantErr(t, ask(alex, []byte{}), authority.ErrToken)
	s := authoritytest.Begin(t, a, w.Shop, alex, "bookings:read")
	authoritytest.Approve(t, a, w.Shop, s, "guest-7", "bookings:read")
	foreign, err := a.Poll(t.Context(), w.Shop, alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, ask(alex, payload(t, foreign)), authority.ErrToken)
	w.Clock.Advance(w.Hotel.TokenLifetime)
	wantErr(t, ask(alex, payload(t, good)), authority.ErrToken)
	good, err = a.Refresh(t.Context(), w.Hotel, alex, good.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", good.GrantID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, ask(alex, payload(t, good)), authority.ErrToken)
	if n := stepUps(t, w); n != 0 {
		t.Errorf("%d requests were left behind", n)
	}
}

// M10, M14, R15: scopes are the card's; the agent and the Brand are asked now; a
// flood is stopped, and what pends is given all the same.
func TestStepUpIsRefused(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	var token []byte
	ask := func(scopes ...string) (authority.SteppedUp, error) {
		return a.StepUp(t.Context(), w.Reload(t, w.Hotel.ID), authority.StepUp{Who: alex, Token: token, Scopes: scopes})
	}
	first := delegated(t, w, a, "account:read")
	for _, scopes := range [][]string{nil, {""}, {"orders:read"}, {"bookings:read", "no:such"}} {
		_, err := ask(scopes...)
		wantErr(t, err, authority.ErrScope)
	}
	for _, tt := range []struct {
		break_, mend string
		want         error
	}{
		{`UPDATE agents SET enabled = false`, `UPDATE agents SET enabled = true`, authority.ErrAgentDisabled},
		{`UPDATE brands SET state = 'paused'`, `UPDATE brands SET state = 'active'`, authority.ErrPaused},
		{`UPDATE brands SET delegation = false`, `UPDATE brands SET delegation = true`, authority.ErrPaused},
	} {
		w.Exec(t, tt.break_)
		for _, token = range [][]byte{nil, payload(t, first)} { // nor does it make the token look bad
			_, err := ask("bookings:read")
			wantErr(t, err, tt.want)
		}
		_, err := a.StepUp(t.Context(), w.Hotel, authority.StepUp{Who: alex, Scopes: []string{"bookings:read"}}) // with yesterday's settings
		wantErr(t, err, tt.want)
		w.Exec(t, tt.mend)
	}
	token = nil
	pending, err := ask("bookings:read")
	if err != nil {
		t.Fatal(err)
	}
	for range 28 {
		authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	}
	_, err = ask("bookings:change")
	limit := new(authority.LimitError)
	if !errors.As(err, &limit) || limit.RetryAfter <= 0 {
		t.Fatalf("the thirty-first: %v", err)
	}
	if again, err := ask("bookings:read"); err != nil || again.UserCode != pending.UserCode {
		t.Errorf("what pends: %v, %v", again, err)
	}
}

// A step-up has no device code: whatever is polled with, nothing pays out.
func TestNothingRedeemsAStepUp(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	up := stepUp(t, w, a, authority.StepUp{Who: alex, Scopes: []string{"bookings:read"}})
	r := opened(t, w, a, up.UserCode)
	poll := func() {
		t.Helper()
		for _, code := range []string{"", up.UserCode.String(), string(up.UserCode), r.ID.String(), "dc_"} {
			_, err := a.Poll(t.Context(), w.Hotel, alex, code)
			wantErr(t, err, authority.ErrUnknown)
		}
	}
	poll()
	authoritytest.Approve(t, a, w.Hotel, r, "guest-7", "bookings:read")
	poll()
	// Not even if a hash got there by mistake: the constraint forbids it.
	if _, err := w.Owner.Exec(t.Context(), `UPDATE device_requests SET device_code_hash = '\x00' WHERE id = $1`, r.ID); err == nil {
		t.Error("a step-up was given a device code")
	}
}
