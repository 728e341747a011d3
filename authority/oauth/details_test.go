package oauth_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

const charge = `{"type":"stay_charge","amount":200,"currency":"EUR"}`

// asked begins at the Hotel with authorization_details.
func (d *door) asked(t *testing.T, scope string, details ...string) answer {
	t.Helper()
	form := url.Values{"client_id": {d.pa.Issuer}, "scope": {scope}}
	if details != nil {
		form["authorization_details"] = details
	}
	return d.post(t, d.issuer(d.Hotel)+"/device_authorization", d.pa, "alex", form)
}

// claim is what the access token says of the member.
func claim(t *testing.T, token, member string) any {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims[member]
}

func parsed(t *testing.T, raw string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// P47, R39: authorization_details is an array of objects of the Brand's types,
// exactly as their schemas have them and beside their scopes. Everything else is one
// and the same error, which repeats nothing that was sent, and stores nothing.
func TestUnknownDetailsAreRefused(t *testing.T) {
	d := newDoor(t, nil)
	if a := d.asked(t, "extras:order", "["+charge+"]"); a.error() != "invalid_authorization_details" || !strings.Contains(a.body, "This issuer has no") {
		t.Errorf("a Brand without types: %d %s", a.status, a.body)
	}
	d.Detailed(t, authoritytest.StayCharge())
	d.Clock.Advance(2 * time.Second) // until the settings are read again
	const marker = "zq9x"
	for name, tt := range map[string]struct{ scope, details string }{
		"empty":                     {"extras:order", ``},
		"an empty array":            {"extras:order", `[]`},
		"null":                      {"extras:order", `null`},
		"bad JSON":                  {"extras:order", `[{"type":"` + marker},
		"an object":                 {"extras:order", charge},
		"a string":                  {"extras:order", `"` + marker + `"`},
		"two values":                {"extras:order", `[` + charge + `] []`},
		"null inside":               {"extras:order", `[null]`},
		"no type":                   {"extras:order", `[{"amount":200,"currency":"EUR"}]`},
		"a type that is no string":  {"extras:order", `[{"type":1,"amount":200,"currency":"EUR"}]`},
		"an unknown type":           {"extras:order", `[{"type":"` + marker + `"}]`},
		"a type in another case":    {"extras:order", `[{"type":"Stay_Charge","amount":200,"currency":"EUR"}]`},
		"an unknown member":         {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","` + marker + `":1}]`},
		"a member in another case":  {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","Amount":1}]`},
		"a member twice":            {"extras:order", `[{"type":"stay_charge","amount":200,"amount":300,"currency":"EUR"}]`},
		"a member missing":          {"extras:order", `[{"type":"stay_charge","amount":200}]`},
		"a value that does not fit": {"extras:order", `[{"type":"stay_charge","amount":-1,"currency":"EUR"}]`},
		"a pattern broken":          {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"` + marker + `"}]`},
		"a number as a string":      {"extras:order", `[{"type":"stay_charge","amount":"200","currency":"EUR"}]`},
		"an object for a string":    {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","shop":{"` + marker + `":1}}]`},
		"one good, one bad":         {"extras:order", `[` + charge + `,{"type":"` + marker + `"}]`},
		"without its scope":         {"bookings:read", `[` + charge + `]`},
		"a huge number":             {"extras:order", `[{"type":"stay_charge","amount":1e999999999,"currency":"EUR"}]`},
		"a number with a power":     {"extras:order", `[{"type":"stay_charge","amount":1e-9,"currency":"EUR"}]`},
		"a bidi mark":               {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","shop":"\u202e` + marker + `"}]`},
		"a line break":              {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","shop":"a\n` + marker + `"}]`},
		"a zero byte":               {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","shop":"\u0000"}]`},
		"half a pair":               {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","shop":"\ud83d"}]`},
		"a text without end":        {"extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR","shop":"` + strings.Repeat("x", 201) + `"}]`},
		"eleven":                    {"extras:order", `[` + strings.Repeat(charge+",", 10) + charge + `]`},
		"larger than 4 KiB":         {"extras:order", `[` + charge + strings.Repeat(" ", 4<<10) + `]`},
		"nested without end":        {"extras:order", strings.Repeat("[", 900) + strings.Repeat("]", 900)},
	} {
		a := d.asked(t, tt.scope, tt.details)
		description, _ := a.json["error_description"].(string)
		if a.status != http.StatusBadRequest || a.error() != "invalid_authorization_details" || description == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if strings.Contains(a.body, marker) || len(a.body) > 300 {
			t.Errorf("%s: it repeats what was sent: %s", name, a.body)
		}
	}
	// What was wrong before still comes first.
	if a := d.asked(t, "nothing:here", "[]"); a.error() != "invalid_scope" {
		t.Errorf("scope and details: %s", a.body)
	}
	if a := d.asked(t, "extras:order", "["+charge+"]", "["+charge+"]"); a.error() != "invalid_request" {
		t.Errorf("twice: %s", a.body)
	}
	// R6: the same at the other Brand, which has no types.
	other := d.post(t, d.issuer(d.Shop)+"/device_authorization", d.pa, "alex", url.Values{
		"client_id": {d.pa.Issuer}, "scope": {"orders:read"}, "authorization_details": {"[" + charge + "]"},
	})
	if other.error() != "invalid_authorization_details" {
		t.Errorf("the other Brand: %s", other.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM device_requests`); n != 0 {
		t.Errorf("%d requests are stored", n)
	}
}

// P47: what was allowed stands in the answer, the token, at introspection and for
// the agent's own query; it is kept on refresh, goes with its scope where a token is
// narrowed, and the kit reads it.
func TestDetailsTravelWithTheToken(t *testing.T) {
	d := newDoor(t, nil)
	d.Detailed(t, authoritytest.StayCharge())
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	started := d.asked(t, "bookings:read extras:order", "["+charge+`,{"currency":"USD","shop":"bar & grill","type":"stay_charge","amount":20.50}]`)
	if started.status != http.StatusOK {
		t.Fatal(started.body)
	}
	d.approve(t, started.json, "bookings:read", "extras:order")
	want := parsed(t, "["+charge+`,{"type":"stay_charge","amount":20.5,"currency":"USD","shop":"bar & grill"}]`)
	check := func(what string, a answer) {
		t.Helper()
		if a.status != http.StatusOK {
			t.Fatalf("%s: %s", what, a.body)
		}
		token := a.json["access_token"].(string)
		for where, got := range map[string]any{
			"answer": a.json["authorization_details"], "token": claim(t, token, "authorization_details"),
			"introspection": d.introspect(t, d.Hotel, key, token).json["authorization_details"],
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", what, where, diff)
			}
		}
	}
	paid := d.poll(t, started.json["device_code"])
	check("paid out", paid)
	again := d.refresh(t, d.pa, "alex", paid.json["refresh_token"])
	check("refreshed", again)

	jwks := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/jwks.json", "", ""))
	keys, err := verify.ParseKeys([]byte(jwks.body))
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := verify.Token(keys, again.json["access_token"].(string), verify.Options{
		Issuer: d.Hotel.Issuer, Audience: d.Hotel.InterfaceURL, Agent: d.pa.Issuer, Now: d.Clock.Now(),
	})
	if err != nil || len(read.Details) != 2 {
		t.Errorf("the kit reads %s, %v", read.Details, err)
	}

	view := d.post(t, d.issuer(d.Hotel)+"/token", d.pa, "alex", url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {again.json["refresh_token"].(string)}, "client_id": {d.pa.Issuer}, "scope": {"bookings:read"},
	})
	if view.json["scope"] != "bookings:read" || view.json["authorization_details"] != nil || claim(t, view.json["access_token"].(string), "authorization_details") != nil {
		t.Errorf("narrowed to another scope: %s", view.body)
	}
	var grant string
	if err := d.Owner.QueryRow(t.Context(), `SELECT id::text FROM grants`).Scan(&grant); err != nil {
		t.Fatal(err)
	}
	query := request(t, http.MethodGet, d.issuer(d.Hotel)+"/grants/"+grant, d.pa.Token(t, agenttest.Claims{Sub: "alex"}), "")
	if diff := cmp.Diff(want, do(t, query).json["authorization_details"]); diff != "" {
		t.Errorf("the agent's own query: %s", diff)
	}
	meta := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/.well-known/oauth-authorization-server", "", ""))
	if diff := cmp.Diff([]any{"stay_charge"}, meta.json["authorization_details_types_supported"]); diff != "" {
		t.Error(diff)
	}
	meta = do(t, request(t, http.MethodGet, d.issuer(d.Shop)+"/.well-known/oauth-authorization-server", "", ""))
	if _, there := meta.json["authorization_details_types_supported"]; there {
		t.Error("a Brand without types names some")
	}
}

// P47: a scope that is unticked, ended by itself, or off the card takes its details
// along; other scopes live on.
func TestDetailsGoWithTheirScope(t *testing.T) {
	d := newDoor(t, nil)
	d.Detailed(t, authoritytest.StayCharge())
	pay := func(ticked ...string) answer {
		t.Helper()
		started := d.asked(t, "bookings:read extras:order", "["+charge+"]")
		d.approve(t, started.json, ticked...)
		a := d.poll(t, started.json["device_code"])
		if a.status != http.StatusOK {
			t.Fatal(a.body)
		}
		return a
	}
	none := func(what string, a answer) {
		t.Helper()
		if _, there := a.json["authorization_details"]; there || claim(t, a.json["access_token"].(string), "authorization_details") != nil || a.json["scope"] != "bookings:read" {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	none("never ticked", pay("bookings:read"))
	held := pay("bookings:read", "extras:order")
	if held.json["authorization_details"] == nil {
		t.Fatal(held.body)
	}
	none("unticked", pay("bookings:read"))
	if n := d.Count(t, `SELECT count(*) FROM grants WHERE details <> '[]'`); n != 0 {
		t.Error("the grant remembers it")
	}
	held = pay("bookings:read", "extras:order")
	var grant [16]byte
	if err := d.Owner.QueryRow(t.Context(), `SELECT id FROM grants`).Scan(&grant); err != nil {
		t.Fatal(err)
	}
	if err := d.rules.EndScopeByUser(t.Context(), d.Hotel.ID, "guest-7", grant, "extras:order"); err != nil {
		t.Fatal(err)
	}
	if n := d.Count(t, `SELECT count(*) FROM grants WHERE details <> '[]'`); n != 0 {
		t.Error("the grant remembers what was ended by itself")
	}
	none("ended by itself", d.refresh(t, d.pa, "alex", held.json["refresh_token"]))
	held = pay("bookings:read", "extras:order")
	if err := tenants.RetireScope(t.Context(), d.rules.Editor(authority.ByOperator()), d.Hotel.ID, "extras:order"); err != nil {
		t.Fatal(err)
	}
	none("off the card", d.refresh(t, d.pa, "alex", held.json["refresh_token"]))
	d.Clock.Advance(2 * time.Second)
	if a := d.asked(t, "bookings:read", "["+charge+"]"); a.error() != "invalid_authorization_details" {
		t.Errorf("a type of a scope off the card: %s", a.body)
	}
}

// P47: a grant of scopes alone is what it was: neither token nor answer has a member
// for details, whatever types the Brand has.
func TestScopeOnlyGrantsAreUnchanged(t *testing.T) {
	d := newDoor(t, nil)
	members := func() (answer, token []string) {
		started := d.start(t, "bookings:read extras:order")
		d.approve(t, started, "bookings:read", "extras:order")
		a := d.poll(t, started["device_code"])
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(a.json["access_token"].(string), ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		return names(t, a.body), names(t, string(payload))
	}
	answer, token := members()
	d.Detailed(t, authoritytest.StayCharge())
	d.Clock.Advance(2 * time.Second)
	answerNow, tokenNow := members()
	if diff := cmp.Diff([][]string{answer, token}, [][]string{answerNow, tokenNow}); diff != "" {
		t.Error(diff)
	}
	want := []string{"iss", "aud", "sub", "client_id", "scope", "grant_id", "iat", "exp", "jti", "status"}
	if diff := cmp.Diff(want, token); diff != "" {
		t.Error(diff)
	}
}

// names are an object's members, in the order written.
func names(t *testing.T, raw string) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(raw))
	var out []string
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, name.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// However much was allowed, a token stays as small as whoever verifies it demands:
// what would not fit is refused before anybody is asked.
func TestDetailsThatFitNoTokenAreRefused(t *testing.T) {
	d := newDoor(t, nil)
	types := []tenants.DetailType{}
	for _, name := range []string{"a", "b", "c", "d"} {
		one := authoritytest.StayCharge()
		one.Type = name
		types = append(types, one)
	}
	d.Detailed(t, types...)
	refused := false
	for _, name := range []string{"a", "b", "c", "d"} {
		one := `{"type":"` + name + `","amount":1,"currency":"EUR","shop":"` + strings.Repeat("x", 180) + `"}`
		started := d.asked(t, "extras:order", "["+strings.TrimSuffix(strings.Repeat(one+",", 8), ",")+"]")
		if started.status != http.StatusOK {
			refused = true
			if started.error() != "invalid_authorization_details" || !strings.Contains(started.body, "too much") {
				t.Error(started.body)
			}
			continue
		}
		d.approve(t, started.json, "extras:order")
		a := d.poll(t, started.json["device_code"])
		if token, _ := a.json["access_token"].(string); a.status != http.StatusOK || len(token) > 8<<10 {
			t.Errorf("%s: %d, a token of %d bytes", name, a.status, len(token))
		}
	}
	if !refused {
		t.Error("nothing was refused")
	}
}

// P47: a proxy is told what the scopes allow more exactly, in one line that no proxy
// changes, and once the grant says otherwise neither that nor the scope.
func TestVerifyTellsTheProxyDetails(t *testing.T) {
	d := newDoor(t, nil)
	d.Detailed(t, authoritytest.StayCharge())
	started := d.asked(t, "bookings:read extras:order", `[{"type":"stay_charge","amount":9,"currency":"EUR","shop":"Café 1 %"}]`)
	d.approve(t, started.json, "bookings:read", "extras:order")
	call := guarded{key: d.key(t, d.Hotel, tenants.RightVerify), pa: d.pa, sub: "alex", token: d.poll(t, started.json["device_code"]).json["access_token"].(string)}
	a := d.guard(t, call)
	raw, err := url.PathUnescape(a.header.Get("Countersign-Details"))
	want := parsed(t, `[{"type":"stay_charge","amount":9,"currency":"EUR","shop":"Café 1 %"}]`)
	if err != nil || cmp.Diff(want, parsed(t, raw)) != "" || strings.ContainsFunc(a.header.Get("Countersign-Details"), func(r rune) bool { return r <= ' ' || r > '~' }) {
		t.Errorf("%q, %v", a.header, err)
	}
	d.Exec(t, `UPDATE grants SET details = '[]', version = version + 1`)
	if a := d.guard(t, call); a.header.Get("Countersign-Details") != "" || a.header.Get("Countersign-Scopes") != "bookings:read" {
		t.Errorf("%v", a.header)
	}
}
