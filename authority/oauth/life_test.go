package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// held is what one agent holds for one person at one Brand.
type held struct {
	d       *door
	brand   *tenants.Brand
	pa      *agenttest.PA
	key     string
	access  string
	refresh string
	grant   uuid.UUID
}

const dead = `{"active":false}`

// delegated walks the whole way: asked, allowed in full by guest-7, paid out.
func (d *door) delegated(t *testing.T, brand *tenants.Brand, pa *agenttest.PA, scope string) *held {
	t.Helper()
	h := &held{d: d, brand: brand, pa: pa, key: d.key(t, brand, tenants.RightIntrospect)}
	h.allow(t, scope, strings.Fields(scope)...)
	return h
}

// allow asks for scope and is allowed what is ticked; h then holds what that paid.
func (h *held) allow(t *testing.T, scope string, ticked ...string) answer {
	t.Helper()
	started := h.post(t, "/device_authorization", url.Values{"scope": {scope}})
	if started.status != http.StatusOK {
		t.Fatalf("%d %s", started.status, started.body)
	}
	id, _, err := h.d.rules.Find(t.Context(), h.brand.ID, started.json["user_code"].(string), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, h.d.rules, h.brand, authority.Started{ID: id}, "guest-7", ticked...)
	a := h.post(t, "/token", url.Values{"grant_type": {deviceGrant}, "device_code": {started.json["device_code"].(string)}})
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	h.take(t, a)
	return a
}

func (h *held) take(t *testing.T, a answer) {
	t.Helper()
	h.access, h.refresh = a.json["access_token"].(string), a.json["refresh_token"].(string)
	worth := h.worth(t)
	grant, _ := worth.json["grant_id"].(string)
	h.grant = uuid.MustParse(grant)
}

// post sends the form as the agent, who speaks for alex.
func (h *held) post(t *testing.T, route string, form url.Values) answer {
	t.Helper()
	form.Set("client_id", h.pa.Issuer)
	return h.d.post(t, h.d.issuer(h.brand)+route, h.pa, "alex", form)
}

func (h *held) renew(t *testing.T, token string, extra ...string) answer {
	t.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
	for i := 0; i+1 < len(extra); i += 2 {
		form.Set(extra[i], extra[i+1])
	}
	return h.post(t, "/token", form)
}

// worth asks as the Brand what the access token is worth.
func (h *held) worth(t *testing.T) answer {
	t.Helper()
	return h.d.introspect(t, h.brand, h.key, h.access)
}

// lives checks both tokens, and goes on with the successor.
func (h *held) lives(t *testing.T, what string) {
	t.Helper()
	if a := h.worth(t); a.json["active"] != true {
		t.Errorf("%s: the access token died", what)
	}
	a := h.renew(t, h.refresh)
	if a.status != http.StatusOK {
		t.Fatalf("%s: the refresh token died: %s", what, a.body)
	}
	h.take(t, a)
}

// isDead checks both tokens.
func (h *held) isDead(t *testing.T, what string) {
	t.Helper()
	if a := h.worth(t); a.body != dead {
		t.Errorf("%s: the access token lives: %s", what, a.body)
	}
	if a := h.renew(t, h.refresh); a.status != http.StatusBadRequest || a.error() != "invalid_grant" {
		t.Errorf("%s: the refresh token lives: %d %s", what, a.status, a.body)
	}
}

// P30, M16: a refresh answers as the first payment did, with another token; a
// spent one that comes back late gets the very bytes of an unknown one, and what
// its grant paid, the newest too, is dead.
func TestReuseEndsTheNewestTokensToo(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read account:read")
	first := h.refresh
	a := h.renew(t, first)
	want := map[string]any{
		"access_token": a.json["access_token"], "refresh_token": a.json["refresh_token"],
		"token_type": "Bearer", "expires_in": 900.0, "scope": "bookings:read account:read",
		"grant_id": h.grant.String(),
	}
	if diff := cmp.Diff(want, a.json); diff != "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatal(a.status, diff)
	}
	h.take(t, a)
	if h.refresh == first {
		t.Fatal("nothing was rotated")
	}
	d.Clock.Advance(d.Hotel.Grace + time.Second)
	unknown := h.renew(t, "rt_unknown")
	if reuse := h.renew(t, first); reuse.status != unknown.status || reuse.body != unknown.body || reuse.error() != "invalid_grant" {
		t.Errorf("reuse %d %s, unknown %d %s", reuse.status, reuse.body, unknown.status, unknown.body)
	}
	h.isDead(t, "after reuse")
}

// P31, M16: with somebody else's refresh token, fresh or spent, there is nothing to
// learn and nothing to break: the bytes are those of an unknown one.
func TestAStrangerLearnsAndBreaksNothing(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
	spent := h.refresh
	h.take(t, h.renew(t, spent))
	d.Clock.Advance(time.Hour)
	const state = `SELECT count(*) FILTER (WHERE used_at IS NULL) * 1000 + count(*) FROM refresh_tokens`
	before := d.Count(t, state)
	unknown := h.renew(t, "rt_unknown")
	for what, token := range map[string]string{"fresh": h.refresh, "spent": spent} {
		for who, a := range map[string]answer{
			"another agent": d.refresh(t, d.other, "alex", token),
			"another sub":   d.refresh(t, d.pa, "sam", token),
			"another Brand": (&held{d: d, brand: d.Shop, pa: d.pa}).renew(t, token),
		} {
			if a.status != unknown.status || a.body != unknown.body {
				t.Errorf("%s, %s: %d %s", who, what, a.status, a.body)
			}
		}
	}
	if after := d.Count(t, state); after != before {
		t.Errorf("something was spent: %d, then %d", before, after)
	}
	if a := h.renew(t, h.refresh); a.status != http.StatusOK {
		t.Errorf("the rightful caller: %d %s", a.status, a.body)
	}
}

// B31, R48: what scope= does at a refresh, to the byte.
func TestScopeAtRefresh(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read bookings:change account:read")
	all := "bookings:read bookings:change account:read"
	for _, tt := range []struct{ name, scope, want string }{
		{"a subset", "account:read", "account:read"},
		{"in another order", "account:read bookings:read", "account:read bookings:read"},
		{"duplicates", "bookings:change bookings:change", "bookings:change"},
		{"empty", "", all},
		{"blank", " ", all},
		{"a superset", all + " extras:order", ""},
		{"not granted", "extras:order", ""},
		{"unknown", "nonsense", ""},
		{"another Brand's", "orders:read", ""},
	} {
		a := h.renew(t, h.refresh, "scope", tt.scope)
		if tt.want == "" {
			if a.status != http.StatusBadRequest || a.error() != "invalid_scope" {
				t.Errorf("%s: %d %s", tt.name, a.status, a.body)
			}
			continue // and nothing was spent
		}
		if a.status != http.StatusOK || a.json["scope"] != tt.want {
			t.Fatalf("%s: %d %s", tt.name, a.status, a.body)
		}
		h.take(t, a)
		if worth := h.worth(t); worth.json["scope"] != tt.want {
			t.Errorf("%s: worth %s", tt.name, worth.body)
		}
	}
	if a := h.renew(t, h.refresh); a.json["scope"] != all {
		t.Fatalf("narrowing outlived its token: %s", a.body)
	} else {
		h.take(t, a)
	}
	if err := d.rules.EndScopeByUser(t.Context(), d.Hotel.ID, "guest-7", h.grant, "bookings:change"); err != nil {
		t.Fatal(err)
	}
	if a := h.renew(t, h.refresh, "scope", "bookings:change"); a.error() != "invalid_scope" {
		t.Errorf("withdrawn by the person, asked for: %s", a.body)
	}
	a := h.renew(t, h.refresh)
	if a.json["scope"] != "bookings:read account:read" {
		t.Errorf("withdrawn by the person: %s", a.body)
	}
	h.take(t, a)
	d.Exec(t, `UPDATE brand_scopes SET retired_at = now() WHERE id = 'account:read'`)
	if a := h.renew(t, h.refresh); a.json["scope"] != "bookings:read" {
		t.Errorf("withdrawn by the Brand: %s", a.body)
	}
}

// B29: of three grants with six tokens, exactly what was named ends.
func TestExactlyTheNamedThingEnds(t *testing.T) {
	d := newDoor(t, nil)
	one := d.delegated(t, d.Hotel, d.pa, "bookings:read")
	two := d.delegated(t, d.Hotel, d.other, "bookings:read")
	three := d.delegated(t, d.Shop, d.pa, "bookings:read")

	if a := two.post(t, "/revoke", url.Values{"token": {two.refresh}}); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
	two.isDead(t, "its refresh token revoked")
	one.lives(t, "another agent's token revoked")
	three.lives(t, "another agent's token revoked")

	two.allow(t, "bookings:read", "bookings:read")
	if err := d.rules.EndByUser(t.Context(), d.Hotel.ID, "guest-7", two.grant); err != nil {
		t.Fatal(err)
	}
	two.isDead(t, "ended")
	one.lives(t, "another grant ended")
	three.lives(t, "another grant ended")

	two.allow(t, "bookings:read", "bookings:read")
	n, err := d.rules.End(t.Context(), d.Hotel.ID, authority.ByUser("guest-7"), authority.Which{Agent: d.pa.Issuer, Subject: "guest-7"})
	if err != nil || n != 1 {
		t.Fatalf("%d ended, %v", n, err)
	}
	one.isDead(t, "its agent ended everywhere at the Brand")
	two.lives(t, "another agent ended")
	three.lives(t, "its agent ended at another Brand")
}

// B32: one registry of families behind every path that mints. A token that was
// spent at a refresh is spent after a step-up and after a consent that was
// skipped; its replay ends what those paid as well, and no code pays twice.
func TestEveryPathKnowsWhatWasSpent(t *testing.T) {
	for _, path := range []string{"refresh", "widening", "skipped consent"} {
		t.Run(path, func(t *testing.T) {
			d := newDoor(t, nil)
			d.Hotel = d.Save(t, d.Hotel, func(b *tenants.Brand) { b.SkipConsent = true })
			h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
			spent := h.refresh
			h.take(t, h.renew(t, spent))
			old := *h
			switch path {
			case "widening":
				h.allow(t, "account:read", "bookings:read", "account:read")
			case "skipped consent":
				started := d.start(t, "bookings:read")
				id, _, err := d.rules.Find(t.Context(), d.Hotel.ID, started["user_code"].(string), authority.Visitor{})
				if err != nil {
					t.Fatal(err)
				}
				q, err := d.rules.Ask(t.Context(), d.Hotel.ID, id, "guest-7")
				if err != nil {
					t.Fatal(err)
				}
				if err := d.rules.Proceed(t.Context(), d.Hotel, authoritytest.Answer(d.Hotel, q, "guest-7")); err != nil {
					t.Fatal(err)
				}
				h.take(t, d.poll(t, started["device_code"]))
				if a := d.poll(t, started["device_code"]); a.error() != "invalid_grant" {
					t.Errorf("a code paid twice: %s", a.body)
				}
			}
			if h.grant != old.grant {
				t.Fatal("a second grant")
			}
			if a := h.renew(t, spent); path == "refresh" && a.json["refresh_token"] != old.refresh {
				t.Errorf("inside the window: %s", a.body)
			}
			d.Clock.Advance(d.Hotel.Grace + time.Second)
			if a := h.renew(t, spent); a.error() != "invalid_grant" {
				t.Errorf("the spent token: %d %s", a.status, a.body)
			}
			h.isDead(t, "the newest tokens")
			old.isDead(t, "the older family's tokens")
		})
	}
}

// B33: a step-up while the old token lives. Both families then carry the union,
// each reply says exactly what it pays, the old access token neither gains nor
// loses, and two step-ups at once leave one grant.
func TestStepUpMergesIntoOneGrant(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
	old := *h
	if a := h.allow(t, "extras:order", "bookings:read", "extras:order"); a.json["scope"] != "extras:order bookings:read" {
		t.Errorf("paid %s", a.body)
	}
	if h.grant != old.grant || h.refresh == old.refresh {
		t.Error("not the same grant, or the same family")
	}
	for range 2 { // in turn
		if a := old.worth(t); a.json["scope"] != "bookings:read" {
			t.Errorf("the old access token: %s", a.body)
		}
		if a := h.worth(t); a.json["scope"] != "extras:order bookings:read" {
			t.Errorf("the new access token: %s", a.body)
		}
	}
	a := old.renew(t, old.refresh)
	if a.json["scope"] != "bookings:read extras:order" {
		t.Errorf("the old family: %s", a.body)
	}
	old.take(t, a)
	h.lives(t, "after the old family's refresh")

	started := []map[string]any{d.start(t, "account:read"), d.start(t, "bookings:change")}
	var both sync.WaitGroup
	for i, add := range []string{"account:read", "bookings:change"} {
		id, _, err := d.rules.Find(t.Context(), d.Hotel.ID, started[i]["user_code"].(string), authority.Visitor{})
		if err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			for range 3 { // who saw the grant before the other changed it, looks again
				err := authoritytest.TryApprove(t.Context(), d.rules, d.Hotel, authority.Started{ID: id}, "guest-7",
					"bookings:read", "extras:order", "account:read", "bookings:change")
				if err == nil {
					return
				}
				t.Logf("%s: %v", add, err)
			}
			t.Errorf("%s was never allowed", add)
		})
	}
	both.Wait()
	all := "bookings:read bookings:change extras:order account:read"
	for i := range started {
		if a := d.poll(t, started[i]["device_code"]); a.status != http.StatusOK || len(strings.Fields(a.json["scope"].(string))) < 3 {
			t.Errorf("step-up %d: %d %s", i, a.status, a.body)
		}
	}
	if a := old.renew(t, old.refresh); a.json["scope"] != all {
		t.Errorf("after both: %s", a.body)
	}
	if got, err := d.rules.Grants(t.Context(), d.Hotel.ID, "guest-7"); err != nil || len(got) != 1 || got[0].ID != h.grant {
		t.Errorf("the person sees %+v, %v", got, err)
	}
}

// P33, B34: what the person ends is dead at once and stays so, the trail says who
// it was, the list is empty, another account cannot, and to end all counts.
func TestWhatThePersonEndsIsDeadAtOnce(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
	for _, stranger := range []string{"guest-8", ""} {
		if err := d.rules.EndByUser(t.Context(), d.Hotel.ID, stranger, h.grant); err == nil {
			t.Errorf("%q ended it", stranger)
		}
	}
	h.lives(t, "a stranger tried")
	if err := d.rules.EndByUser(t.Context(), d.Hotel.ID, "guest-7", h.grant); err != nil {
		t.Fatal(err)
	}
	for _, later := range []time.Duration{0, time.Second, 4 * time.Second, 55 * time.Second} {
		d.Clock.Advance(later)
		h.isDead(t, "ended, "+later.String()+" more")
	}
	const who = `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked' AND actor = 'user' AND actor_id = 'guest-7' AND channel = 'page' AND grant_id = $1`
	if n := d.Count(t, who, h.grant); n != 1 {
		t.Errorf("%d lines of the trail say who ended it", n)
	}
	if got, err := d.rules.Grants(t.Context(), d.Hotel.ID, "guest-7"); err != nil || len(got) != 0 {
		t.Errorf("the list still has %+v, %v", got, err)
	}

	// P34: allowed again, it is another grant with only what was allowed now.
	gone := h.grant
	h.allow(t, "account:read", "account:read", "bookings:read")
	if a := h.worth(t); h.grant == gone || a.json["scope"] != "account:read" {
		t.Errorf("grant %s after %s, worth %s", h.grant, gone, a.body)
	}
	d.delegated(t, d.Hotel, d.other, "bookings:read")
	for _, want := range []int{2, 0} {
		n, err := d.rules.End(t.Context(), d.Hotel.ID, authority.ByUser("guest-7"), authority.Which{Subject: "guest-7"})
		if err != nil || n != want {
			t.Errorf("%d ended, not %d: %v", n, want, err)
		}
	}
	h.isDead(t, "everything ended")
}

// P32, M14: a suspended account's tokens are worth nothing, and the very same
// refresh token works when it is back.
func TestASuspendedAccountKeepsItsTokens(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
	if err := d.rules.Suspend(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	h.isDead(t, "suspended")
	if err := d.rules.Resume(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	h.lives(t, "resumed")
}

// P41, P42: only what this Brand signed, for itself, about a living grant of that
// very agent and person, and not in the future, is worth anything.
func TestNothingElseIsActive(t *testing.T) {
	d := newDoor(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read bookings:change")
	shop := d.delegated(t, d.Shop, d.pa, "bookings:read")
	payload, err := d.Keys.Verify(t.Context(), d.Hotel.ID, signing.TypToken, h.access)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(by *tenants.Brand, typ string, change map[string]any) string {
		t.Helper()
		claims := make(map[string]any)
		if err := json.Unmarshal(payload, &claims); err != nil {
			t.Fatal(err)
		}
		for name, value := range change {
			claims[name] = value
		}
		altered, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		jws, err := d.Keys.Sign(t.Context(), by.ID, typ, altered)
		if err != nil {
			t.Fatal(err)
		}
		return jws
	}
	now := d.Clock.Now()
	if a := d.introspect(t, d.Hotel, h.key, signed(d.Hotel, signing.TypToken, nil)); a.json["active"] != true {
		t.Fatalf("the test's own signature: %s", a.body)
	}
	for what, token := range map[string]string{
		"foreign-signed":   signed(d.Shop, signing.TypToken, nil),
		"a pa-jwt":         d.pa.Token(t, agenttest.Claims{Sub: "alex"}),
		"another Brand's":  shop.access,
		"for another one":  signed(d.Hotel, signing.TypToken, map[string]any{"aud": d.Shop.InterfaceURL}),
		"of another one":   signed(d.Hotel, signing.TypToken, map[string]any{"iss": d.Shop.Issuer}),
		"wrong client_id":  signed(d.Hotel, signing.TypToken, map[string]any{"client_id": d.other.Issuer}),
		"wrong sub":        signed(d.Hotel, signing.TypToken, map[string]any{"sub": "guest-8"}),
		"wrong grant":      signed(d.Hotel, signing.TypToken, map[string]any{"grant_id": shop.grant.String()}),
		"no grant":         signed(d.Hotel, signing.TypToken, map[string]any{"grant_id": ""}),
		"future iat":       signed(d.Hotel, signing.TypToken, map[string]any{"iat": now.Add(31 * time.Second).Unix()}),
		"expired":          signed(d.Hotel, signing.TypToken, map[string]any{"exp": now.Unix()}),
		"another kind":     signed(d.Hotel, signing.TypReceipt, nil),
		"no scope":         signed(d.Hotel, signing.TypToken, map[string]any{"scope": ""}),
		"scopes not held":  signed(d.Hotel, signing.TypToken, map[string]any{"scope": "extras:order"}),
		"not a jwt":        "not-a-jwt",
		"a refresh token":  h.refresh,
		"tampered payload": strings.Replace(h.access, ".", ".e30", 1),
	} {
		if a := d.introspect(t, d.Hotel, h.key, token); a.status != http.StatusOK || a.body != dead {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a := d.introspect(t, d.Hotel, h.key, ""); a.status != http.StatusBadRequest || a.error() != "invalid_request" {
		t.Errorf("empty: %d %s", a.status, a.body)
	}
	// P42: more than the grant holds is cut down to it.
	wide := signed(d.Hotel, signing.TypToken, map[string]any{"scope": "extras:order bookings:change"})
	if a := d.introspect(t, d.Hotel, h.key, wide); a.json["scope"] != "bookings:change" {
		t.Errorf("a wider token: %s", a.body)
	}
}
