package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

func (d *door) key(t *testing.T, b *tenants.Brand, rights ...tenants.Right) string {
	t.Helper()
	key, err := tenants.CreateAPIKey(t.Context(), d.DB, b.ID, "test", rights, d.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (d *door) introspect(t *testing.T, b *tenants.Brand, key, token string) answer {
	t.Helper()
	return do(t, request(t, http.MethodPost, d.issuer(b)+"/introspect", key, url.Values{"token": {token}}.Encode()))
}

// R53, P41 (in part), P42: a Brand asks about its own tokens, and hears the scopes
// that still hold; about anything else it hears {"active":false} and no more.
func TestIntrospectionSaysWhatATokenIsWorth(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	started := d.start(t, "bookings:read bookings:change")
	d.approve(t, started, "bookings:read", "bookings:change")
	tokens := d.poll(t, started["device_code"]).json
	token := tokens["access_token"].(string)
	a := d.introspect(t, d.Hotel, key, token)
	now := float64(d.Clock.Now().Unix())
	want := map[string]any{
		"active": true, "scope": "bookings:read bookings:change", "client_id": d.pa.Issuer, "token_type": "Bearer",
		"exp": now + 900, "iat": now, "sub": "guest-7", "aud": d.Hotel.InterfaceURL, "iss": d.Hotel.Issuer,
		"jti": a.json["jti"], "grant_id": a.json["grant_id"],
	}
	if diff := cmp.Diff(want, a.json); a.status != 200 || diff != "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.status, diff)
	}
	dead := func(what, key, token string) {
		t.Helper()
		if a := d.introspect(t, d.Hotel, key, token); a.status != 200 || a.body != `{"active":false}` {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	parts := strings.Split(token, ".")
	for what, bad := range map[string]string{
		"tampered": parts[0] + "." + parts[1] + "x." + parts[2], "no signature": parts[0] + "." + parts[1] + ".",
		"nonsense": "not-a-jwt", "a refresh token": tokens["refresh_token"].(string), "dots": strings.Repeat(".", 5000),
	} {
		dead(what, key, bad)
	}
	// Another Brand may not ask about it.
	if a := d.introspect(t, d.Shop, d.key(t, d.Shop, tenants.RightIntrospect), token); a.body != `{"active":false}` {
		t.Errorf("another Brand: %s", a.body)
	}
	d.Exec(t, `UPDATE grants SET scopes = '{bookings:read}', version = version + 1`)
	if a := d.introspect(t, d.Hotel, key, token); a.json["scope"] != "bookings:read" {
		t.Errorf("narrowed: %s", a.body)
	}
	d.Exec(t, `UPDATE grants SET expires_at = $1`, d.Clock.Now().Add(time.Minute))
	if a := d.introspect(t, d.Hotel, key, token); a.json["exp"] != now+60 {
		t.Errorf("P36, shortened: %s", a.body)
	}
	d.Exec(t, `UPDATE grants SET expires_at = $1`, d.Clock.Now().Add(time.Hour))
	for what, change := range map[string][2]string{
		"suspended":   {`INSERT INTO suspended_users VALUES ('harbor-hotel', 'guest-7', now())`, `DELETE FROM suspended_users`},
		"disabled":    {`UPDATE agents SET enabled = false`, `UPDATE agents SET enabled = true`},
		"retired":     {`UPDATE brand_scopes SET retired_at = now()`, `UPDATE brand_scopes SET retired_at = NULL`},
		"another one": {`UPDATE grants SET subject = 'guest-8'`, `UPDATE grants SET subject = 'guest-7'`},
		"ended":       {`UPDATE grants SET ended_at = now(), end_reason = 'x'`, `UPDATE grants SET ended_at = NULL, end_reason = NULL`},
	} {
		d.Exec(t, change[0])
		dead(what, key, token)
		d.Exec(t, change[1])
		if a := d.introspect(t, d.Hotel, key, token); a.json["active"] != true {
			t.Errorf("%s, undone: %s", what, a.body)
		}
	}
	d.Clock.Advance(15 * time.Minute)
	dead("expired", key, token)
}

// R53, B70: what a key signed that was then revoked is worth nothing, to each
// instance within seconds; what the next key signs is.
func TestARevokedSigningKeysTokensAreWorthNothing(t *testing.T) {
	d := newDoor(t, nil)
	elsewhere, _ := d.instance(t, nil)
	h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
	ask := func(base, token string) any {
		t.Helper()
		a := do(t, request(t, http.MethodPost, base+"/a2a/harbor-hotel/oauth/introspect", h.key, url.Values{"token": {token}}.Encode()))
		if a.status != http.StatusOK || a.json["active"] != true && a.body != dead {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.json["active"]
	}
	for _, base := range []string{d.url, elsewhere} {
		if ask(base, h.access) != true {
			t.Fatal("the token is dead before its key is")
		}
	}
	keys, err := d.Keys.List(t.Context(), d.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	policy := signing.Policy{Every: 90 * 24 * time.Hour, Alg: signing.ES256, Backend: "local"}
	if err := d.Keys.Revoke(t.Context(), d.Hotel.ID, keys[0].KID, "it leaked", policy); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(2 * time.Second)
	next := h.renew(t, h.refresh)
	if next.status != http.StatusOK {
		t.Fatalf("%d %s", next.status, next.body)
	}
	for _, base := range []string{d.url, elsewhere} {
		if ask(base, h.access) == true {
			t.Error("what the revoked key signed still counts")
		}
		if ask(base, next.json["access_token"].(string)) != true {
			t.Error("what the next key signed does not count")
		}
	}
}

// wire.md §10: the Brand credential, one right per endpoint; another Brand's key
// is an unknown key; a revoked one is out within two seconds.
func TestBrandCredential(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	id := strings.Split(key, "_")[1]
	refused := func(what, key string, status int, code string) {
		t.Helper()
		a := d.introspect(t, d.Hotel, key, "x")
		if a.status != status || a.header.Get("WWW-Authenticate") != `Bearer realm="countersign", error="`+code+`"` || a.body != "" {
			t.Errorf("%s: %d %q %s", what, a.status, a.header.Get("WWW-Authenticate"), a.body)
		}
	}
	refused("none", "", 401, "invalid_token")
	refused("garbage", "cs_", 401, "invalid_token")
	refused("unknown", "cs_aaaaaaaaaaaa_x", 401, "invalid_token")
	refused("wrong secret", "cs_"+id+"_WRONG", 401, "invalid_token")
	refused("another Brand's", d.key(t, d.Shop, tenants.RightIntrospect), 401, "invalid_token")
	refused("a pa-jwt", "eyJ.x.y", 401, "invalid_token")
	refused("without the right", d.key(t, d.Hotel, tenants.RightReceipts, tenants.RightAdmin), 403, "insufficient_scope")
	if a := d.introspect(t, d.Hotel, key, "x"); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM api_keys WHERE position($1 in encode(secret_hash, 'escape')) > 0`, strings.Split(key, "_")[2]); n != 0 {
		t.Error("the secret stands in clear")
	}
	if err := tenants.RevokeAPIKey(t.Context(), d.DB, d.Shop.ID, id, d.Clock.Now()); err == nil {
		t.Error("another Brand revoked the key")
	}
	if err := tenants.RevokeAPIKey(t.Context(), d.DB, d.Hotel.ID, id, d.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(2 * time.Second)
	refused("revoked", key, 401, "invalid_token")
	if a := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/introspect", key, "")); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.status)
	}
	if a := do(t, request(t, http.MethodPost, d.url+"/a2a/nobody/oauth/introspect", key, "")); a.status != http.StatusNotFound {
		t.Errorf("unknown Brand: %d", a.status)
	}
}
