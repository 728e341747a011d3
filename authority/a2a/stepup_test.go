package a2a_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

func claimsOf(sub string) agenttest.Claims { return agenttest.Claims{Sub: sub} }

// M22, P46: a missing permission is a task that waits, with at least one scope and
// a link or none; no receipt, and no stored reply.
func TestAMissingPermissionIsATaskThatWaits(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"May I order champagne?","missingScopes":["extras:order","bookings:read"]}`)
	a := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Champagne, please."))
	task := a.json.Task
	if a.status != http.StatusOK || task == nil || task.Status.State != "TASK_STATE_AUTH_REQUIRED" || a.json.Message != nil ||
		task.Status.Message.Parts[0].Text != "May I order champagne?" || task.ID == "" || a.header.Get("Content-Type") != "application/a2a+json" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	// What the token has already is not missing.
	if got := string(task.Metadata["pact.missingScopes"]); got != `["extras:order"]` {
		t.Errorf("missing %s", got)
	}
	var link string
	if err := json.Unmarshal(task.Metadata["pact.verificationUriComplete"], &link); err != nil || len(task.Metadata) != 2 {
		t.Fatalf("%s", a.body)
	}
	if !strings.HasPrefix(link, authoritytest.PublicURL+"/b/harbor-hotel/device?user_code=") || strings.Contains(a.body, "receipt") {
		t.Errorf("%s", a.body)
	}
	// The task is not there to be asked for, and the same message again leads to the
	// same link while nobody has decided.
	d.call(http.MethodGet, "/tasks/"+task.ID, d.pa.Token(t, claimsOf("alex")), "", "").is(t, "the task", 404, "NOT_FOUND", "TASK_NOT_FOUND")
	again := d.send(d.pa, "alex", tokens.JWS, said("m1", a.context(), "Champagne, please."))
	if again.json.Task == nil || string(again.json.Task.Metadata["pact.verificationUriComplete"]) != string(task.Metadata["pact.verificationUriComplete"]) {
		t.Errorf("again: %s", again.body)
	}
	if n := d.agent.count(); n != 2 {
		t.Errorf("the agent ran %d times", n)
	}

	// The person allows it at that link; the agent refreshes, and the same message
	// is heard again.
	u, _ := url.Parse(link)
	q, _, err := d.rules.Find(t.Context(), d.Hotel.ID, u.Query().Get("user_code"), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, d.rules, d.Hotel, authority.Started{ID: q}, "guest-1", "bookings:read", "extras:order")
	who := authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}
	wider, err := d.rules.Refresh(t.Context(), d.Hotel, who, tokens.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.agent.says(`{"text":"On its way.","scopesUsed":["extras:order"]}`)
	done := d.send(d.pa, "alex", wider.JWS, said("m1", a.context(), "Champagne, please."))
	if done.status != http.StatusOK || done.json.Message == nil || !strings.Contains(done.body, "pact.receipt") {
		t.Errorf("%d %s", done.status, done.body)
	}
	turn, _, _ := d.agent.last()
	if diff := cmp.Diff([]string{"bookings:read", "extras:order"}, turn.Scopes); diff != "" {
		t.Error(diff)
	}
}

// Without a token whoever logs in selects the grant.
func TestAStepUpWithoutAToken(t *testing.T) {
	d := newDoor(t)
	d.agent.says(`{"text":"Who are you?","missingScopes":["bookings:read"]}`)
	a := d.send(d.pa, "alex", "", said("m1", "", "My bookings?"))
	if a.json.Task == nil || string(a.json.Task.Metadata["pact.missingScopes"]) != `["bookings:read"]` || a.json.Task.Metadata["pact.verificationUriComplete"] == nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
}

// M22: the link is absent rather than null where there is none to give: the grant
// holds what the token lacks, or there are too many requests.
func TestTheLinkIsAbsentRatherThanNull(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read", "account:read")
	who := authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}
	narrow, err := d.rules.Refresh(t.Context(), d.Hotel, who, tokens.Refresh, []string{"bookings:read"})
	if err != nil {
		t.Fatal(err)
	}
	d.agent.says(`{"text":"Who are you?","missingScopes":["account:read"]}`)
	check := func(what string, a answer) {
		t.Helper()
		if a.json.Task == nil || len(a.json.Task.Metadata) != 1 || strings.Contains(a.body, "null") ||
			string(a.json.Task.Metadata["pact.missingScopes"]) != `["account:read"]` {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	check("the grant holds it", d.send(d.pa, "alex", narrow.JWS, said("m1", "", "Who am I?")))
	for {
		if _, err := d.rules.Begin(t.Context(), d.Hotel, authority.Caller{Agent: d.pa.Issuer, Sub: "sam"}, []string{"bookings:read"}); err != nil {
			break
		}
	}
	check("too many requests", d.send(d.pa, "sam", "", said("m1", "", "Who am I?")))
}

// The person reads the agent's words as one plain line or not at all: nothing in
// them looks like a page of ours.
func TestTheReasonIsOnePlainLine(t *testing.T) {
	d := newDoor(t)
	for i, tt := range []struct{ text, want string }{
		{"May I order champagne?", "May I order champagne?"},
		{"May I\n\n order\tchampagne? ", "May I order champagne?"},
		{"May I \u202eorder\u202c?", ""},
		{"May I \u0007order?", ""},
		{strings.Repeat("x", 301), ""},
	} {
		raw, _ := json.Marshal(map[string]any{"text": tt.text, "missingScopes": []string{"bookings:read"}})
		d.agent.says(string(raw))
		sub := "sam-" + strconv.Itoa(i)
		if a := d.send(d.pa, sub, "", said("m", "", "Hi")); a.json.Task == nil || a.json.Task.Metadata["pact.verificationUriComplete"] == nil {
			t.Errorf("%q: %d %s", tt.text, a.status, a.body)
		}
		if n := d.Count(t, `SELECT count(*) FROM device_requests WHERE agent_sub = $1 AND reason = $2`, sub, tt.want); n != 1 {
			t.Errorf("%q is not shown as %q", tt.text, tt.want)
		}
	}
}

// A Brand that delegates nothing has nothing to ask the person for.
func TestABrandWithoutDelegationAsksNobody(t *testing.T) {
	d := newDoor(t)
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Delegation = false })
	d.Clock.Advance(5 * time.Second)
	open := d.send(d.pa, "alex", "", said("m0", "", "Hi")).context()
	d.agent.says(`{"text":"May I?","missingScopes":["bookings:read"]}`)
	d.send(d.pa, "alex", "", said("m1", open, "Hi")).internal(t, "asked")
	d.send(d.pa, "alex", "", said("m1", open, "Hi")).invalid(t, "again")
}

// An agent that asks for what it has, or for what nobody can give, has made a
// mistake; a task without a missing scope would lead nowhere. Its message is spent.
func TestStepUpsThatMakeNoSense(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	for what, said0 := range map[string]string{
		"what it has":     `{"text":"May I?","missingScopes":["bookings:read"]}`,
		"not on the card": `{"text":"May I?","missingScopes":["extras:order","nothing:known"]}`,
		"nothing":         `{"text":"May I?","missingScopes":[]}`,
		"and it acted":    `{"text":"May I?","missingScopes":["extras:order"],"scopesUsed":["bookings:read"]}`,
		"and it did":      `{"text":"May I?","missingScopes":["extras:order"],"actions":[{"tool":"x"}]}`,
	} {
		d.agent.says(said0)
		d.send(d.pa, "alex", tokens.JWS, said(what, open, "Hi")).internal(t, what)
		d.send(d.pa, "alex", tokens.JWS, said(what, open, "Hi")).invalid(t, what+", again")
		d.Clock.Advance(time.Second)
	}
	if n := d.Count(t, `SELECT count(*) FROM device_requests WHERE kind = 'stepup'`); n != 0 {
		t.Errorf("%d requests", n)
	}
}
