package oauth_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// P6, M7: routes first: an unknown Brand, an unknown path or a Brand without
// delegation is 404 with or without a token, a wrong method 405.
func TestRoutesComeBeforeAuthentication(t *testing.T) {
	d := newDoor(t, nil)
	d.Save(t, d.Shop, func(b *tenants.Brand) { b.Delegation = false })
	for _, token := range []string{"", d.pa.Token(t, agenttest.Claims{})} {
		for _, path := range []string{
			"/a2a/nobody/oauth/token", "/a2a/nobody/oauth/device_authorization", "/a2a/nobody/oauth/revoke",
			"/a2a/harbor-hotel/oauth/nonsense", "/a2a/harbor-hotel/oauth/token/", "/a2a/HARBOR-HOTEL/oauth/token",
			"/a2a/harbor%2Dhotel%2F/oauth/token", "/a2a/harbor-hotel./oauth/token",
			"/a2a/fern-and-fell/oauth/token", "/a2a/fern-and-fell/oauth/device_authorization", "/a2a/fern-and-fell/oauth/revoke",
			"/a2a/fern-and-fell/oauth/.well-known/oauth-authorization-server",
		} {
			method := http.MethodPost
			if strings.Contains(path, "well-known") {
				method = http.MethodGet
			}
			if a := do(t, request(t, method, d.url+path, token, "")); a.status != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.status)
			}
		}
		for _, route := range []string{"/token", "/device_authorization", "/revoke"} {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodHead} {
				if a := do(t, request(t, method, d.issuer(d.Hotel)+route, token, "")); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
					t.Errorf("%s %s: %d", method, route, a.status)
				}
			}
		}
	}
	if a := do(t, request(t, http.MethodPost, d.url+"/a2a/fern-and-fell/oauth/.well-known/oauth-authorization-server", "", "")); a.status != http.StatusNotFound {
		t.Errorf("POST to the metadata of a Brand without delegation: %d", a.status)
	}
	// Receipts outlive delegation, so the keys stay.
	if a := do(t, request(t, http.MethodGet, d.url+"/a2a/fern-and-fell/oauth/jwks.json", "", "")); a.status != 200 {
		t.Errorf("jwks of a Brand without delegation: %d", a.status)
	}
	card := do(t, request(t, http.MethodGet, d.url+"/a2a/fern-and-fell/.well-known/agent-card.json", "", ""))
	if card.status != 200 || strings.Contains(card.body, "userDelegation") {
		t.Errorf("card of a Brand without delegation: %d %s", card.status, card.body)
	}
}

// P38, P39, P40, M8, R31, B59, B94: card and metadata agree byte for byte, are
// on the interface's origin whatever Host says, and keep the Brand's order.
func TestCardAndMetadataAgree(t *testing.T) {
	d := newDoor(t, nil)
	get := func(path string) answer {
		t.Helper()
		req := request(t, http.MethodGet, d.url+path, "", "")
		req.Host = "evil.example"
		req.Header.Set("X-Forwarded-Host", "evil.example")
		req.Header.Set("X-Forwarded-Proto", "http")
		req.Header.Set("Forwarded", "host=evil.example;proto=http")
		a := do(t, req)
		if a.status != 200 || strings.Contains(a.body, "evil") {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return a
	}
	card := get("/a2a/harbor-hotel/.well-known/agent-card.json")
	meta := get("/a2a/harbor-hotel/oauth/.well-known/oauth-authorization-server")
	inserted := get("/.well-known/oauth-authorization-server/a2a/harbor-hotel/oauth")
	if meta.body != inserted.body {
		t.Error("the two forms of the metadata differ")
	}
	iface := authoritytest.PublicURL + "/a2a/harbor-hotel"
	issuer := iface + "/oauth"
	wantMeta := map[string]any{
		"issuer": issuer, "device_authorization_endpoint": issuer + "/device_authorization",
		"token_endpoint": issuer + "/token", "jwks_uri": issuer + "/jwks.json", "revocation_endpoint": issuer + "/revoke",
		"introspection_endpoint": issuer + "/introspect", "introspection_endpoint_auth_methods_supported": []any{"Bearer"},
		"scopes_supported":                                      []any{"bookings:read", "bookings:change", "extras:order", "account:read"},
		"grant_types_supported":                                 []any{deviceGrant, "refresh_token"},
		"response_types_supported":                              []any{},
		"token_endpoint_auth_methods_supported":                 []any{"private_key_jwt"},
		"token_endpoint_auth_signing_alg_values_supported":      []any{"ES256", "RS256"},
		"revocation_endpoint_auth_methods_supported":            []any{"private_key_jwt"},
		"revocation_endpoint_auth_signing_alg_values_supported": []any{"ES256", "RS256"},
		"status_list_aggregation_endpoint":                      issuer + "/status",
		"grant_management_endpoint":                             issuer + "/grants",
		"grant_management_actions_supported":                    []any{"query", "revoke"},
		"receipt_log_checkpoint_uri":                            issuer + "/log/checkpoint",
	}
	if diff := cmp.Diff(wantMeta, meta.json); diff != "" {
		t.Error(diff)
	}
	schemes := card.json["securitySchemes"].(map[string]any)
	wantSchemes := map[string]any{
		"paJwt": map[string]any{"httpAuthSecurityScheme": map[string]any{"scheme": "Bearer", "bearerFormat": "JWT"}},
		"userDelegation": map[string]any{"oauth2SecurityScheme": map[string]any{
			"oauth2MetadataUrl": issuer + "/.well-known/oauth-authorization-server",
			"flows": map[string]any{"deviceCode": map[string]any{
				"deviceAuthorizationUrl": issuer + "/device_authorization", "tokenUrl": issuer + "/token", "refreshUrl": issuer + "/token",
				"scopes": map[string]any{
					"bookings:read": "See your bookings", "bookings:change": "Change or cancel a booking",
					"extras:order": "Order extras to your room", "account:read": "See your name and contact details",
				},
			}},
		}},
	}
	if diff := cmp.Diff(wantSchemes, schemes); diff != "" {
		t.Error(diff)
	}
	none := map[string]any{"list": []any{}}
	wantRequirements := []any{
		map[string]any{"schemes": map[string]any{"paJwt": none}},
		map[string]any{"schemes": map[string]any{"paJwt": none, "userDelegation": none}},
	}
	if diff := cmp.Diff(wantRequirements, card.json["securityRequirements"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"streaming": false, "pushNotifications": false, "extendedAgentCard": false}, card.json["capabilities"]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(card.body, `"scopes":{"bookings:read":"See your bookings","bookings:change":"Change or cancel a booking","extras:order":"Order extras to your room","account:read":`) {
		t.Errorf("the Brand's order is lost: %s", card.body)
	}
	known := map[string]bool{
		"name": true, "description": true, "version": true, "supportedInterfaces": true, "capabilities": true,
		"defaultInputModes": true, "defaultOutputModes": true, "skills": true, "securitySchemes": true, "securityRequirements": true,
	}
	for member := range card.json {
		if !known[member] {
			t.Errorf("unknown top-level member %s", member)
		}
	}
	// The name of the identity scheme is the Brand's choice; there is only one.
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.IdentityScheme = "platformJwt" })
	d.Clock.Advance(2 * time.Second)
	other := get("/a2a/harbor-hotel/.well-known/agent-card.json")
	if strings.Contains(other.body, `"paJwt"`) || !strings.Contains(other.body, `"platformJwt"`) {
		t.Error(other.body)
	}
}

// P37 (in part), R56, B77: the JWKS may be kept and asked for again, from any
// origin, and holds nothing private.
func TestJWKSIsCacheableAndPublic(t *testing.T) {
	d := newDoor(t, nil)
	to := d.issuer(d.Hotel) + "/jwks.json"
	a := do(t, request(t, http.MethodGet, to, "", ""))
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Cache-Control"), "public, max-age=300") ||
		a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("ETag") == "" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	keys := a.json["keys"].([]any)
	if len(keys) != 1 {
		t.Fatalf("%d keys", len(keys))
	}
	for member := range keys[0].(map[string]any) {
		if !strings.Contains(" kty crv x y kid alg use ", " "+member+" ") {
			t.Errorf("member %s is published", member)
		}
	}
	again := request(t, http.MethodGet, to, "", "")
	again.Header.Set("If-None-Match", `"other", W/`+a.header.Get("ETag"))
	if b := do(t, again); b.status != http.StatusNotModified || b.body != "" {
		t.Errorf("asked again: %d %q", b.status, b.body)
	}
	if b := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/jwks-archive.json", "", "")); b.status != 200 || b.body != `{"keys":[]}` {
		t.Errorf("archive: %d %s", b.status, b.body)
	}
	if b := do(t, request(t, http.MethodOptions, to, "", "")); b.status != http.StatusNoContent || b.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("preflight: %d", b.status)
	}
	if b := do(t, request(t, http.MethodGet, d.url+"/a2a/nobody/oauth/jwks.json", "", "")); b.status != http.StatusNotFound {
		t.Errorf("unknown Brand: %d", b.status)
	}
}
