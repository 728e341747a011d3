package a2a_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// wire.md §9, P45: a repeated message gets the stored reply, byte for byte and
// with its receipt, and the agent is not run again.
func TestARepeatedMessageGetsTheStoredReply(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"]}`)
	first := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi"))
	again := d.send(d.pa, "alex", tokens.JWS, said("m1", first.context(), "Hi"))
	if again.status != http.StatusOK || again.body != first.body || !strings.Contains(first.body, "pact.receipt") {
		t.Errorf("first %s, again %d %s", first.body, again.status, again.body)
	}
	if n := d.agent.count(); n != 1 {
		t.Errorf("the agent ran %d times", n)
	}
	// Whoever lost that reply knows no context: it is the same message all the same.
	if a := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi")); a.status != http.StatusOK || a.body != first.body || d.agent.count() != 1 {
		t.Errorf("without its context: %s, the agent ran %d times", a.body, d.agent.count())
	}
	// The same id in another conversation is another message.
	other := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	if a := d.send(d.pa, "alex", tokens.JWS, said("m1", other, "Hi")); a.status != http.StatusOK || a.context() != other || d.agent.count() != 3 {
		t.Errorf("another conversation: %s, the agent ran %d times", a.body, d.agent.count())
	}
	// After a day what was said is gone; the message is not heard again.
	d.Clock.Advance(25 * time.Hour)
	if _, err := d.rules.Purge(t.Context(), d.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if n := d.Count(t, `SELECT count(*) FROM turns WHERE reply IS NOT NULL OR answer IS NOT NULL`); n != 0 {
		t.Errorf("%d replies are kept", n)
	}
	fresh := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.send(d.pa, "alex", fresh.JWS, said("m1", first.context(), "Hi")).invalid(t, "a day later")
	d.send(d.pa, "alex", fresh.JWS, said("m1", "", "Hi")).invalid(t, "a day later, without its context")
	if a := d.send(d.pa, "alex", fresh.JWS, said("m2", first.context(), "Hi")); a.status != http.StatusOK || a.context() != first.context() {
		t.Errorf("the conversation: %d %s", a.status, a.body)
	}
	d.Clock.Advance(31 * 24 * time.Hour)
	if _, err := d.rules.Purge(t.Context(), d.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if n := d.Count(t, `SELECT (SELECT count(*) FROM conversations) + (SELECT count(*) FROM turns)`); n != 0 {
		t.Errorf("%d rows of conversations are left", n)
	}
}

// One message many times at once, at two instances: the agent runs once. Who
// comes while it runs hears that there is no reply yet.
func TestTheAgentRunsOnce(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	context := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	release := make(chan struct{})
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done."}`)
	})
	second := d.instance() + "/a2a/harbor-hotel"
	const many = 8
	answers := make(chan answer, many)
	jwt := d.pa.Token(t, claimsOf("alex"))
	for i := range many {
		url := d.url
		if i%2 == 1 {
			url = second
		}
		go func() {
			answers <- d.do(d.request(http.MethodPost, url+"/message:send", jwt, tokens.JWS, said("m1", context, "Hi")))
		}()
	}
	for range many - 1 {
		(<-answers).invalid(t, "meanwhile")
	}
	close(release)
	if a := <-answers; a.status != http.StatusOK {
		t.Errorf("the one that ran: %d %s", a.status, a.body)
	}
	if n := d.agent.count(); n != 2 {
		t.Errorf("the agent ran %d times for the message", n-1)
	}
	if a := d.send(d.pa, "alex", tokens.JWS, said("m1", context, "Hi")); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// M23, P46: a conversation belongs to (Brand, PA, sub) and, once it ran as a Brand
// user, to that one; whoever else asks hears the same as of one that is not there.
func TestConversationsAreTheirOwners(t *testing.T) {
	d := newDoor(t)
	alex := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	context := d.send(d.pa, "alex", alex.JWS, said("m1", "", "Hi")).context()
	unknown := d.send(d.pa, "alex", alex.JWS, said("m", "01890000-0000-7000-8000-000000000000", "Hi"))
	unknown.invalid(t, "unknown")
	same := func(what string, a answer) {
		t.Helper()
		if a.status != unknown.status || a.body != unknown.body {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	ran := d.agent.count()
	for _, id := range []string{"m1", "m2"} { // the stored reply is no more open than the rest
		same("another agent", d.send(d.other, "alex", "", said(id, context, "Hi")))
		same("another person of the agent", d.send(d.pa, "sam", "", said(id, context, "Hi")))
		same("no token", d.send(d.pa, "alex", "", said(id, context, "Hi")))
	}
	// The same person of the same agent, as another Brand user.
	wife := d.delegated(d.pa, "alex", "guest-2", "bookings:read")
	for _, id := range []string{"m1", "m2"} {
		same("another user's token", d.send(d.pa, "alex", wife.JWS, said(id, context, "Hi")))
	}
	if n := d.agent.count(); n != ran {
		t.Errorf("the agent ran %d times more", n-ran)
	}
	if a := d.send(d.pa, "alex", alex.JWS, said("m2", context, "Hi")); a.status != http.StatusOK {
		t.Errorf("the owner: %d %s", a.status, a.body)
	}
	// One that began without a token is locked by the first turn with one.
	open := d.send(d.pa, "alex", "", said("m0", "", "Hi")).context()
	for _, id := range []string{"m0", "m2"} {
		same("open, another agent", d.send(d.other, "alex", "", said(id, open, "Hi")))
		same("open, another person of the agent", d.send(d.pa, "sam", "", said(id, open, "Hi")))
	}
	if a := d.send(d.pa, "alex", "", said("m2", open, "Hi")); a.status != http.StatusOK {
		t.Errorf("open: %d", a.status)
	}
	if a := d.send(d.pa, "alex", alex.JWS, said("m3", open, "Hi")); a.status != http.StatusOK {
		t.Errorf("open, as guest-1: %d", a.status)
	}
	same("locked", d.send(d.pa, "alex", "", said("m4", open, "Hi")))
	same("locked", d.send(d.pa, "alex", wife.JWS, said("m5", open, "Hi")))
	// Another Brand's conversation is nobody's here.
	shop := strings.Replace(d.url, "harbor-hotel", "fern-and-fell", 1)
	same("at another Brand", d.do(d.request(http.MethodPost, shop+"/message:send", d.pa.Token(t, claimsOf("alex")), "", said("m1", open, "Hi"))))
}

// M23 under a step-up: the agent ran as that user already.
func TestAStepUpLocksToo(t *testing.T) {
	d := newDoor(t)
	alex := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"May I?","missingScopes":["extras:order"]}`)
	context := d.send(d.pa, "alex", alex.JWS, said("m1", "", "Hi")).context()
	d.send(d.pa, "alex", "", said("m2", context, "Hi")).invalid(t, "no token")
}

// One agent says so much in a minute without permissions, whomever it invents. Its
// people who have one, and other agents, are heard as before.
func TestAnAgentsInventedPeopleAreBounded(t *testing.T) {
	d := newDoor(t)
	token := d.delegated(d.pa, "alex", "guest-1", "bookings:read").JWS
	// 598 times, a step-up heard again counted, and what is said with permissions not.
	d.Exec(t, `
		WITH c AS (
			INSERT INTO conversations (brand_id, id, agent, agent_sub, created_at, used_at)
			SELECT 'harbor-hotel', gen_random_uuid(), $1, 'invented-' || i, $2, $2 FROM generate_series(1, 299) i RETURNING *)
		INSERT INTO turns (brand_id, conversation_id, message_id, agent, agent_sub, state, grant_id, runs, began_at)
		SELECT brand_id, id, m, agent, agent_sub, 'replied', g, 2, used_at
		  FROM c, (VALUES ('m', NULL), ('allowed', gen_random_uuid())) t (m, g)`, d.pa.Issuer, d.Clock.Now())
	var context string
	for i := range 2 {
		a := d.send(d.pa, "sam-"+strconv.Itoa(i), "", said("m", "", "Hi"))
		if context = a.context(); a.status != http.StatusOK {
			t.Fatalf("%d: %d %s", i, a.status, a.body)
		}
	}
	ran := d.agent.count()
	for what, a := range map[string]answer{
		"somebody new":            d.send(d.pa, "sam-2", "", said("m", "", "Hi")),
		"in a conversation":       d.send(d.pa, "sam-1", "", said("m2", context, "Hi")),
		"alex, without the token": d.send(d.pa, "alex", "", said("m", "", "Hi")),
	} {
		a.is(t, what, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
		if a.header.Get("Retry-After") != "60" {
			t.Errorf("%s: Retry-After %q", what, a.header.Get("Retry-After"))
		}
	}
	if n := d.agent.count(); n != ran {
		t.Errorf("the agent ran %d times more", n-ran)
	}
	for what, a := range map[string]answer{
		"a lost reply":      d.send(d.pa, "sam-1", "", said("m", "", "Hi")),
		"alex, with it":     d.send(d.pa, "alex", token, said("m", "", "Hi")),
		"alex, once more":   d.send(d.pa, "alex", token, said("m2", "", "Hi")),
		"the other agent's": d.send(d.other, "sam-2", "", said("m", "", "Hi")),
	} {
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	d.Clock.Advance(time.Minute)
	if a := d.send(d.pa, "sam-2", "", said("m", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("a minute later: %d %s", a.status, a.body)
	}
}

// 429 with Retry-After: so many messages of one person's agent in a minute, and so
// many at once.
func TestLimits(t *testing.T) {
	d := newDoor(t)
	for i := range 60 {
		if a := d.send(d.pa, "alex", "", said("m"+strconv.Itoa(i), "", "Hi")); a.status != http.StatusOK {
			t.Fatalf("message %d: %d %s", i, a.status, a.body)
		}
	}
	a := d.send(d.pa, "alex", "", said("m60", "", "Hi"))
	a.is(t, "one too many", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
	if a.header.Get("Retry-After") != "60" || d.agent.count() != 60 {
		t.Errorf("Retry-After %q, the agent ran %d times", a.header.Get("Retry-After"), d.agent.count())
	}
	if a := d.send(d.pa, "sam", "", said("m", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("another person: %d", a.status)
	}
	d.Clock.Advance(61 * time.Second)
	if a := d.send(d.pa, "alex", "", said("m60", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("a minute later: %d", a.status)
	}
}

func TestTooManyAtOnce(t *testing.T) {
	d := newDoor(t)
	release := make(chan struct{})
	started := make(chan struct{}, 20)
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done."}`)
	})
	jwt := d.pa.Token(t, claimsOf("alex"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			d.do(d.request(http.MethodPost, d.url+"/message:send", jwt, "", said("m"+strconv.Itoa(i), "", "Hi")))
		})
	}
	for range 8 {
		<-started
	}
	a := d.send(d.pa, "alex", "", said("m", "", "Hi"))
	a.is(t, "the ninth", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	close(release)
	all.Wait()
}

// A signer that is away costs no turn: what the agent did is kept, and the same
// message gets its receipt when it comes again, without the agent acting twice.
func TestAReceiptThatCannotBeMadeNowIsMadeLater(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	context0 := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"],"actions":[{"tool":"x","args":[1]}]}`)
	var turns []authority.Turn
	d.sign = func(_ context.Context, _ *tenants.Brand, turn authority.Turn) (authority.Receipt, error) {
		turns = append(turns, turn)
		if len(turns) < 3 {
			return authority.Receipt{}, authority.ErrUnavailable
		}
		return authority.Receipt{JWS: "a.b.c", Claims: json.RawMessage(`{}`)}, nil
	}
	for range 2 {
		a := d.send(d.pa, "alex", tokens.JWS, said("m1", context0, "Hi"))
		a.is(t, "no signer", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	a := d.send(d.pa, "alex", tokens.JWS, said("m1", context0, "Hi"))
	if a.status != http.StatusOK || !strings.Contains(a.body, `"a.b.c"`) || !strings.Contains(a.body, "Done.") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := d.agent.count(); n != 2 {
		t.Errorf("the agent ran %d times for the message", n-1)
	}
	first, last := turns[0], turns[2]
	if !first.Began.Equal(last.Began) || string(last.Actions[0].Args) != `[1]` || last.ScopesUsed[0] != "bookings:read" {
		t.Errorf("countersigned %+v, then %+v", first, last)
	}
}
