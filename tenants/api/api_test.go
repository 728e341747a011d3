package api_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/api"
)

type admin struct {
	*authoritytest.World
	t   *testing.T
	url string
	key string
}

func newAdmin(t *testing.T) *admin {
	t.Helper()
	w := authoritytest.New(t)
	mux := http.NewServeMux()
	api.New(api.Config{
		Brands: w.Brands, Credentials: tenants.NewCredentials(w.DB, w.Clock.Now), Keys: w.NewKeys(),
		Policy: func(*tenants.Brand) signing.Policy { return signing.Policy{Alg: signing.ES256, Backend: "local"} }, Log: slog.New(slog.DiscardHandler),
	}).Routes(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	a := &admin{World: w, t: t, url: s.URL + "/api/v1/brands/"}
	a.key = a.newKey(w.Hotel, tenants.RightAdmin)
	return a
}

func (a *admin) newKey(b *tenants.Brand, rights ...tenants.Right) string {
	a.t.Helper()
	key, err := tenants.CreateAPIKey(a.t.Context(), a.DB, b.ID, "test", rights, a.Clock.Now())
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *admin) call(method, path, key, body string) (status int, got map[string]any) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if strings.Contains(string(raw), `"d":`) {
		a.t.Fatalf("a private member: %s", raw)
	}
	if resp.StatusCode >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		a.t.Errorf("%s %s: %d as %s", method, path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	_ = json.Unmarshal(raw, &got)
	return resp.StatusCode, got
}

// wire.md §10: only the Brand's own key with the right admin; everybody else
// hears the same, whether the Brand exists or not.
func TestOnlyTheBrandsAdminKeyOpens(t *testing.T) {
	a := newAdmin(t)
	for what, try := range map[string]struct {
		path, key string
		want      int
	}{
		"no key":                {"harbor-hotel/keys", "", 401},
		"nonsense":              {"harbor-hotel/keys", "x", 401},
		"another Brand's":       {"harbor-hotel/keys", a.newKey(a.Shop, tenants.RightAdmin), 401},
		"unknown Brand":         {"nobody/keys", a.key, 401},
		"without the right":     {"harbor-hotel/keys", a.newKey(a.Hotel, tenants.RightIntrospect, tenants.RightReceipts), 403},
		"the key, in its place": {"harbor-hotel/keys", a.key, 200},
	} {
		if status, _ := a.call(http.MethodGet, try.path, try.key, ""); status != try.want {
			t.Errorf("%s: %d, want %d", what, status, try.want)
		}
	}
}

// A key's life through the API: published, waiting, taken back; revoked with a
// reason, which stands in the archive.
func TestKeysThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	status, next := a.call(http.MethodPost, "harbor-hotel/keys", a.key, "")
	if status != http.StatusAccepted || next["state"] != "next" {
		t.Fatalf("%d %v", status, next)
	}
	from, err := time.Parse(time.RFC3339, next["signs_from"].(string))
	if err != nil || !from.Equal(a.Clock.Now().Add(signing.PublishWait)) {
		t.Errorf("signs from %v, %v", from, err)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys", a.key, ""); status != http.StatusConflict {
		t.Errorf("a second next key: %d", status)
	}
	kid := next["kid"].(string)
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+kid+"/retire", a.key, ""); status != http.StatusOK {
		t.Errorf("retire: %d", status)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/nonsense/retire", a.key, ""); status != http.StatusNotFound {
		t.Errorf("retire nonsense: %d", status)
	}
	_, list := a.call(http.MethodGet, "harbor-hotel/keys", a.key, "")
	current := ""
	for _, k := range list["keys"].([]any) {
		if m := k.(map[string]any); m["state"] == "current" {
			current = m["kid"].(string)
		}
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/retire", a.key, ""); status != http.StatusConflict {
		t.Errorf("retire the current key: %d", status)
	}
	for body, want := range map[string]int{
		"": 400, "{}": 422, `{"reason":" "}`: 422, `{"why":"x"}`: 400, `{"reason":"x"} {}`: 400,
		`{"reason":"` + strings.Repeat("x", 300) + `"}`: 422,
	} {
		if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/revoke", a.key, body); status != want {
			t.Errorf("revoke with %.20q: %d, want %d", body, status, want)
		}
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/revoke", a.newKey(a.Shop, tenants.RightAdmin), `{"reason":"x"}`); status != 401 {
		t.Errorf("another Brand revokes: %d", status)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/revoke", a.key, `{"reason":"laptop stolen"}`); status != http.StatusOK {
		t.Errorf("revoke: %d", status)
	}
	archive, err := a.NewKeys().Archive(t.Context(), a.Hotel.ID)
	if err != nil || !strings.Contains(string(archive.Body), "laptop stolen") {
		t.Errorf("%s, %v", archive.Body, err)
	}
}
