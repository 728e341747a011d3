package a2a_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// A first message whose receipt was not to be had, or whose reply was lost, comes
// again as it was: its sender knows no contextId. The agent has acted once.
func TestAFirstMessageThatComesAgainActsOnce(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"Champagne!","scopesUsed":["bookings:read"]}`)
	signs := 0
	d.sign = func(ctx context.Context, b *tenants.Brand, turn authority.Turn) (authority.Receipt, error) {
		if signs++; signs < 3 {
			return authority.Receipt{}, authority.ErrUnavailable
		}
		return d.rules.Countersign(ctx, b, turn)
	}
	order := func(token string) answer { return d.send(d.pa, "alex", token, said("m1", "", "Order champagne.")) }
	for range 2 {
		order(tokens.JWS).is(t, "no signer", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
	}
	first := order(tokens.JWS)
	if first.status != http.StatusOK || !strings.Contains(first.body, "pact.receipt") {
		t.Fatalf("%d %s", first.status, first.body)
	}
	if a := order(tokens.JWS); a.body != first.body {
		t.Errorf("the stored reply: %s, then %s", first.body, a.body)
	}
	// Their conversation is another user's (M23), and that message is no new one.
	order(d.delegated(d.pa, "alex", "guest-2", "bookings:read").JWS).invalid(t, "as another user")
	order("").invalid(t, "as nobody")
	if n := d.agent.count(); n != 1 {
		t.Errorf("the agent acted %d times", n)
	}
	if n := d.Count(t, `SELECT count(*) FROM conversations`); n != 1 {
		t.Errorf("%d conversations", n)
	}
}

// One that failed is spent, and one that was never sent is not.
func TestAFirstMessageThatFailed(t *testing.T) {
	d := newDoor(t)
	d.agent.says(`{"texts":"?"}`)
	d.send(d.pa, "alex", "", said("m1", "", "Hi")).internal(t, "a bad answer")
	d.agent.says(`{"text":"Hello."}`)
	d.send(d.pa, "alex", "", said("m1", "", "Hi")).invalid(t, "again")
	if n := d.agent.count(); n != 1 {
		t.Errorf("the agent was called %d times", n)
	}
	d.point("")
	d.send(d.pa, "alex", "", said("m2", "", "Hi")).internal(t, "nowhere")
	d.point(d.agent.URL)
	if a := d.send(d.pa, "alex", "", said("m2", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("nothing had been sent: %d %s", a.status, a.body)
	}
}

// A message id is its sender's own: another agent, another person and another Brand
// begin conversations of theirs.
func TestAMessageIDIsItsSendersOwn(t *testing.T) {
	d := newDoor(t)
	seen := map[string]string{}
	for who, a := range map[string]answer{
		"alex":          d.send(d.pa, "alex", "", said("m1", "", "Hi")),
		"sam":           d.send(d.pa, "sam", "", said("m1", "", "Hi")),
		"another agent": d.send(d.other, "alex", "", said("m1", "", "Hi")),
	} {
		if seen[a.context()] != "" || a.status != http.StatusOK {
			t.Errorf("%s and %s: %d %s", who, seen[a.context()], a.status, a.body)
		}
		seen[a.context()] = who
	}
	who := authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}
	for range 2 {
		x, err := d.rules.Hear(t.Context(), d.Shop.ID, authority.Heard{Who: who, MessageID: "m1"})
		if err != nil || x.Reply != "" && x.Reply != "Ahoy" || seen[x.Context.String()] != "" {
			t.Fatalf("another Brand: %+v, %v", x, err)
		}
		if _, err := d.rules.KeepReply(t.Context(), d.Shop.ID, x, "Ahoy"); err != nil {
			t.Fatal(err)
		}
	}
	// Once it ran as one person it has no reply for another, and a sender who named no
	// conversation is not told of one.
	alex, sam := d.delegated(d.pa, "kim", "guest-1", "bookings:read"), d.delegated(d.pa, "kim", "guest-2", "bookings:read")
	if a := d.send(d.pa, "kim", alex.JWS, said("m1", "", "Hi")); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for what, token := range map[string]string{"another person": sam.JWS, "nobody": ""} {
		a := d.send(d.pa, "kim", token, said("m1", "", "Hi"))
		a.invalid(t, what)
		if strings.Contains(a.body, "contextId") {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	if n := d.agent.count(); n != 4 {
		t.Errorf("the agent ran %d times", n)
	}
}

// A first message that waits for the person is heard again in its conversation,
// whether its sender names that or not.
func TestAFirstMessageIsHeardAgainAfterAStepUp(t *testing.T) {
	d := newDoor(t)
	d.agent.says(`{"text":"May I?","missingScopes":["bookings:read"]}`)
	first := d.send(d.pa, "alex", "", said("m1", "", "Hi"))
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"Room 12.","scopesUsed":["bookings:read"]}`)
	a := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi"))
	if a.status != http.StatusOK || first.context() == "" || a.context() != first.context() || d.agent.count() != 2 {
		t.Errorf("%s; then %d %s; the agent ran %d times", first.body, a.status, a.body, d.agent.count())
	}
}

// One first message many times at once, at two instances: it begins one
// conversation, and the agent runs once.
func TestOneMessageBeginsOneConversation(t *testing.T) {
	d := newDoor(t)
	release := make(chan struct{})
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		select { // a second run must not hang, or the test would
		case <-release:
		case <-time.After(10 * time.Second):
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done."}`)
	})
	urls := []string{d.url, d.instance() + "/a2a/harbor-hotel"}
	const many = 8
	answers := make(chan answer, many)
	jwt := d.pa.Token(t, claimsOf("alex"))
	for i := range many {
		go func() {
			answers <- d.do(d.request(http.MethodPost, urls[i%2]+"/message:send", jwt, "", said("m1", "", "Hi")))
		}()
	}
	for range many - 1 {
		(<-answers).invalid(t, "meanwhile")
	}
	close(release)
	if a := <-answers; a.status != http.StatusOK {
		t.Errorf("the one that ran: %d %s", a.status, a.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM conversations`); n != 1 || d.agent.count() != 1 {
		t.Errorf("%d conversations; the agent ran %d times", n, d.agent.count())
	}
}

// Where the database goes away in the middle of a turn, nobody is told that nothing
// was lost: the agent has acted, and its answer is either given or said to be gone.
func TestADatabaseThatGoesAwayInATurn(t *testing.T) {
	d := newDoor(t)
	d.Exec(t, `CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'away' USING ERRCODE = '57P03'; END $$`)
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		d.Exec(t, `CREATE OR REPLACE TRIGGER away BEFORE UPDATE ON turns FOR EACH ROW EXECUTE FUNCTION away()`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Champagne!"}`)
	})
	back := func() { d.Exec(t, `DROP TRIGGER away ON turns`) }
	if a := d.send(d.pa, "alex", "", said("m1", "", "Hi")); a.status != http.StatusOK || !strings.Contains(a.body, "Champagne!") {
		t.Errorf("without a token: %d %s", a.status, a.body)
	}
	back()
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	a := d.send(d.pa, "alex", tokens.JWS, said("m2", "", "Hi"))
	a.internal(t, "no receipt without an answer that is kept")
	if !strings.Contains(a.body, "not sent again") {
		t.Error(a.body)
	}
	back()
	for _, id := range []string{"m1", "m2"} {
		d.send(d.pa, "alex", map[string]string{"m2": tokens.JWS}[id], said(id, "", "Hi")).invalid(t, "again")
	}
	if n := d.agent.count(); n != 2 {
		t.Errorf("the agent acted %d times", n)
	}
}
