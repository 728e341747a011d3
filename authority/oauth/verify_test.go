package oauth_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// guarded is a call that a Brand's proxy lets the service judge.
type guarded struct {
	brand *tenants.Brand
	key   string
	pa    *agenttest.PA
	sub   string
	token string
	path  string
	edit  func(*http.Request)
}

func (d *door) guard(t *testing.T, g guarded) answer {
	t.Helper()
	if g.brand == nil {
		g.brand = d.Hotel
	}
	r := request(t, http.MethodPost, d.issuer(g.brand)+"/verify"+g.path, "", "")
	r.Header.Set("Countersign-Authorization", "Bearer "+g.key)
	if g.pa != nil {
		r.Header.Set("Authorization", "Bearer "+g.pa.Token(t, agenttest.Claims{Sub: g.sub}))
	}
	if g.token != "" {
		r.Header.Set("X-A2A-User-Delegation", "Bearer "+g.token)
	}
	if g.edit != nil {
		g.edit(r)
	}
	return do(t, r)
}

// identity is every header with which the proxy replaces what the caller sent.
var identity = []string{"Agent", "Agent-Subject", "User", "Scopes", "Grant", "Token", "Expires", "Details"}

// through expects the call to be let through, with every header set: an absent
// one would leave the caller's own in its place.
func through(t *testing.T, what string, a answer, want ...string) {
	t.Helper()
	if a.status != http.StatusOK || a.body != "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: %d %q %v", what, a.status, a.body, a.header)
		return
	}
	want = append(want, make([]string, len(identity)-len(want))...) // most come without details
	for i, name := range identity {
		if got := a.header.Values("Countersign-" + name); len(got) != 1 || got[0] != want[i] {
			t.Errorf("%s: Countersign-%s is %q, want %q", what, name, got, want[i])
		}
	}
}

// invalid expects the 401 of M21.
func invalid(t *testing.T, what string, a answer) {
	t.Helper()
	if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != `Bearer realm="a2a", error="invalid_token"` || a.body != "" {
		t.Errorf("%s: %d, %q, body %q; want the 401 of M21", what, a.status, a.header.Get("WWW-Authenticate"), a.body)
	}
	// A proxy that keeps answers would go on refusing a token that is good again.
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: Cache-Control %q", what, a.header.Get("Cache-Control"))
	}
	silent(t, what, a)
}

// silent expects nothing about anybody beside a refusal.
func silent(t *testing.T, what string, a answer) {
	t.Helper()
	for name := range a.header {
		if strings.HasPrefix(name, "Countersign-") {
			t.Errorf("%s: a refusal with %s", what, name)
		}
	}
}

// A proxy hears who it is that it lets through: with a token every fact of it, and
// without one the agent alone and the rest empty.
func TestVerifyTellsTheProxyWho(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	paid := d.paid(t, "bookings:read", "bookings:change")
	token, grant := paid["access_token"].(string), paid["grant_id"].(string)
	seen := d.introspect(t, d.Hotel, d.key(t, d.Hotel, tenants.RightIntrospect), token)
	expires := strconv.FormatInt(d.Clock.Now().Unix()+900, 10)
	all := []string{d.pa.Issuer, "alex", "guest-7", "bookings:read bookings:change", grant, seen.json["jti"].(string), expires}
	through(t, "with a token", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}), all...)
	through(t, "without", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex"}), d.pa.Issuer, "alex", "", "", "", "", "")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, "PURGE"} {
		through(t, method, d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token, edit: func(r *http.Request) { r.Method = method }}), all...)
	}
	// P42: what the living grant no longer holds is not there.
	d.Exec(t, `UPDATE grants SET scopes = '{bookings:read}', version = version + 1`)
	all[3] = "bookings:read"
	through(t, "narrowed", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}), all...)
	// Blanks at the ends would be trimmed on the way, and line breaks be headers.
	through(t, "a name with blanks", d.guard(t, guarded{key: key, pa: d.pa, sub: " a%lex é "}), d.pa.Issuer, "%20a%25lex%20%C3%A9%20", "", "", "", "", "")
}

// M7, P29: first the pa-jwt, and every failure of it is the bare 401, also beside
// a token that is good or bad.
func TestVerifyAsksForThePAJWTFirst(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	good := d.paid(t, "bookings:read")["access_token"].(string)
	stranger := agenttest.New(t)
	stranger.Audience, stranger.Now = audience, d.Clock.Now
	proof := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	for _, token := range []string{"", good, "not-a-jwt"} {
		for what, edit := range map[string]func(*http.Request){
			"none":             func(*http.Request) {},
			"garbage":          func(r *http.Request) { r.Header.Set("Authorization", "Bearer garbage") },
			"basic":            func(r *http.Request) { r.SetBasicAuth("alex", "x") },
			"two":              func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + proof, "Bearer " + proof} },
			"the Brand's key":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) },
			"the token itself": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+good) },
			"unregistered": func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+stranger.Token(t, agenttest.Claims{Sub: "alex"}))
			},
			"another Provider's": func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+d.pa.Token(t, agenttest.Claims{Sub: "alex", Aud: "https://other.example"}))
			},
		} {
			a := d.guard(t, guarded{key: key, token: token, edit: edit})
			unauthorized(t, what, a)
			silent(t, what, a)
		}
	}
}

// M17, M18, M21, P29, P41: a token that is not good, or not this agent's, for this
// person of its own, at this Brand, is the 401 that names the token.
func TestVerifyRefusesWhatIsNotTheCallersToken(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	good := d.paid(t, "bookings:read")
	token := good["access_token"].(string)
	parts := strings.Split(token, ".")
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := d.Keys.Sign(t.Context(), d.Hotel.ID, signing.TypReceipt, claims)
	if err != nil {
		t.Fatal(err)
	}
	for what, g := range map[string]guarded{
		"another agent, M18":           {pa: d.other, sub: "alex", token: token},
		"another user of the agent":    {pa: d.pa, sub: "sam", token: token},
		"tampered":                     {pa: d.pa, sub: "alex", token: parts[0] + "." + parts[1] + "x." + parts[2]},
		"no signature":                 {pa: d.pa, sub: "alex", token: parts[0] + "." + parts[1] + "."},
		"nonsense":                     {pa: d.pa, sub: "alex", token: "not-a-jwt"},
		"a refresh token":              {pa: d.pa, sub: "alex", token: good["refresh_token"].(string)},
		"of a receipt's typ":           {pa: d.pa, sub: "alex", token: receipt},
		"a pa-jwt in its place":        {pa: d.pa, sub: "alex", token: d.pa.Token(t, agenttest.Claims{Sub: "alex"})},
		"too long":                     {pa: d.pa, sub: "alex", token: strings.Repeat("x", 9<<10)},
		"an empty header":              {pa: d.pa, sub: "alex", edit: func(r *http.Request) { r.Header.Set("X-A2A-User-Delegation", "") }},
		"not a bearer":                 {pa: d.pa, sub: "alex", edit: func(r *http.Request) { r.Header.Set("X-A2A-User-Delegation", token) }},
		"two of them":                  {pa: d.pa, sub: "alex", token: token, edit: func(r *http.Request) { r.Header.Add("X-A2A-User-Delegation", "Bearer "+token) }},
		"two in one, as nginx joins":   {pa: d.pa, sub: "alex", token: token + ", Bearer " + token},
		"M17, P29: at another Brand":   {brand: d.Shop, key: d.key(t, d.Shop, tenants.RightVerify), pa: d.pa, sub: "alex", token: token},
		"empty though it says it is a": {pa: d.pa, sub: "alex", edit: func(r *http.Request) { r.Header.Set("X-A2A-User-Delegation", "Bearer ") }},
	} {
		if g.key == "" {
			g.key = key
		}
		invalid(t, what, d.guard(t, g))
	}
	// The grant is asked every time: what ends is dead at the next call.
	for what, change := range map[string][2]string{
		"suspended":   {`INSERT INTO suspended_users VALUES ('harbor-hotel', 'guest-7', now())`, `DELETE FROM suspended_users`},
		"retired":     {`UPDATE brand_scopes SET retired_at = now()`, `UPDATE brand_scopes SET retired_at = NULL`},
		"another one": {`UPDATE grants SET subject = 'guest-8'`, `UPDATE grants SET subject = 'guest-7'`},
		"ended":       {`UPDATE grants SET ended_at = now(), end_reason = 'x'`, `UPDATE grants SET ended_at = NULL, end_reason = NULL`},
	} {
		d.Exec(t, change[0])
		invalid(t, what, d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}))
		d.Exec(t, change[1])
		if a := d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}); a.status != http.StatusOK {
			t.Errorf("not %s any more: %d", what, a.status)
		}
	}
	revoked := d.post(t, d.issuer(d.Hotel)+"/revoke", d.pa, "alex", url.Values{"token": {good["refresh_token"].(string)}, "client_id": {d.pa.Issuer}})
	if revoked.status != http.StatusOK {
		t.Fatal(revoked.status)
	}
	invalid(t, "revoked", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}))
	d.Clock.Advance(15 * time.Minute)
	invalid(t, "expired", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}))
	d.Exec(t, `DELETE FROM signing_keys WHERE brand_id = 'fern-and-fell'`)
	invalid(t, "at a Brand that signs nothing", d.guard(t, guarded{brand: d.Shop, key: d.key(t, d.Shop, tenants.RightVerify), pa: d.pa, sub: "alex", token: token}))
	// Nothing of it keeps the agent out as itself.
	if a := d.guard(t, guarded{key: key, pa: d.pa, sub: "alex"}); a.status != http.StatusOK {
		t.Errorf("without the token: %d", a.status)
	}
}

// M2, M14: an agent that the Brand does not work with is nobody there, with a
// token and without; a paused Brand is 503, which lets nobody through.
func TestVerifyKnowsAgentsAndPauses(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	token := d.paid(t, "bookings:read")["access_token"].(string)
	d.Exec(t, `INSERT INTO brand_agents VALUES ('harbor-hotel', $1, false, now())`, d.pa.Issuer)
	for _, token := range []string{"", token, "not-a-jwt"} {
		unauthorized(t, "kept out by the Brand", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}))
	}
	d.Exec(t, `DELETE FROM brand_agents`)
	d.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, d.pa.Issuer)
	for _, token := range []string{"", token, "not-a-jwt"} {
		unauthorized(t, "disabled", d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token}))
	}
	d.Exec(t, `UPDATE agents SET enabled = true`)
	if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Paused); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(3 * time.Second)
	for _, token := range []string{"", token, "not-a-jwt"} {
		a := d.guard(t, guarded{key: key, pa: d.pa, sub: "alex", token: token})
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("paused: %d %v", a.status, a.header)
		}
	}
}

// The proxy itself shows a key with the right verify, in its own header and
// nowhere else; without one it hears nothing about the caller. It passes on what it
// hears, and nobody may take that for a word about his pa-jwt or token.
func TestVerifyIsForTheBrandsProxy(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	for what, g := range map[string]guarded{
		"none":            {edit: func(r *http.Request) { r.Header.Del("Countersign-Authorization") }},
		"unknown":         {key: "cs_aaaaaaaaaaaaaaaa_x"},
		"another Brand's": {key: d.key(t, d.Shop, tenants.RightVerify)},
		"two":             {key: key, edit: func(r *http.Request) { r.Header.Add("Countersign-Authorization", "Bearer "+key) }},
		"in the query":    {edit: func(r *http.Request) { r.URL.RawQuery = "key=" + key; r.Header.Del("Countersign-Authorization") }},
		"in Authorization": {edit: func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+key)
			r.Header.Del("Countersign-Authorization")
		}},
	} {
		badProxy(t, what, d.guard(t, withPA(d, g)))
		g.token = "not-a-jwt"
		badProxy(t, what+", and a bad token", d.guard(t, withPA(d, g)))
		badProxy(t, what+", and no pa-jwt", d.guard(t, g))
	}
	for _, right := range tenants.Rights() {
		if right == tenants.RightVerify {
			continue
		}
		badProxy(t, "with the right "+string(right), d.guard(t, withPA(d, guarded{key: d.key(t, d.Hotel, right)})))
	}
	nobody := *d.Hotel
	nobody.ID = "no-such-brand"
	if a := d.guard(t, withPA(d, guarded{brand: &nobody, key: key})); a.status != http.StatusNotFound {
		t.Errorf("unknown Brand: %d", a.status)
	}
	ends := d.key(t, d.Shop, tenants.RightVerify)
	d.Save(t, d.Shop, func(b *tenants.Brand) { b.Delegation = false })
	d.Clock.Advance(3 * time.Second)
	if a := d.guard(t, withPA(d, guarded{brand: d.Shop, key: ends})); a.status != http.StatusNotFound {
		t.Errorf("a Brand without delegation: %d", a.status)
	}
}

// badProxy expects what a proxy hears whose own key is not good.
func badProxy(t *testing.T, what string, a answer) {
	t.Helper()
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "30" || a.header.Get("WWW-Authenticate") != "" ||
		a.error() != "temporarily_unavailable" || !strings.Contains(a.body, "Countersign-Authorization") || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: %d %v %q", what, a.status, a.header, a.body)
	}
	silent(t, what, a)
}

func withPA(d *door, g guarded) guarded {
	g.pa, g.sub = d.pa, "alex"
	return g
}

// A proxy that guards something else with this Brand's key is told, not served:
// the Brand's tokens are for its interface alone. Where it says the path, in
// whichever way, it must be the interface's.
func TestVerifySpeaksForTheInterfaceOnly(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	at := "/a2a/harbor-hotel"
	for uri, want := range map[string]int{
		at: 200, at + "/": 200, at + "/message:send": 200, at + "/tasks/1?x=../..": 200, at + "/a%2Fb": 200,
		"": 403, "/": 403, "/other": 403, at + "-annex/x": 403, at + "/../other": 403, at + "/%2e%2e/other": 403,
		at + "/..;/other": 403, at + "/..%3b/other": 403, at + `/..\other`: 403, at + "/..%5cother": 403, "/a2a;/harbor-hotel/x": 403,
		at + "/a;b": 200, at + "/..%2fother": 403, "/a2a%2Fharbor-hotel/x": 403, "/A2A/harbor-hotel/x": 403, "message:send": 403, "/a2a/harbor%2dhotelx": 403,
	} {
		for _, header := range []string{"X-Original-URI", "X-Forwarded-Uri"} {
			g := withPA(d, guarded{key: key, edit: func(r *http.Request) { r.Header.Set(header, uri) }})
			if a := d.guard(t, g); a.status != want {
				t.Errorf("%s %q: %d, want %d", header, uri, a.status, want)
			} else if want != 200 {
				silent(t, uri, a)
				if a.header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: Cache-Control %q", uri, a.header.Get("Cache-Control"))
				}
			}
		}
	}
	both := withPA(d, guarded{key: key, edit: func(r *http.Request) {
		r.Header.Set("X-Forwarded-Uri", "/other")
		r.Header.Set("X-Original-URI", at)
	}})
	if a := d.guard(t, both); a.status != http.StatusForbidden {
		t.Errorf("the caller named another path too: %d", a.status)
	}
	for path, want := range map[string]int{at + "/message:send": 200, "/other": 403} { // Envoy
		if a := d.guard(t, withPA(d, guarded{key: key, path: path})); a.status != want {
			t.Errorf("%s behind the address: %d, want %d", path, a.status, want)
		}
	}
}

// A database that is away lets nobody through, and says when to come again.
func TestVerifyFailsClosed(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	token := d.paid(t, "bookings:read")["access_token"].(string)
	g := guarded{key: key, pa: d.pa, sub: "alex", token: token}
	if a := d.guard(t, g); a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	d.DB.Pool().Close()
	for _, token := range []string{token, ""} {
		g.token = token
		a := d.guard(t, g)
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %v", a.status, a.header)
		}
		silent(t, "no database", a)
	}
}
