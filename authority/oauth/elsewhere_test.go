package oauth_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
)

// R50, B31: what was revoked at one instance is dead at the other within a second,
// at every door that may be asked, whoever revoked it and by whichever token.
func TestRevokedHereIsDeadElsewhere(t *testing.T) {
	d := newDoor(t, nil)
	elsewhere, _ := d.instance(t, nil)
	asked := d.key(t, d.Hotel, tenants.RightIntrospect, tenants.RightVerify)
	there := elsewhere + "/a2a/harbor-hotel/oauth"
	guard := func(token string) answer {
		r := request(t, http.MethodPost, there+"/verify", "", "")
		r.Header.Set("Countersign-Authorization", "Bearer "+asked)
		r.Header.Set("Authorization", "Bearer "+d.pa.Token(t, agenttest.Claims{Sub: "alex"}))
		r.Header.Set("X-A2A-User-Delegation", "Bearer "+token)
		return do(t, r)
	}
	introspect := func(token string) answer {
		return do(t, request(t, http.MethodPost, there+"/introspect", asked, url.Values{"token": {token}}.Encode()))
	}
	list := func(token string) error {
		a := do(t, request(t, http.MethodGet, there+"/status/0", "", ""))
		return d.judge(t, token, a.body)
	}
	manage := func(base string, method string, h *held) answer {
		return do(t, request(t, method, base+"/grants/"+h.grant.String(), d.pa.Token(t, agenttest.Claims{Sub: "alex"}), ""))
	}
	for what, revoke := range map[string]func(*held) answer{
		"by the refresh token": func(h *held) answer { return h.post(t, "/revoke", url.Values{"token": {h.refresh}}) },
		"by the access token":  func(h *held) answer { return h.post(t, "/revoke", url.Values{"token": {h.access}}) },
		"by its grant":         func(h *held) answer { return manage(d.issuer(d.Hotel), http.MethodDelete, h) },
	} {
		h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
		// Everything that may be kept there is.
		if a := introspect(h.access); a.json["active"] != true {
			t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
		if a := guard(h.access); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
		d.Clock.Advance(2 * time.Second)
		if err := list(h.access); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if a := manage(there, http.MethodGet, h); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
		if a := revoke(h); a.status/100 != 2 {
			t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
		began := time.Now()
		// No second passes for whoever is asked: nothing may be kept for one.
		if a := introspect(h.access); a.body != dead {
			t.Errorf("%s: introspection says %s", what, a.body)
		}
		if a := guard(h.access); a.status != http.StatusUnauthorized || a.header.Get("Countersign-User") != "" {
			t.Errorf("%s: verify lets it through, %d", what, a.status)
		}
		refreshed := d.post(t, there+"/token", d.pa, "alex", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {h.refresh}, "client_id": {d.pa.Issuer}})
		if refreshed.status != http.StatusBadRequest || refreshed.error() != "invalid_grant" {
			t.Errorf("%s: refreshed, %d %s", what, refreshed.status, refreshed.body)
		}
		if a := manage(there, http.MethodGet, h); a.status != http.StatusNotFound {
			t.Errorf("%s: the grant is there, %d", what, a.status)
		}
		d.Clock.Advance(time.Second)
		if err := list(h.access); !errors.Is(err, verify.ErrRevoked) {
			t.Errorf("%s: the list says %v", what, err)
		}
		if took := time.Since(began); took > time.Second && !testing.Short() {
			t.Logf("%s: asking alone took %v", what, took)
		}
	}
}
