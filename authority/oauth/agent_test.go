package oauth_test

import (
	"net/http"
	"net/url"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// M2: a Brand that verifies by itself hears which agents may call it, and where
// their keys are; of the others that they are unknown, and no more.
func TestABrandAsksAboutAnAgent(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightVerify)
	ask := func(b *tenants.Brand, key, query string) answer {
		t.Helper()
		return do(t, request(t, http.MethodGet, d.issuer(b)+"/agent"+query, key, ""))
	}
	of := func(issuer string) string { return "?" + url.Values{"issuer": {issuer}}.Encode() }
	known := func(what string, b *tenants.Brand, key string, pa *agenttest.PA, want bool) {
		t.Helper()
		record := map[string]any{"known": want, "issuer": pa.Issuer}
		if want {
			record["jwks_uri"], record["name"] = pa.Agent().JWKSURI, pa.Agent().Name
		}
		a := ask(b, key, of(pa.Issuer))
		if diff := cmp.Diff(record, a.json); a.status != http.StatusOK || diff != "" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", what, a.status, diff)
		}
	}
	shop := d.key(t, d.Shop, tenants.RightVerify)
	known("registered", d.Hotel, key, d.pa, true)
	known("a stranger", d.Hotel, key, agenttest.New(t), false)
	// What one Brand decides is that Brand's alone.
	if err := tenants.ListAgent(t.Context(), d.rules.Editor(authority.ByOperator()), d.Hotel.ID, d.pa.Issuer, false); err != nil {
		t.Fatal(err)
	}
	known("denied here", d.Hotel, key, d.pa, false)
	known("not denied there", d.Shop, shop, d.pa, true)
	if err := d.reg.SetEnabled(t.Context(), d.other.Issuer, false); err != nil {
		t.Fatal(err)
	}
	known("disabled", d.Hotel, key, d.other, false)
	known("disabled for all", d.Shop, shop, d.other, false)

	for what, tt := range map[string]struct {
		b      *tenants.Brand
		key    string
		query  string
		status int
	}{
		"no key":              {d.Hotel, "", of(d.pa.Issuer), http.StatusUnauthorized},
		"another Brand's key": {d.Hotel, shop, of(d.pa.Issuer), http.StatusUnauthorized},
		"another right":       {d.Hotel, d.key(t, d.Hotel, tenants.RightIntrospect), of(d.pa.Issuer), http.StatusForbidden},
		"nobody named":        {d.Hotel, key, "", http.StatusBadRequest},
		"an empty name":       {d.Hotel, key, "?issuer=", http.StatusBadRequest},
		"two named":           {d.Hotel, key, of(d.pa.Issuer) + "&issuer=x", http.StatusBadRequest},
	} {
		if a := ask(tt.b, tt.key, tt.query); a.status != tt.status || a.json["jwks_uri"] != nil {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a := do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/agent", key, "")); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", a.status)
	}
	d.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'fern-and-fell'`)
	if a := ask(d.Shop, shop, of(d.pa.Issuer)); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("paused: %d %s", a.status, a.body)
	}
}
