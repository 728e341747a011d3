package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// M7, P1, P3 (at the door), M3, R19: every failure of the pa-jwt is one and the
// same 401 on every route a PA calls; B81: exactly one method, exactly one header.
func TestPAJWTIsTheOnlyWayIn(t *testing.T) {
	d := newDoor(t, nil)
	good := d.pa.Token(t, agenttest.Claims{})
	form := url.Values{"client_id": {d.pa.Issuer}, "scope": {"bookings:read"}}.Encode()
	for _, route := range []string{"/device_authorization", "/token", "/revoke"} {
		to := d.issuer(d.Hotel) + route
		tries := map[string]*http.Request{
			"no token":               request(t, http.MethodPost, to, "", form),
			"no token, bad body":     request(t, http.MethodPost, to, "", "%%%"),
			"garbage":                request(t, http.MethodPost, to, "garbage", form),
			"another audience":       request(t, http.MethodPost, to, d.pa.Token(t, agenttest.Claims{Aud: "https://another.example"}), form),
			"audience in an array":   request(t, http.MethodPost, to, d.pa.Token(t, agenttest.Claims{Extra: map[string]any{"aud": []string{audience}}}), form),
			"expired":                request(t, http.MethodPost, to, d.pa.Token(t, agenttest.Claims{IssuedAt: d.Clock.Now().Add(-10 * time.Minute)}), form),
			"not registered":         request(t, http.MethodPost, to, agenttest.New(t).Token(t, agenttest.Claims{Aud: audience}), form),
			"token in the query":     request(t, http.MethodPost, to+"?access_token="+good, "", form),
			"basic":                  request(t, http.MethodPost, to, "", form),
			"two headers":            request(t, http.MethodPost, to, good, form),
			"a header with two ways": request(t, http.MethodPost, to, good+", Basic eDp5", form),
		}
		tries["basic"].SetBasicAuth(d.pa.Issuer, "secret")
		tries["two headers"].Header.Add("Authorization", "Bearer "+good)
		for what, req := range tries {
			unauthorized(t, route+", "+what, do(t, req))
		}
	}
	for _, field := range []string{"client_secret", "client_assertion", "client_assertion_type"} {
		a := d.post(t, d.issuer(d.Hotel)+"/token", d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}, field: {"x"}, "grant_type": {deviceGrant}, "device_code": {"dc_x"}})
		if a.status != http.StatusBadRequest || a.error() != "invalid_request" {
			t.Errorf("%s beside the pa-jwt: %d %s", field, a.status, a.body)
		}
	}
	// B60: the scheme is read without regard to case.
	req := request(t, http.MethodPost, d.issuer(d.Hotel)+"/device_authorization", "", form)
	req.Header.Set("Authorization", "bearer "+good)
	if a := do(t, req); a.status != http.StatusOK {
		t.Errorf("bearer in lower case: %d %s", a.status, a.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM device_requests`); n != 1 {
		t.Errorf("%d requests stored", n)
	}
}

// M9, P2, B103: client_id equals iss byte for byte, at every endpoint; nothing
// is stored and nothing is spent.
func TestClientIDMustBeTheCaller(t *testing.T) {
	d := newDoor(t, nil)
	started := d.start(t, "bookings:read")
	d.approve(t, started, "bookings:read")
	for _, id := range []string{d.other.Issuer, d.pa.Issuer + "/", strings.ToUpper(d.pa.Issuer), d.pa.Issuer + "%2F", "", " " + d.pa.Issuer} {
		for route, form := range map[string]url.Values{
			"/device_authorization": {"scope": {"bookings:read"}},
			"/token":                {"grant_type": {deviceGrant}, "device_code": {started["device_code"].(string)}},
			"/revoke":               {"token": {"rt_x"}},
		} {
			form.Set("client_id", id)
			a := d.post(t, d.issuer(d.Hotel)+route, d.pa, "alex", form)
			if a.status != http.StatusUnauthorized || a.error() != "invalid_client" {
				t.Errorf("%s as %q: %d %s", route, id, a.status, a.body)
			}
		}
	}
	// M9 comes before whatever else is wrong with the form.
	for _, wrong := range []url.Values{{}, {"resource": {"https://other.example"}, "grant_type": {"nonsense"}}} {
		wrong.Set("client_id", d.other.Issuer)
		if a := d.post(t, d.issuer(d.Hotel)+"/token", d.pa, "alex", wrong); a.status != http.StatusUnauthorized || a.error() != "invalid_client" {
			t.Errorf("%v: %d %s", wrong, a.status, a.body)
		}
	}
	missing := d.post(t, d.issuer(d.Hotel)+"/token", d.pa, "alex", url.Values{"grant_type": {deviceGrant}, "device_code": {"dc_x"}})
	if missing.status != http.StatusUnauthorized || missing.error() != "invalid_client" {
		t.Errorf("no client_id: %d %s", missing.status, missing.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM device_requests`); n != 1 {
		t.Errorf("%d requests stored", n)
	}
	if a := d.poll(t, started["device_code"]); a.status != http.StatusOK {
		t.Errorf("the rightful caller: %d %s", a.status, a.body)
	}
}

// P9, B16: the answer of RFC 8628 §3.2, nothing more.
func TestDeviceAuthorizationAnswer(t *testing.T) {
	d := newDoor(t, nil)
	a := d.post(t, d.issuer(d.Hotel)+"/device_authorization", d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}, "scope": {"bookings:read"}})
	if a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache" ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		t.Fatalf("%d %v", a.status, a.header)
	}
	code, user := a.json["device_code"].(string), a.json["user_code"].(string)
	if !strings.HasPrefix(code, "dc_") || len(code) != 3+43 {
		t.Errorf("device code of %d characters", len(code))
	}
	if shown, ok := authority.ParseUserCode(user); !ok || shown.String() != user {
		t.Errorf("user code %q", user)
	}
	page := authoritytest.PublicURL + "/b/harbor-hotel/device"
	want := map[string]any{
		"device_code": code, "user_code": user, "verification_uri": page,
		"verification_uri_complete": page + "?user_code=" + user, "expires_in": 600.0, "interval": 5.0,
	}
	if diff := cmp.Diff(want, a.json); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(a.body, `"expires_in":600,`) || !strings.Contains(a.body, `"interval":5}`) {
		t.Errorf("not integers: %s", a.body)
	}
}

// M10, P7, P8, B100, B103, B104: bad bodies get their precise error and store
// nothing.
func TestBadBodiesGetPreciseErrors(t *testing.T) {
	d := newDoor(t, nil)
	id := "client_id=" + url.QueryEscape(d.pa.Issuer)
	for _, tt := range []struct{ name, body, contentType, query, want string }{
		{"empty scope", id + "&scope=", "", "", "invalid_scope"},
		{"blank scope", id + "&scope=+", "", "", "invalid_scope"},
		{"no scope", id, "", "", "invalid_scope"},
		{"unknown scope", id + "&scope=nope", "", "", "invalid_scope"},
		{"known and unknown", id + "&scope=bookings:read+nope", "", "", "invalid_scope"},
		{"another Brand's scope", id + "&scope=orders:read", "", "", "invalid_scope"},
		{"plus encoded twice", id + "&scope=bookings%2525read", "", "", "invalid_scope"},
		{"JSON", `{"client_id":"x"}`, "application/json", "", "invalid_request"},
		{"multipart", id, "multipart/form-data; boundary=x", "", "invalid_request"},
		{"no content type", id, "-", "", "invalid_request"},
		{"empty body", "", "application/x-www-form-urlencoded", "", "invalid_request"},
		{"scope twice", id + "&scope=bookings:read&scope=bookings:read", "", "", "invalid_request"},
		{"client_id twice", id + "&" + id, "", "", "invalid_request"},
		{"unknown twice", id + "&scope=bookings:read&x=1&x=2", "", "", "invalid_request"},
		{"in the query too", id + "&scope=bookings:read", "", "?scope=extras:order", "invalid_request"},
		{"bad escape", id + "&scope=%zz", "", "", "invalid_request"},
		{"semicolon", id + ";scope=bookings:read", "", "", "invalid_request"},
		{"NUL", id + "&scope=%00", "", "", "invalid_request"},
		{"not UTF-8", id + "&scope=%ff%fe", "", "", "invalid_request"},
		{"too large", id + "&x=" + strings.Repeat("a", 8<<10), "", "", "invalid_request"},
		{"many parameters", id + strings.Repeat("&a", 5000), "", "", "invalid_request"},
		{"authorization_details", id + "&scope=bookings:read&authorization_details=%5B%5D", "", "", "invalid_authorization_details"},
		{"another resource", id + "&scope=bookings:read&resource=https://other.example", "", "", "invalid_target"},
		{"another audience", id + "&scope=bookings:read&audience=https://other.example", "", "", "invalid_target"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, http.MethodPost, d.issuer(d.Hotel)+"/device_authorization"+tt.query, d.pa.Token(t, agenttest.Claims{}), tt.body)
			switch tt.contentType {
			case "":
			case "-":
				req.Header.Del("Content-Type")
			default:
				req.Header.Set("Content-Type", tt.contentType)
			}
			a := do(t, req)
			oauthErrorShape(t, a)
			if a.status != http.StatusBadRequest || a.error() != tt.want {
				t.Errorf("%d %s, want 400 %s", a.status, a.body, tt.want)
			}
		})
	}
	if n := d.Count(t, `SELECT count(*) FROM device_requests`); n != 0 {
		t.Errorf("%d requests stored", n)
	}
}

// oauthErrorShape: R41, B105: JSON of RFC 6749 §5.2, never cached.
func oauthErrorShape(t *testing.T, a answer) {
	t.Helper()
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache" {
		t.Errorf("an error may be cached: %v", a.header)
	}
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		t.Errorf("content type %q", a.header.Get("Content-Type"))
	}
	for member, value := range a.json {
		if _, ok := value.(string); !ok || member != "error" && member != "error_description" {
			t.Errorf("member %s in an error", member)
		}
	}
}

// B105, P12, P13, P15, P17, P18, M11–M13 at the door: every error of the token
// endpoint by name, status and shape.
func TestTokenEndpointAnswers(t *testing.T) {
	d := newDoor(t, nil)
	started := d.start(t, "bookings:read bookings:change")
	code := started["device_code"]
	expect := func(what string, a answer, status int, want string) {
		t.Helper()
		oauthErrorShape(t, a)
		if a.status != status || a.error() != want {
			t.Errorf("%s: %d %s, want %d %s", what, a.status, a.body, status, want)
		}
	}
	expect("first poll", d.poll(t, code), 400, "authorization_pending")
	expect("second poll", d.poll(t, code), 400, "slow_down")
	expect("unknown code", d.poll(t, "dc_unknown"), 400, "invalid_grant")
	token := d.issuer(d.Hotel) + "/token"
	other := url.Values{"grant_type": {deviceGrant}, "device_code": {code.(string)}, "client_id": {d.other.Issuer}}
	expect("another agent", d.post(t, token, d.other, "alex", other), 400, "invalid_grant")
	own := url.Values{"grant_type": {deviceGrant}, "device_code": {code.(string)}, "client_id": {d.pa.Issuer}}
	expect("another person", d.post(t, token, d.pa, "sam", own), 400, "invalid_grant")
	expect("another Brand", d.post(t, d.issuer(d.Shop)+"/token", d.pa, "alex", own), 400, "invalid_grant")
	for _, grant := range []string{"client_credentials", "password", "authorization_code", "nonsense", deviceGrant + " refresh_token"} {
		own.Set("grant_type", grant)
		expect(grant, d.post(t, token, d.pa, "alex", own), 400, "unsupported_grant_type")
	}
	own.Del("grant_type")
	expect("no grant type", d.post(t, token, d.pa, "alex", own), 400, "invalid_request")
	expect("no code", d.post(t, token, d.pa, "alex", url.Values{"grant_type": {deviceGrant}, "client_id": {d.pa.Issuer}}), 400, "invalid_request")
	expect("no refresh token", d.post(t, token, d.pa, "alex", url.Values{"grant_type": {"refresh_token"}, "client_id": {d.pa.Issuer}}), 400, "invalid_request")
	expect("unknown refresh token", d.refresh(t, d.pa, "alex", "rt_unknown"), 400, "invalid_grant")

	d.approve(t, started, "bookings:read")
	paid := d.poll(t, code) // early, and paid all the same
	if paid.status != 200 || paid.header.Get("Cache-Control") != "no-store" || paid.header.Get("Pragma") != "no-cache" {
		t.Fatalf("%d %v %s", paid.status, paid.header, paid.body)
	}
	want := map[string]any{
		"access_token": paid.json["access_token"], "refresh_token": paid.json["refresh_token"],
		"token_type": "Bearer", "expires_in": 900.0, "scope": "bookings:read", "grant_id": paid.json["grant_id"],
	}
	if diff := cmp.Diff(want, paid.json); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(paid.body, `"expires_in":900`) || !strings.HasPrefix(paid.json["refresh_token"].(string), "rt_") {
		t.Error(paid.body)
	}
	expect("redeemed", d.poll(t, code), 400, "invalid_grant")
	fresh := d.refresh(t, d.pa, "alex", paid.json["refresh_token"])
	if fresh.status != 200 || fresh.json["refresh_token"] == paid.json["refresh_token"] {
		t.Fatalf("refresh: %d %s", fresh.status, fresh.body)
	}
	expect("another agent's refresh", d.refresh(t, d.other, "alex", fresh.json["refresh_token"]), 400, "invalid_grant")
	wide := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {fresh.json["refresh_token"].(string)}, "client_id": {d.pa.Issuer}, "scope": {"bookings:read extras:order"}}
	expect("wider refresh", d.post(t, token, d.pa, "alex", wide), 400, "invalid_scope")
	wide.Set("scope", "") // as good as none
	if a := d.post(t, token, d.pa, "alex", wide); a.status != 200 {
		t.Errorf("empty scope: %d %s", a.status, a.body)
	}

	denied := d.start(t, "bookings:read")
	id, _, err := d.rules.Find(t.Context(), d.Hotel.ID, denied["user_code"].(string), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.rules.Deny(t.Context(), d.Hotel.ID, authority.Decision{Request: id, Subject: "guest-7"}); err != nil {
		t.Fatal(err)
	}
	expect("denied", d.poll(t, denied["device_code"]), 400, "access_denied")
	late := d.start(t, "bookings:read")
	d.Clock.Advance(authority.RequestLife)
	expect("expired", d.poll(t, late["device_code"]), 400, "expired_token")
}

// P11 at the door.
func TestTooManyStartsAreTold(t *testing.T) {
	d := newDoor(t, nil)
	for range 30 {
		d.start(t, "bookings:read")
	}
	a := d.post(t, d.issuer(d.Hotel)+"/device_authorization", d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}, "scope": {"bookings:read"}})
	if a.status != http.StatusTooManyRequests || a.error() != "slow_down" || a.header.Get("Retry-After") == "" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
}

// P5, M2, M14: an agent disabled while its pa-jwt lives is out at once, on every
// instance; a paused Brand answers 503 with Retry-After and loses nothing.
func TestDisabledAgentAndPausedBrand(t *testing.T) {
	d := newDoor(t, nil)
	started := d.start(t, "bookings:read")
	d.approve(t, started, "bookings:read")
	token := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	form := url.Values{"grant_type": {deviceGrant}, "device_code": {started["device_code"].(string)}, "client_id": {d.pa.Issuer}}.Encode()
	if err := d.reg.SetEnabled(t.Context(), d.pa.Issuer, false); err != nil { // by another instance
		t.Fatal(err)
	}
	unauthorized(t, "disabled, polling", do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/token", token, form)))
	start := url.Values{"client_id": {d.pa.Issuer}, "scope": {"bookings:read"}}.Encode()
	unauthorized(t, "disabled, starting", do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/device_authorization", token, start)))
	if err := d.reg.SetEnabled(t.Context(), d.pa.Issuer, true); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(3 * time.Second) // the bound on what an instance remembers
	if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Paused); err != nil {
		t.Fatal(err)
	}
	a := do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/token", token, form))
	if a.status != http.StatusServiceUnavailable || a.error() != "temporarily_unavailable" || a.header.Get("Retry-After") == "" {
		t.Fatalf("paused: %d %v %s", a.status, a.header, a.body)
	}
	if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Active); err != nil {
		t.Fatal(err)
	}
	if a := do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/token", token, form)); a.status != 200 {
		t.Fatalf("resumed: %d %s", a.status, a.body)
	}
}

// P35: revocation answers 200 to everything that is not malformed, and ends
// what is the caller's own; the access token of an ended grant is 200 too.
func TestRevocationTellsNothing(t *testing.T) {
	d := newDoor(t, nil)
	started := d.start(t, "bookings:read")
	d.approve(t, started, "bookings:read")
	tokens := d.poll(t, started["device_code"]).json
	revoke := func(pa *agenttest.PA, sub string, form url.Values) {
		t.Helper()
		a := d.post(t, d.issuer(d.Hotel)+"/revoke", pa, sub, form)
		if a.status != 200 || a.body != "" {
			t.Errorf("%v: %d %s", form, a.status, a.body)
		}
	}
	refresh, access := tokens["refresh_token"].(string), tokens["access_token"].(string)
	revoke(d.other, "alex", url.Values{"token": {refresh}})
	revoke(d.other, "alex", url.Values{"token": {access}})
	revoke(d.pa, "sam", url.Values{"token": {refresh}})
	revoke(d.pa, "alex", url.Values{"token": {"nonsense"}})
	fresh := d.refresh(t, d.pa, "alex", refresh)
	if fresh.status != 200 {
		t.Fatalf("a stranger's revocation had effect: %s", fresh.body)
	}
	revoke(d.pa, "alex", url.Values{"token": {fresh.json["refresh_token"].(string)}, "token_type_hint": {"refresh_token"}})
	revoke(d.pa, "alex", url.Values{"token": {access}, "token_type_hint": {"access_token"}})
	if a := d.refresh(t, d.pa, "alex", fresh.json["refresh_token"]); a.error() != "invalid_grant" {
		t.Errorf("after revocation: %d %s", a.status, a.body)
	}
	if a := d.post(t, d.issuer(d.Hotel)+"/revoke", d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}}); a.error() != "invalid_request" {
		t.Errorf("no token: %d %s", a.status, a.body)
	}
}
