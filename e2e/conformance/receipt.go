package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	milliseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$`)
	hashed       = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
)

// receipt is what a turn's metadata holds.
type receipt struct {
	JWS    string          `json:"jws"`
	Claims json.RawMessage `json:"claims"`
}

type receiptClaims struct {
	GrantID    string   `json:"grantId"`
	User       string   `json:"user"`
	PA         string   `json:"pa"`
	Brand      string   `json:"brand"`
	ScopesUsed []string `json:"scopesUsed"`
	Actions    []struct {
		Tool     string  `json:"tool"`
		ArgsHash *string `json:"argsHash"`
	} `json:"actions"`
	TS string `json:"ts"`
}

func receiptChecks() []check {
	return []check{
		{"M24", "a turn under a token carries a receipt that says exactly what it must", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			r := u.says(say{Delegation: p.AccessToken}).replies(t, "a turn")
			t.holds(t.receiptOf(r), p)
		}},
		{"M24", "a turn that used a scope says which, and what was done", func(t *trial) {
			t.talks()
			scope, text, _ := t.needing()
			u := t.user()
			p := u.granted(0, scope)
			c := t.holds(t.receiptOf(u.says(say{Text: text, Delegation: p.AccessToken}).replies(t, "a turn that needs "+scope)), p)
			if !slices.Contains(c.ScopesUsed, scope) {
				t.fail("scopesUsed is %q, without %s", c.ScopesUsed, scope)
			}
		}},
		{"M24", "two turns never share a JWS, the same message does", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			first := u.says(say{Delegation: p.AccessToken}).replies(t, "the first turn")
			same := say{Context: first.context(), ID: newSub(), Delegation: p.AccessToken}
			a, b := t.receiptOf(u.says(same).replies(t, "a turn")), t.receiptOf(u.says(same).replies(t, "the same turn"))
			other := t.receiptOf(u.says(say{Context: first.context(), Delegation: p.AccessToken}).replies(t, "another turn"))
			if a.JWS != b.JWS {
				t.fail("the same message got two receipts")
			}
			if a.JWS == other.JWS || a.JWS == t.receiptOf(first).JWS {
				t.fail("two turns share a receipt")
			}
		}},
		{"M24", "no delegation, no receipt", func(t *trial) {
			t.talks()
			r := t.user().says(say{}).replies(t, "a turn without a token")
			if bytes.Contains(r.raw.body, []byte("pact.receipt")) {
				t.fail("a turn without a token has a receipt")
			}
		}},
		{"M24", "the Brand has a turn countersigned: once, and with other content 409", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			turn := object{
				"delegation_token": p.AccessToken, "agent": u.pa.Issuer, "contextId": newSub(), "messageId": newSub(),
				"scopesUsed": t.scopes(1), "actions": []object{{"tool": "probe", "args": object{"b": 1.0, "a": "é\n"}}},
			}
			got := func(a answer, what string) receipt {
				a.is(t, what, http.StatusOK)
				var r receipt
				a.json(t, &r)
				return r
			}
			first := got(t.countersign(turn), "a turn")
			c := t.holds(first, p)
			sum := sha256.Sum256([]byte(`{"a":"é\n","b":1}`)) // RFC 8785
			if len(c.Actions) != 1 || c.Actions[0].ArgsHash == nil || *c.Actions[0].ArgsHash != base64url(sum[:]) {
				t.fail("argsHash is not the SHA-256 of the arguments' canonical JSON")
			}
			if again := got(t.countersign(turn), "the same turn"); again.JWS != first.JWS {
				t.fail("the same turn got another receipt")
			}
			other := got(t.countersign(turn.with(object{"messageId": newSub()})), "another turn")
			if other.JWS == first.JWS {
				t.fail("two turns share a receipt")
			}
			t.countersign(turn.with(object{"actions": []object{{"tool": "other"}}})).is(t, "other content", http.StatusConflict)
		}},
		{"M24", "no receipt beyond the token", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			turn := func(changes object) object {
				return object{
					"delegation_token": p.AccessToken, "agent": u.pa.Issuer, "contextId": newSub(), "messageId": newSub(),
					"scopesUsed": t.scopes(1), "actions": []object{},
				}.with(changes)
			}
			t.countersign(turn(nil)).is(t, "a good turn", http.StatusOK)
			t.countersign(turn(object{"scopesUsed": t.scopes(2)})).refuses(t, "a scope beyond the token", bad, "invalid_scope")
			t.countersign(turn(object{"delegation_token": flip(p.AccessToken)})).refuses(t, "a tampered token", bad, "invalid_token")
			t.countersign(turn(object{"delegation_token": p.claim("grant_id")})).refuses(t, "a bare grant id", bad, "invalid_token")
		}},
		{"M18", "no receipt for a token that another agent shows", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			turn := object{
				"delegation_token": p.AccessToken, "agent": u.pa.Issuer, "contextId": newSub(), "messageId": newSub(),
				"scopesUsed": []string{}, "actions": []object{},
			}
			t.countersign(turn).is(t, "the rightful agent's turn", http.StatusOK)
			t.countersign(turn.with(object{"agent": "https://nobody.invalid", "messageId": newSub()})).
				refuses(t, "another agent's", bad, "invalid_token")
		}},
		{"M24", "a receipt is no token, and a token no receipt", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			r := t.receiptOf(u.says(say{Delegation: p.AccessToken}).replies(t, "a turn"))
			u.says(say{Delegation: r.JWS}).bare401(t, "a receipt for a delegation token", badToken)
		}},
	}
}

// countersign is a Brand's own call.
func (t *trial) countersign(turn object) answer { return t.asBrand("receipts", turn) }

func (t *trial) receiptOf(r reply) receipt {
	var metadata map[string]json.RawMessage
	switch {
	case r.Message != nil:
		metadata = r.Message.Metadata
	case r.Task != nil:
		metadata = r.Task.Metadata
	}
	raw, there := metadata["pact.receipt"]
	if !there {
		t.fail("a turn under a token has no pact.receipt")
	}
	var members map[string]json.RawMessage
	var got receipt
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(raw, &got) != nil || len(members) != 2 || got.JWS == "" || len(got.Claims) == 0 {
		t.fail("pact.receipt is not {jws, claims}")
	}
	return got
}

// holds demands that a receipt keeps M24.
func (t *trial) holds(r receipt, p paid) receiptClaims {
	u, err := unseal(r.JWS)
	if err != nil {
		t.fail("the receipt is no JWS: %v", err)
	}
	if u.header["typ"] != "pact-receipt+jws" {
		t.fail("the receipt's typ is %v", u.header["typ"])
	}
	if err := u.verify(t.get(t.brand.oauth.JWKSURI).body); err != nil {
		t.fail("the receipt's signature: %v", err)
	}
	if canonical(u.payload) != canonical(r.Claims) {
		t.fail("the signed payload is not what claims says")
	}
	const seven = "actions brand grantId pa scopesUsed ts user"
	if got := strings.Join(slices.Sorted(maps.Keys(u.claims)), " "); got != seven {
		t.fail("the claims are %q, not exactly %q", got, seven)
	}
	var c receiptClaims
	if err := json.Unmarshal(u.payload, &c); err != nil {
		t.fail("the claims: %v", err)
	}
	for what, pair := range map[string][2]string{
		"grantId": {c.GrantID, p.claim("grant_id")}, "user": {c.User, p.claim("sub")},
		"pa": {c.PA, p.by.pa.Issuer}, "brand": {c.Brand, t.brand.at},
	} {
		if pair[0] != pair[1] {
			t.fail("%s is %q, not %q", what, pair[0], pair[1])
		}
	}
	ts, err := time.Parse(time.RFC3339, c.TS)
	switch {
	case !milliseconds.MatchString(c.TS) || err != nil:
		t.fail("ts is %q, not RFC 3339 with milliseconds and an offset", c.TS)
	case time.Since(ts).Abs() > 5*time.Minute:
		t.fail("ts is not within five minutes of now")
	case c.ScopesUsed == nil || c.Actions == nil:
		t.fail("scopesUsed or actions is null")
	}
	for _, s := range c.ScopesUsed {
		if !slices.Contains(strings.Fields(p.Scope), s) {
			t.fail("scopesUsed names %s, which the token does not hold", s)
		}
	}
	for _, a := range c.Actions {
		if a.Tool == "" || a.ArgsHash != nil && !hashed.MatchString(*a.ArgsHash) {
			t.fail("an action without a tool, or with a hash that is none")
		}
	}
	return c
}

// canonical writes JSON with its members in one order.
func canonical(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "not JSON: " + string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
