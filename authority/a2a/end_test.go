package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"
)

// receipts are those beside a reply.
func (a answer) receipts(t *testing.T) map[string]authority.Receipt {
	t.Helper()
	out := make(map[string]authority.Receipt)
	if a.status != http.StatusOK || a.json.Message == nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for name, raw := range a.json.Message.Metadata {
		var r authority.Receipt
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		out[name] = r
	}
	return out
}

const unknownContext = "01890000-0000-7000-8000-000000000000"

// A Brand's agent ends a conversation: with its last reply comes one receipt over all
// of them, what comes new is of no conversation, and what was answered stays so.
func TestTheAgentEndsAConversation(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	say := func(id, context string) answer { return d.send(d.pa, "alex", tokens.JWS, said(id, context, "Hi")) }
	d.agent.says(`{"text":"Room 12.","scopesUsed":["bookings:read"],"done":false}`)
	first := say("m1", "")
	open := first.context()
	d.agent.says(`{"text":"May I?","missingScopes":["extras:order"]}`)
	say("m2", open)
	d.agent.says(`{"text":"Goodbye.","done":true}`)
	last := say("m3", open)
	if names := first.receipts(t); len(names) != 1 || names["pact.receipt"].JWS == "" {
		t.Errorf("before its end: %s", first.body)
	}
	both := last.receipts(t)
	payload, err := d.Keys.Verify(t.Context(), d.Hotel.ID, "pact-task-receipt+jws", both["pact.taskReceipt"].JWS)
	if err != nil || string(payload) != string(both["pact.taskReceipt"].Claims) || len(both) != 2 {
		t.Fatalf("%s: signed %s, %v", last.body, payload, err)
	}
	var edge receiptlog.Edge
	edge.Append(tlog.RecordHash(first.receipts(t)["pact.receipt"].Claims))
	edge.Append(tlog.RecordHash(both["pact.receipt"].Claims))
	var task receiptlog.Task
	if err := json.Unmarshal(payload, &task); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(receiptlog.Task{
		GrantID: tokens.GrantID.String(), User: "guest-1", PA: d.pa.Issuer, Brand: d.Hotel.InterfaceURL, ContextID: open,
		Count: 2, Root: receiptlog.Text(edge.Root()), TS: task.TS,
	}, task); diff != "" {
		t.Error(diff)
	}

	ran := d.agent.count()
	unknown := say("m", unknownContext)
	unknown.invalid(t, "unknown")
	for _, id := range []string{"m4", "m2"} { // m2 waits for the person, and would be heard again
		if a := say(id, open); a.status != unknown.status || a.body != unknown.body {
			t.Errorf("%s in a conversation that has ended: %d %s", id, a.status, a.body)
		}
	}
	for id, want := range map[string]answer{"m1": first, "m3": last} {
		if a := say(id, open); a.body != want.body {
			t.Errorf("%s again: %d %s", id, a.status, a.body)
		}
	}
	if a := say("m1", ""); a.body != first.body {
		t.Errorf("what began it, again: %d %s", a.status, a.body)
	}
	if n := d.agent.count(); n != ran {
		t.Errorf("the agent ran %d times more", n-ran)
	}
	if a := say("m5", ""); a.status != http.StatusOK || a.context() == open {
		t.Errorf("another conversation: %d %s", a.status, a.body)
	}
}

// Without a delegation nothing was countersigned, and it ends all the same.
func TestAConversationEndsWithoutADelegation(t *testing.T) {
	d := newDoor(t)
	d.agent.says(`{"text":"Goodbye.","done":true}`)
	a := d.send(d.pa, "alex", "", said("m1", "", "Hi"))
	if a.status != http.StatusOK || strings.Contains(a.body, "metadata") {
		t.Errorf("%d %s", a.status, a.body)
	}
	d.send(d.pa, "alex", "", said("m2", a.context(), "Hi")).invalid(t, "afterwards")
	if n := d.agent.count(); n != 1 {
		t.Errorf("the agent ran %d times", n)
	}
	// What began a conversation and waits for the person is spent with its end, and
	// says so: its sender named no conversation.
	d.agent.says(`{"text":"May I?","missingScopes":["bookings:read"]}`)
	open := d.send(d.pa, "alex", "", said("m3", "", "Hi")).context()
	d.agent.says(`{"text":"Goodbye.","done":true}`)
	d.send(d.pa, "alex", "", said("m4", open, "Hi"))
	if a := d.send(d.pa, "alex", "", said("m3", "", "Hi")); !strings.Contains(a.body, "messageId") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A last reply is given whether or not its conversation's receipt can be had, which
// is there for the asking later.
func TestATaskReceiptThatFailsCostsNoReply(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	for what, bind := range map[string]func(context.Context) error{
		"nobody signs":     func(context.Context) error { return authority.ErrUnavailable },
		"nobody answers":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"something breaks": func(context.Context) error { return io.ErrUnexpectedEOF },
	} {
		d.bind = func(ctx context.Context, _ *tenants.Brand, _ uuid.UUID, _ string) (authority.TaskReceipt, error) {
			return authority.TaskReceipt{}, bind(ctx)
		}
		d.agent.says(`{"text":"Goodbye.","scopesUsed":["bookings:read"],"done":true}`)
		a := d.send(d.pa, "alex", tokens.JWS, said(what, "", "Hi"))
		if got := a.receipts(t); len(got) != 1 || got["pact.receipt"].JWS == "" {
			t.Errorf("%s: %s", what, a.body)
		}
		d.bind = nil
		if again := d.send(d.pa, "alex", tokens.JWS, said(what, a.context(), "Hi")); again.body != a.body {
			t.Errorf("%s, again: %d %s", what, again.status, again.body)
		}
		d.send(d.pa, "alex", tokens.JWS, said("more", a.context(), "Hi")).invalid(t, what+", afterwards")
		if got, err := d.rules.CountersignTask(t.Context(), d.Hotel, tokens.GrantID, a.context()); err != nil || got.Count != 1 {
			t.Errorf("%s, later: %+v, %v", what, got, err)
		}
	}
}

// A last turn that cannot be countersigned now has not ended anything yet: its answer
// is kept, that it is the last one with it.
func TestALastReplyThatComesLater(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		return authority.Receipt{}, authority.ErrUnavailable
	}
	d.agent.says(`{"text":"Goodbye.","done":true}`)
	d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi")).is(t, "no signer", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
	d.sign = nil
	a := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi"))
	if got := a.receipts(t); len(got) != 2 || d.agent.count() != 1 {
		t.Errorf("%s; the agent ran %d times", a.body, d.agent.count())
	}
	d.send(d.pa, "alex", tokens.JWS, said("m2", a.context(), "Hi")).invalid(t, "afterwards")
}

// What is under way when the conversation ends is answered, and countersigned: before
// the end is bound, it is within it; after that, its own reply has the whole.
func TestWhatIsUnderWayAtTheEndIsAnswered(t *testing.T) {
	for what, within := range map[string]bool{"after the end": false, "at the end": true} {
		t.Run(what, func(t *testing.T) {
			d := newDoor(t)
			tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
			open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
			started, release := make(chan struct{}), make(chan struct{})
			d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
				close(started)
				<-release
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"text":"Room 12."}`)
			})
			slow := make(chan answer, 1)
			jwt := d.pa.Token(t, claimsOf("alex"))
			go func() {
				slow <- d.do(d.request(http.MethodPost, d.url+"/message:send", jwt, tokens.JWS, said("m1", open, "Hi")))
			}()
			select {
			case <-started:
			case <-time.After(30 * time.Second):
				t.Fatal("the agent was not called")
			}
			d.agent.says(`{"text":"Goodbye.","done":true}`)
			var late answer
			d.bind = func(ctx context.Context, b *tenants.Brand, grant uuid.UUID, contextID string) (authority.TaskReceipt, error) {
				if d.bind = nil; within {
					d.send(d.pa, "alex", tokens.JWS, said("m3", open, "Hi")).invalid(t, "heard while its end is bound")
					close(release)
					late = <-slow
				}
				return d.rules.CountersignTask(ctx, b, grant, contextID)
			}
			last := d.send(d.pa, "alex", tokens.JWS, said("m2", open, "Hi"))
			if !within {
				close(release)
				late = <-slow
			}
			want := map[bool]int64{false: 2, true: 3}[within]
			if n := bindsOf(t, last); n != want {
				t.Errorf("the last reply binds %d receipts instead of %d: %s", n, want, last.body)
			}
			if n := bindsOf(t, late); n != 3 {
				t.Errorf("the one that was under way binds %d receipts: %s", n, late.body)
			}
			for id, first := range map[string]answer{"m1": late, "m2": last} {
				if again := d.send(d.pa, "alex", tokens.JWS, said(id, open, "Hi")); again.body != first.body {
					t.Errorf("%s again: %d %s", id, again.status, again.body)
				}
			}
			if got, err := d.rules.CountersignTask(t.Context(), d.Hotel, tokens.GrantID, open); err != nil || got.Count != 3 || !got.Again {
				t.Errorf("the whole: %+v, %v", got, err)
			}
		})
	}
}

// bindsOf is how many receipts the one of the whole conversation binds.
func bindsOf(t *testing.T, a answer) int64 {
	t.Helper()
	var task receiptlog.Task
	if err := json.Unmarshal(a.receipts(t)["pact.taskReceipt"].Claims, &task); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return task.Count
}

// Nobody's turn that is under way at the end has its reply too.
func TestNobodysTurnAtTheEndIsAnswered(t *testing.T) {
	d := newDoor(t)
	x, err := d.rules.Hear(t.Context(), d.Hotel.ID, authority.Heard{Who: authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}, MessageID: "m"})
	if err != nil {
		t.Fatal(err)
	}
	d.agent.says(`{"text":"Goodbye.","done":true}`)
	d.send(d.pa, "alex", "", said("m2", x.Context.String(), "Hi"))
	if _, err := d.rules.KeepReply(t.Context(), d.Hotel.ID, x, "late"); !errors.Is(err, authority.ErrClosed) {
		t.Error(err)
	}
	if got, err := d.rules.KeepLastReply(t.Context(), d.Hotel.ID, x, "late"); err != nil || got != "late" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := d.rules.KeepReply(t.Context(), d.Hotel.ID, x, "later"); err != nil || got != "late" {
		t.Errorf("%q, %v", got, err)
	}
}
