package consent_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	jose "github.com/go-jose/go-jose/v4"
)

// The Brand's header shows its logo from our own origin, and the foot of the page
// the domain it has proved; without them, neither.
func TestPagesShowLogoAndDomain(t *testing.T) {
	s := newSite(t)
	edit := s.rules.Editor(authority.ByOperator())
	var raw bytes.Buffer
	if err := png.Encode(&raw, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}
	if err := tenants.SetLogo(t.Context(), edit, s.Hotel.ID, raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
		VALUES ('harbor-hotel', 'hotel.example', 'x', $1, $1, 'dns')`, s.Clock.Now())
	hotel := s.Reload(t, s.Hotel.ID)
	get := func(url string) (*http.Response, string) {
		t.Helper()
		resp, err := s.person(t).client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	_, page := get(s.link(hotel, authoritytest.Begin(t, s.rules, hotel, authoritytest.Alex, "bookings:read")))
	if !strings.Contains(page, "/b/harbor-hotel/logo?v="+hotel.Logo) || !strings.Contains(page, "hotel.example") {
		t.Error("the page shows no logo or no domain")
	}
	_, page = get(s.link(s.Shop, authoritytest.Begin(t, s.rules, s.Shop, authoritytest.Alex, "orders:read")))
	if strings.Contains(page, "/logo?") || strings.Contains(page, "hotel.example") {
		t.Error("the shop's page shows the hotel's")
	}
	for url, cache := range map[string]string{
		"logo?v=" + hotel.Logo: "public, max-age=31536000, immutable",
		"logo?v=old":           "no-cache",
	} {
		resp, body := get(s.pages(hotel, url))
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "image/png" || resp.Header.Get("Cache-Control") != cache ||
			resp.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(body, "\x89PNG") {
			t.Errorf("%s: %d %v", url, resp.StatusCode, resp.Header)
		}
	}
	for _, url := range []string{s.pages(s.Shop, "logo"), s.url + "/b/nobody/logo", s.url + "/b/nobody/login/jwks.json"} {
		if resp, _ := get(url); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", url, resp.StatusCode)
		}
	}
}

// The whole way with private_key_jwt: the key that the IdP fetches from us is the
// one that signs.
func TestLoginWithAKeyOfOurs(t *testing.T) {
	s := newSite(t)
	ctx, edit := t.Context(), s.rules.Editor(authority.ByOperator())
	idp := s.idp[s.Hotel.ID]
	c, err := tenants.SaveCandidate(ctx, s.DB, edit, s.Master, tenants.Site{AllowLoopback: true}, s.Hotel.ID, tenants.ConnectionDraft{
		Issuer: idp.Issuer(), ClientID: "countersign", Auth: tenants.AuthPrivateKey, SubjectClaim: "number", Scopes: []string{"openid", "email"},
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.person(t).client.Get(s.pages(s.Hotel, "login/jwks.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil || len(set.Keys) != 1 || !set.Keys[0].IsPublic() {
		t.Fatalf("%d keys, %v", len(set.Keys), err)
	}
	idp.SetClientKey(set.Keys[0])
	if err := tenants.MakeLive(ctx, edit, tenants.Site{AllowLoopback: true}, s.Hotel.ID, c.ID); err != nil {
		t.Fatal(err)
	}
	started := authoritytest.Begin(t, s.rules, s.Hotel, authoritytest.Alex, "bookings:read")
	if page := s.ask(t, s.person(t), s.Hotel, started, "alex"); !strings.Contains(page.body, "bookings") {
		t.Errorf("no question: %.300s", page.body)
	}
}
