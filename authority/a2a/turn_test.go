package a2a_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/canonical"
	"countersign.dev/authority/events/eventstest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// What the Brand's agent is told: who, in whose name, what it may use; signed, and
// without a credential of anybody's (design decision 2).
func TestTheAgentIsToldWhoSpeaksAndForWhom(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read", "account:read")
	d.agent.says(`{"text":"Room 12, Friday.","scopesUsed":["bookings:read"],"actions":[{"tool":"bookings.list","args":{"days":7}}]}`)
	jwt := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	a := d.call(http.MethodPost, "/message:send", jwt, tokens.JWS, said("m-1", "", "What do I have booked?"))
	if a.status != http.StatusOK || a.json.Message == nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	turn, body, head := d.agent.last()
	want := turn // what is drawn at random is checked below
	want.Type, want.Brand, want.MessageID, want.Text = "turn", "harbor-hotel", "m-1", "What do I have booked?"
	want.ContextID = a.json.Message.ContextID
	want.Agent.Issuer, want.Agent.Sub, want.Agent.Host = d.pa.Issuer, "alex", strings.TrimPrefix(d.pa.Issuer, "http://")
	want.User.Sub, want.User.GrantID = "guest-1", tokens.GrantID.String()
	want.Scopes = []string{"bookings:read", "account:read"}
	if diff := cmp.Diff(want, turn); diff != "" {
		t.Error(diff)
	}
	if turn.CallID != head.Get("Webhook-Id") || uuid.Validate(turn.CallID) != nil {
		t.Errorf("call id %q, header %q", turn.CallID, head.Get("Webhook-Id"))
	}
	for name := range head {
		if strings.Contains(strings.Join(head[name], " "), "eyJ") || strings.EqualFold(name, "Authorization") || strings.Contains(name, "Idempotency") {
			t.Errorf("the agent got the header %s", name)
		}
	}
	if strings.Contains(body, "eyJ") || strings.Contains(body, jwt) || strings.Contains(body, tokens.JWS) {
		t.Error("the agent got a credential")
	}
	if err := eventstest.Verify(d.agent.secret, head, []byte(body), d.Clock.Now()); err != nil {
		t.Error(err)
	}
	m := a.json.Message
	if m.Role != "ROLE_AGENT" || len(m.Parts) != 1 || m.Parts[0].Text != "Room 12, Friday." || m.MessageID == "" || len(m.Metadata) != 1 {
		t.Errorf("%s", a.body)
	}
	if s := d.logs.text(); strings.Contains(s, "eyJ") || strings.Contains(s, "booked") || strings.Contains(s, "Room 12") || strings.Contains(s, "guest-1") {
		t.Errorf("the log holds what was said, or for whom: %s", s)
	}
}

// P45: without a delegation there is no user, no scope and no receipt.
func TestWithoutADelegation(t *testing.T) {
	d := newDoor(t)
	d.agent.says(`{"text":"We open at eight.","actions":[{"tool":"hours"}]}`)
	a := d.send(d.pa, "alex", "", said("m", "", "When do you open?"))
	_, body, _ := d.agent.last()
	if a.status != http.StatusOK || strings.Contains(a.body, "pact.receipt") || strings.Contains(a.body, "metadata") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if strings.Contains(body, `"user"`) || !strings.Contains(body, `"scopes":[]`) {
		t.Errorf("the agent was told %s", body)
	}
}

// M21, M18, P29, P41: a bad token is one and the same 401, and the agent is never
// called.
func TestBadTokens(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	parts := strings.Split(tokens.JWS, ".")
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	sign := func(typ, from, to string) string {
		jws, err := d.Keys.Sign(t.Context(), d.Hotel.ID, typ, []byte(strings.Replace(string(claims), from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return jws
	}
	shop, err := d.Keys.Sign(t.Context(), d.Shop.ID, "at+jwt", claims)
	if err != nil {
		t.Fatal(err)
	}
	for what, token := range map[string]string{
		"not a jwt":       "not-a-jwt",
		"tampered":        parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(claims), "guest-1", "guest-2", 1))) + "." + parts[2],
		"a pa-jwt":        d.pa.Token(t, agenttest.Claims{Sub: "alex"}),
		"another Brand's": shop,
		"a receipt":       sign("pact-receipt+jws", "", ""),
		"another aud":     sign("at+jwt", d.Hotel.InterfaceURL+`","sub"`, d.Shop.InterfaceURL+`","sub"`),
		"another user":    sign("at+jwt", "guest-1", "guest-2"),
		"another client":  sign("at+jwt", d.pa.Issuer, d.other.Issuer),
		"no grant":        sign("at+jwt", tokens.GrantID.String(), uuid.NewString()),
	} {
		d.send(d.pa, "alex", token, said("m", "", "Hi")).refused(t, what, m21)
		// M21 comes before the body.
		d.send(d.pa, "alex", token, "%%%").refused(t, what+", bad body", m21)
	}
	// M18: the card is not transferable, to another agent or for another person.
	d.send(d.other, "alex", tokens.JWS, said("m", "", "Hi")).refused(t, "another agent", m21)
	d.send(d.pa, "sam", tokens.JWS, said("m", "", "Hi")).refused(t, "another person of the agent", m21)
	jwt := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	for what, values := range map[string][]string{
		"empty": {""}, "no scheme": {tokens.JWS}, "basic": {"Basic " + tokens.JWS}, "two": {"Bearer " + tokens.JWS, "Bearer " + tokens.JWS},
		"nothing behind it": {"Bearer "},
	} {
		r := d.request(http.MethodPost, d.url+"/message:send", jwt, "", said("m", "", "Hi"))
		r.Header["X-A2a-User-Delegation"] = values
		d.do(r).refused(t, what, m21)
	}
	if n := d.agent.count(); n != 0 {
		t.Fatalf("the Brand's agent was called %d times", n)
	}
	if a := d.send(d.pa, "alex", tokens.JWS, said("m", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("the rightful one: %d %s", a.status, a.body)
	}
	// It is dead at once when the grant is (P33), the person suspended (P32), or its
	// time over.
	if err := d.rules.EndByUser(t.Context(), d.Hotel.ID, "guest-1", tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	d.send(d.pa, "alex", tokens.JWS, said("m2", "", "Hi")).refused(t, "revoked", m21)
	tokens = d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	if err := d.rules.Suspend(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-1"); err != nil {
		t.Fatal(err)
	}
	d.send(d.pa, "alex", tokens.JWS, said("m3", "", "Hi")).refused(t, "suspended", m21)
	if err := d.rules.Resume(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-1"); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(15*time.Minute - time.Second)
	if a := d.send(d.pa, "alex", tokens.JWS, said("m4", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("a second before its end: %d", a.status)
	}
	d.Clock.Advance(time.Second)
	d.send(d.pa, "alex", tokens.JWS, said("m5", "", "Hi")).refused(t, "over", m21)
}

// A paused Brand is 503, after who calls and before the token, which would look
// bad; nothing was lost.
func TestPausedBrand(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.State = tenants.Paused })
	d.Clock.Advance(5 * time.Second)
	d.call(http.MethodPost, "/message:send", "", tokens.JWS, said("m", "", "Hi")).refused(t, "nobody", m7)
	a := d.send(d.pa, "alex", tokens.JWS, said("m", "", "Hi"))
	a.is(t, "paused", http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
	if a.header.Get("Retry-After") != "30" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.State = tenants.Active })
	d.Clock.Advance(5 * time.Second)
	if a := d.send(d.pa, "alex", tokens.JWS, said("m", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("resumed: %d %s", a.status, a.body)
	}
}

// A Brand that is paused while its agent works loses nothing: the answer waits for
// the Brand to go on, and has its receipt then.
func TestABrandThatIsPausedInTheMiddle(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		d.Save(t, d.Hotel, func(b *tenants.Brand) { b.State = tenants.Paused })
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Room 12.","scopesUsed":["bookings:read"]}`)
	})
	for _, when := range []string{"meanwhile", "again"} {
		a := d.send(d.pa, "alex", tokens.JWS, said("m", "", "Hi"))
		a.is(t, when, http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
		if a.header.Get("Retry-After") != "30" {
			t.Errorf("%s: Retry-After %q", when, a.header.Get("Retry-After"))
		}
	}
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.State = tenants.Active })
	d.Clock.Advance(5 * time.Second)
	a := d.send(d.pa, "alex", tokens.JWS, said("m", "", "Hi"))
	if a.status != http.StatusOK || !strings.Contains(a.body, "pact.receipt") || d.agent.count() != 1 {
		t.Errorf("%d %s; the agent ran %d times", a.status, a.body, d.agent.count())
	}
}

// P42, B-rules of narrowing: what the agent may use is token ∩ living grant.
func TestScopesAreThoseThatStillHold(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read", "account:read")
	if err := d.rules.EndScopeByUser(t.Context(), d.Hotel.ID, "guest-1", tokens.GrantID, "account:read"); err != nil {
		t.Fatal(err)
	}
	d.agent.says(`{"text":"You are Alex.","scopesUsed":["account:read"]}`)
	d.send(d.pa, "alex", tokens.JWS, said("m", "", "Who am I?")).internal(t, "a scope that was taken away")
	turn, _, _ := d.agent.last()
	if diff := cmp.Diff([]string{"bookings:read"}, turn.Scopes); diff != "" {
		t.Error(diff)
	}
}

// P47: a hosted Brand's agent hears what the person allowed more exactly, of the
// scopes that it is told and of no other.
func TestTheAgentIsToldTheLimits(t *testing.T) {
	d := newDoor(t)
	d.Detailed(t, authoritytest.StayCharge())
	who := authority.Caller{Agent: d.pa.Issuer, Sub: "alex"}
	details := `[{"type":"stay_charge","amount":200,"currency":"EUR"}]`
	s, err := d.rules.BeginWith(t.Context(), d.Hotel, who, authority.Wish{Scopes: []string{"bookings:read", "extras:order"}, Details: &details})
	if err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, d.rules, d.Hotel, s, "guest-1", "bookings:read", "extras:order")
	tokens, err := d.rules.Poll(t.Context(), d.Hotel, who, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	d.agent.says(`{"text":"Welcome."}`)
	d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi"))
	turn, body, _ := d.agent.last()
	if len(turn.Details) != 1 || !strings.Contains(string(turn.Details[0]), `"amount":200`) {
		t.Errorf("%s", body)
	}
	narrow, err := d.rules.Refresh(t.Context(), d.Hotel, who, tokens.Refresh, []string{"bookings:read"})
	if err != nil {
		t.Fatal(err)
	}
	d.send(d.pa, "alex", narrow.JWS, said("m2", "", "Hi"))
	if _, body, _ := d.agent.last(); strings.Contains(string(body), "authorizationDetails") {
		t.Errorf("without their scope: %s", body)
	}
}

// M24, P43, P44: each served turn has a receipt of its own, and what is in it is
// what the agent said.
func TestReceipts(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"],"actions":[{"tool":"bookings.list","args":{"b":1,"a":2}},{"tool":"log"},{"tool":"look","args":null}]}`)
	null, err := canonical.Hash([]byte("null")) // a JSON value, and so not none
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, id := range []string{"m1", "m2", "m3"} {
		a := d.send(d.pa, "alex", tokens.JWS, said(id, "", "Hi"))
		if a.status != http.StatusOK || a.json.Message == nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		var receipt struct {
			JWS    string          `json:"jws"`
			Claims json.RawMessage `json:"claims"`
		}
		if err := json.Unmarshal(a.json.Message.Metadata["pact.receipt"], &receipt); err != nil || receipt.JWS == "" {
			t.Fatalf("%s: %v", a.body, err)
		}
		if seen[receipt.JWS] {
			t.Error("two turns share a receipt")
		}
		seen[receipt.JWS] = true
		payload, err := d.Keys.Verify(t.Context(), d.Hotel.ID, "pact-receipt+jws", receipt.JWS)
		if err != nil || string(payload) != string(receipt.Claims) {
			t.Errorf("claims %s, signed %s, %v", receipt.Claims, payload, err)
		}
		if want := `{"tool":"log"},{"argsHash":"` + null + `","tool":"look"}]`; !strings.Contains(string(payload), want) {
			t.Errorf("%s, want %s", payload, want)
		}
	}
}
