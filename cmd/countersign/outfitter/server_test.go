package outfitter

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The proxy forwards the authority, its metadata and the card, each to where it
// stands, and nothing else; what callers claim in headers does not reach the
// service.
func TestTheProxyForwardsThreePathsAndNoClaims(t *testing.T) {
	var came *http.Request
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { came = r; _, _ = io.WriteString(w, "service") }))
	defer service.Close()
	shop, err := New(Config{
		Service: service.URL, Brand: "fern-and-fell", Interface: "http://127.0.0.1:1/support",
		Audience: "urn:x", Credential: "cs_key_secret", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(shop)
	defer front.Close()
	ask := func(path string) (status int, at string) {
		t.Helper()
		came = nil
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer jwt", "If-None-Match": `"1"`, "Cookie": "a=b", "Countersign-User": "forged",
			"Countersign-Authorization": "Bearer cs_forged", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example",
		} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if came == nil {
			return resp.StatusCode, ""
		}
		if came.Header.Get("Authorization") != "Bearer jwt" || came.Header.Get("If-None-Match") != `"1"` {
			t.Errorf("%s: what the service needs does not reach it: %v", path, came.Header)
		}
		for _, name := range []string{"Cookie", "Countersign-User", "Countersign-Authorization", "X-Forwarded-Host", "Forwarded"} {
			if came.Header.Get(name) != "" {
				t.Errorf("%s: %s reaches the service", path, name)
			}
		}
		if "http://"+came.Host != service.URL {
			t.Errorf("%s: the service is called %s", path, came.Host)
		}
		return resp.StatusCode, came.URL.String()
	}
	for path, want := range map[string]string{
		"/support/oauth/jwks.json":                               "/a2a/fern-and-fell/oauth/jwks.json",
		"/support/oauth/log/inclusion?seq=1":                     "/a2a/fern-and-fell/oauth/log/inclusion?seq=1",
		"/.well-known/oauth-authorization-server/support/oauth":  "/.well-known/oauth-authorization-server/a2a/fern-and-fell/oauth",
		"/support/.well-known/agent-card.json":                   "/a2a/fern-and-fell/.well-known/agent-card.json",
		"/support/oauth/.well-known/oauth-authorization-server":  "/a2a/fern-and-fell/oauth/.well-known/oauth-authorization-server",
		"/support/oauth/../../harbor-hotel/oauth/jwks.json":      "",
		"/support/oauth/%2e%2e/%2e%2e/harbor-hotel/jwks.json":    "",
		"/support/oauth/..%2f..%2fharbor-hotel/oauth/jwks.json":  "",
		"/support/oauth/grants%2Fmine":                           "",
		"/support/oauth":                                         "",
		"/support":                                               "",
		"/":                                                      "",
		"/b/fern-and-fell/device":                                "",
		"/console":                                               "",
		"/.well-known/oauth-authorization-server/support/oauth/": "",
	} {
		if status, at := ask(path); at != want || want == "" && status != http.StatusNotFound {
			t.Errorf("%s goes to %q, %d", path, at, status)
		}
	}
	// Who calls is asked before what.
	if status, at := ask("/support/tasks"); status != http.StatusServiceUnavailable && status != http.StatusUnauthorized || at != "" {
		t.Errorf("tasks: %d %q", status, at)
	}
}
