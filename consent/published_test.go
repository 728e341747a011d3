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
	"countersign.dev/authority/agent"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	jose "github.com/go-jose/go-jose/v4"
	"golang.org/x/net/html"
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

// pictures are the addresses of the pictures in a part of the page.
func (g page) pictures(part string) string {
	var out []string
	for _, within := range g.all(part) {
		walk(within, func(n *html.Node) {
			if n.Data == "img" {
				out = append(out, attr(n, "src"))
			}
		})
	}
	return strings.Join(out, " ")
}

// An agent's picture stands on the pages on which people choose, as its own claim,
// and takes the place of nothing that was verified. Nobody sees the picture of one
// that only applies, or that nobody has looked at.
func TestPagesShowAnAgentsPicture(t *testing.T) {
	s := newSite(t)
	registry := agent.NewRegistry(agent.RegistryConfig{DB: s.Owner, Now: s.Clock.Now})
	var raw bytes.Buffer
	if err := png.Encode(&raw, image.NewGray(image.Rect(0, 0, 300, 300))); err != nil {
		t.Fatal(err)
	}
	p := s.person(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	plain := s.ask(t, p, s.Hotel, started, "alex")
	if plain.pictures("main") != "" || strings.Contains(plain.words(), "chose the picture itself") {
		t.Errorf("a picture of nobody's:\n%s", plain.words())
	}
	action, form := plain.form(t)
	if err := registry.SetLogo(t.Context(), alex.Agent, raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	// What was shown has changed under the open page: the answer is asked for anew.
	if again := p.answer(action, form, "allow", "bookings:read"); !strings.Contains(again.words(), "changed while this page was open") {
		t.Errorf("allowed with a picture that was not shown:\n%s", again.words())
	}
	known, err := registry.Find(t.Context(), alex.Agent)
	if err != nil || known.Logo == "" {
		t.Fatalf("%+v, %v", known, err)
	}
	address := "/b/harbor-hotel/agents/logo?v=" + known.Logo
	seen := p.open(plain.url.String())
	host := strings.Index(seen.words(), "agent.example asked")
	claim := strings.Index(seen.words(), "chose the picture itself, like its name")
	if seen.pictures("main") != address || seen.pictures("header") != "" || host < 0 || claim < host {
		t.Errorf("host at %d, claim at %d, %q, %q:\n%s", host, claim, seen.pictures("main"), seen.pictures("header"), seen.words())
	}
	action, form = seen.form(t)
	p.answer(action, form, "allow", "bookings:read")
	if got := s.record(t, started)["agent_logo"]; got != known.Logo {
		t.Errorf("the record says %v", got)
	}
	mine := p.open(s.pages(s.Hotel, "agents"))
	one := p.open(mine.link(t, "agent="))
	for name, page := range map[string]page{"My agents": mine, "one agent": one} {
		if page.pictures("main") != address || !strings.Contains(page.words(), "agent.example") {
			t.Errorf("%s: %q\n%s", name, page.pictures("main"), page.words())
		}
	}
	get := func(url string) *http.Response {
		t.Helper()
		resp, err := p.client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if r := get(s.url + address); r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "image/png" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	waiting := strings.Repeat("w", len(known.Logo))
	s.Exec(t, `INSERT INTO agent_applications (issuer, jwks_uri, name, contact, asked_at, state, logo_png, logo_hash)
		VALUES ('https://new.example', 'https://new.example/k', 'New', 'ops@new.example', $1, 'pending', 'x', $2)`, s.Clock.Now(), waiting)
	for _, url := range []string{s.pages(s.Hotel, "agents/logo"), s.pages(s.Hotel, "agents/logo?v="+waiting), s.url + "/b/nobody/agents/logo?v=" + known.Logo} {
		if r := get(url); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", url, r.StatusCode)
		}
	}
	if err := registry.SetLogo(t.Context(), alex.Agent, nil); err != nil {
		t.Fatal(err)
	}
	if gone := p.open(s.pages(s.Hotel, "agents")); gone.pictures("main") != "" {
		t.Error("it was taken away, and is shown")
	}
}
