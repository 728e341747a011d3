package a2a_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// A Brand whose agent hangs has 64 calls under way at an instance and no more; the
// next hears to come again, and nothing of it reaches anybody else.
func TestABrandsCallsAreBounded(t *testing.T) {
	d := newDoor(t)
	const most = 64
	started, release := make(chan struct{}, most), make(chan struct{})
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done."}`)
	})
	var all sync.WaitGroup
	agents := []*agenttest.PA{d.pa, d.other, d.newPA()}
	for i := range most {
		jwt := agents[i%len(agents)].Token(t, claimsOf("person-"+strconv.Itoa(i/len(agents)/4)))
		all.Go(func() {
			a := d.do(d.request(http.MethodPost, d.url+"/message:send", jwt, "", said("m"+strconv.Itoa(i), "", "Hi")))
			if a.status != http.StatusOK {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	for range most {
		<-started
	}
	a := d.send(d.newPA(), "alex", "", said("m", "", "Hi"))
	a.is(t, "one too many", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	shop := strings.Replace(d.url, "harbor-hotel", "fern-and-fell", 1)
	d.do(d.request(http.MethodPost, shop+"/message:send", d.pa.Token(t, claimsOf("alex")), "", said("m", "", "Hi"))).
		internal(t, "another Brand, whose agent is nowhere")
	close(release)
	all.Wait()
	if a := d.send(d.pa, "alex", "", said("m", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// hanging lets the Brand's agent answer nothing that says "Hang" until release.
func (d *door) hanging() (started <-chan a2a.Turn, release func()) {
	turns, done := make(chan a2a.Turn), make(chan struct{})
	d.agent.mu.Lock()
	defer d.agent.mu.Unlock()
	d.agent.hangs = func(turn a2a.Turn) {
		if turn.Text == "Hang" {
			turns <- turn
			<-done
		}
	}
	release = sync.OnceFunc(func() { close(done) })
	d.t.Cleanup(release)
	return turns, release
}

// Two Brands whose agents are on one host, as a Provider's are: one that hangs with
// all its calls keeps nobody of the other's waiting.
func TestAHangingBrandHoldsUpNobodyOnItsHost(t *testing.T) {
	d := newDoorWith(t, 2*time.Minute)
	d.pointAt(d.Shop, d.agent.URL)
	started, release := d.hanging()
	var all sync.WaitGroup
	var over atomic.Int32
	agents := []*agenttest.PA{d.pa, d.other, d.newPA()}
	for i := range 64 {
		jwt := agents[i%len(agents)].Token(t, claimsOf("person-"+strconv.Itoa(i/len(agents)/4)))
		all.Go(func() {
			d.do(d.request(http.MethodPost, d.url+"/message:send", jwt, "", said("m"+strconv.Itoa(i), "", "Hang")))
			over.Add(1)
		})
		<-started
	}
	shop := strings.Replace(d.url, "harbor-hotel", "fern-and-fell", 1)
	a := d.do(d.request(http.MethodPost, shop+"/message:send", d.pa.Token(t, claimsOf("alex")), "", said("m", "", "Hi")))
	if turn, _, _ := d.agent.last(); a.status != http.StatusOK || turn.Brand != "fern-and-fell" || over.Load() > 0 {
		t.Errorf("%d %s, %s was called, and %d of the others had ended", a.status, a.body, turn.Brand, over.Load())
	}
	release()
	all.Wait()
}

// One agent has half of a Brand's calls, whomever it invents, and of that three
// quarters without permissions: others are heard, and so are its people who have one.
func TestOneAgentLeavesRoom(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read").JWS
	other := d.delegated(d.pa, "sam", "guest-2", "bookings:read").JWS
	started, release := d.hanging()
	var all sync.WaitGroup
	hang := func(n int, who func(i int) string, token string) {
		t.Helper()
		for i := range n {
			over := make(chan struct{})
			all.Go(func() {
				defer close(over)
				a := d.send(d.pa, who(i), token, said("hang "+strconv.Itoa(i), "", "Hang"))
				if a.status != http.StatusOK {
					t.Errorf("%s: %d %s", who(i), a.status, a.body)
				}
			})
			select {
			case <-started:
			case <-over:
			}
		}
	}
	heard := func(what string, a answer) {
		t.Helper()
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	full := func(what string, a answer) {
		t.Helper()
		a.is(t, what, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q", what, a.header.Get("Retry-After"))
		}
	}
	hang(24, func(i int) string { return "invented-" + strconv.Itoa(i) }, "")
	full("one more whom it invents", d.send(d.pa, "invented", "", said("a", "", "Hi")))
	heard("somebody who has allowed it something", d.send(d.pa, "sam", other, said("b", "", "Hi")))
	heard("another agent", d.send(d.other, "alex", "", said("c", "", "Hi")))
	hang(8, func(int) string { return "alex" }, tokens)
	full("beyond half of all", d.send(d.pa, "sam", other, said("d", "", "Hi")))
	heard("another agent, then", d.send(d.other, "alex", "", said("e", "", "Hi")))
	release()
	all.Wait()
	heard("afterwards", d.send(d.pa, "invented", "", said("a", "", "Hi")))
	heard("afterwards, with a permission", d.send(d.pa, "sam", other, said("d", "", "Hi")))
}

// An agent may take longer than the server's bound on ordinary answers.
func TestASlowAgentsAnswerArrives(t *testing.T) {
	d := newDoor(t)
	s := httptest.NewUnstartedServer(d.served())
	s.Config.WriteTimeout = 200 * time.Millisecond
	s.Start()
	t.Cleanup(s.Close)
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(400 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done."}`)
	})
	a := d.do(d.request(http.MethodPost, s.URL+"/a2a/harbor-hotel/message:send", d.pa.Token(t, claimsOf("alex")), "", said("m", "", "Hi")))
	if a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Messages whose instance died under them hold nobody up.
func TestTheDeadHoldNobodyUp(t *testing.T) {
	d := newDoor(t)
	for i := range 8 {
		heard := authority.Heard{Who: authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}, MessageID: strconv.Itoa(i)}
		if _, err := d.rules.Hear(t.Context(), d.Hotel.ID, heard); err != nil {
			t.Fatal(err)
		}
	}
	d.send(d.pa, "alex", "", said("m", "", "Hi")).is(t, "at once", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
	d.Clock.Advance(3*time.Minute + time.Second)
	a := d.send(d.pa, "alex", "", said("m", "", "Hi"))
	if a.status != http.StatusOK {
		t.Errorf("later: %d %s", a.status, a.body)
	}
	for i := range 60 {
		a = d.send(d.pa, "alex", "", said("n"+strconv.Itoa(i), a.context(), "Hi"))
		if a.status != http.StatusOK {
			break
		}
	}
	a.is(t, "in one conversation", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
}

// Of two replies to one message the first stays, for whoever comes.
func TestTheFirstReplyStays(t *testing.T) {
	d := newDoor(t)
	x, err := d.rules.Hear(t.Context(), d.Hotel.ID, authority.Heard{Who: authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}, MessageID: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"first", "second"} {
		if got, err := d.rules.KeepReply(t.Context(), d.Hotel.ID, x, reply); err != nil || got != "first" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// What waits for its receipt is countersigned by what it was done with, whatever
// token of the same grant it comes with by then: the receipt says what was, and the
// log names the token that was shown. Under another grant it is not at all.
func TestWhatWaitsIsCountersignedByWhatItWasDoneWith(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"]}`)
	away := true
	var last authority.Turn
	d.sign = func(_ context.Context, _ *tenants.Brand, turn authority.Turn) (authority.Receipt, error) {
		if last = turn; away {
			return authority.Receipt{}, authority.ErrUnavailable
		}
		return authority.Receipt{JWS: "a.b.c", Claims: json.RawMessage(`{}`)}, nil
	}
	for _, id := range []string{"old", "m2", "m1"} {
		d.send(d.pa, "alex", tokens.JWS, said(id, open, "Hi")).is(t, "no signer", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
	}
	first := last
	away = false
	d.Clock.Advance(10 * time.Second)
	later, err := d.rules.Refresh(t.Context(), d.Hotel, authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}, tokens.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := d.send(d.pa, "alex", later.JWS, said("m1", open, "Hi"))
	if a.status != http.StatusOK || string(last.Claims) != string(first.Claims) || last.Began.Sub(first.Began).Abs() > time.Millisecond {
		t.Errorf("a later token: %d %s; began %s instead of %s, under %s", a.status, a.body, last.Began, first.Began, last.Claims)
	}
	if n := d.Count(t, `SELECT count(*) FROM turns WHERE message_id = 'm1' AND claims IS NOT NULL`); n != 0 {
		t.Error("the claims are kept longer than the answer")
	}
	// An earlier version kept the answer alone, and nothing begins under a token
	// before it was there.
	d.Exec(t, `UPDATE turns SET claims = NULL, answered_at = NULL WHERE message_id = 'old'`)
	a = d.send(d.pa, "alex", later.JWS, said("old", open, "Hi"))
	if a.status != http.StatusOK || last.Began.Before(d.Clock.Now().Add(-2*time.Second)) || string(last.Claims) == string(first.Claims) {
		t.Errorf("kept by an earlier version: %d %s; began %s, under %s", a.status, a.body, last.Began, last.Claims)
	}
	if err := d.rules.EndByUser(t.Context(), d.Hotel.ID, "guest-1", tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	another := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	if another.GrantID == tokens.GrantID || another.GrantID == uuid.Nil {
		t.Fatal("it is the same grant")
	}
	d.send(d.pa, "alex", another.JWS, said("m2", open, "Hi")).invalid(t, "under another grant")
}

// Whoever allows less while an answer waits takes back nothing of what was done: it
// is no incident, and has its receipt, long after its token's end too.
func TestWhatWaitsIsNotJudgedByLess(t *testing.T) {
	d := newDoor(t)
	who := authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read", "account:read", "extras:order")
	d.agent.says(`{"text":"Done.","scopesUsed":["account:read","extras:order"]}`)
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrUnavailable // nobody even hears of the turn
	}
	d.send(d.pa, "alex", tokens.JWS, said("m", "", "Hi")).is(t, "no signer", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
	d.sign = nil
	d.Clock.Advance(time.Second)
	if err := d.rules.EndScopeByUser(t.Context(), d.Hotel.ID, "guest-1", tokens.GrantID, "account:read"); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(d.Hotel.TokenLifetime + authority.LateTime + time.Minute)
	less, err := d.rules.Refresh(t.Context(), d.Hotel, who, tokens.Refresh, []string{"bookings:read"})
	if err != nil {
		t.Fatal(err)
	}
	a := d.send(d.pa, "alex", less.JWS, said("m", "", "Hi"))
	if a.status != http.StatusOK || !strings.Contains(a.body, "pact.receipt") || d.agent.count() != 1 {
		t.Errorf("%d %s; the agent ran %d times", a.status, a.body, d.agent.count())
	}
	if n := d.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'incident.scopes_exceeded'`); n != 0 {
		t.Errorf("%d incidents", n)
	}
	var shown struct{ JTI string }
	payload, err := d.Keys.Verify(t.Context(), d.Hotel.ID, "at+jwt", tokens.JWS)
	if err != nil || json.Unmarshal(payload, &shown) != nil {
		t.Fatal(err)
	}
	line, err := d.rules.LogEntry(t.Context(), d.Hotel.ID, 0)
	if err != nil || !strings.Contains(string(line.Entry), `"token":"`+shown.JTI+`"`) || !strings.Contains(string(line.Entry), `"late":true`) {
		t.Errorf("%s does not name %s, %v", line.Entry, shown.JTI, err)
	}
}

// What cannot be countersigned for another reason than that nobody signs now never
// will be: the message is spent, and the agent not called again.
func TestWhatCannotBeCountersignedIsSpent(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrMalformed
	}
	d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi")).internal(t, "the message")
	d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi")).invalid(t, "again")
	if n := d.agent.count(); n != 2 {
		t.Errorf("the agent ran %d times for the message", n-1)
	}
}

// An answer is bounded by itself, also where nothing of it is countersigned.
func TestAnAnswersPartsAreBounded(t *testing.T) {
	const most = 100
	list := func(one string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
	}
	tool := func(name string) string { return `{"tool":"` + name + `"}` }
	name := strings.Repeat("x", 128)
	for _, good := range []string{
		`"scopesUsed":` + list(`"a"`, most), `"scopesUsed":["` + name + `"]`,
		`"actions":` + list(tool("x"), most), `"actions":[` + tool(name) + `]`,
	} {
		if _, err := a2a.ParseAnswer([]byte(`{"text":"Done.",` + good + `}`)); err != nil {
			t.Errorf("%.60s: %v", good, err)
		}
	}
	for _, bad := range []string{
		`"scopesUsed":` + list(`"a"`, most+1), `"scopesUsed":["` + name + `x"]`,
		`"actions":` + list(tool("x"), most+1), `"actions":[` + tool(name+"x") + `]`, `"actions":[` + tool(`x\ny`) + `]`, `"actions":[` + tool(" ") + `]`,
	} {
		if a, err := a2a.ParseAnswer([]byte(`{"text":"Done.",` + bad + `}`)); err == nil {
			t.Errorf("%.60s: %.100v", bad, a)
		}
	}
}
