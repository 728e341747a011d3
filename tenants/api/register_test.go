package api_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// Anybody may apply, with a proof; without one the agent's people read why not.
func TestAgentsApplyThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	logo := ""
	apply := func(token string) int {
		t.Helper()
		body := `{"issuer":"https://agent.example","jwks_uri":"https://agent.example/jwks.json","name":"Aria","contact":"ops@agent.example"` + logo + `}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.origin+"/api/v1/agents", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for token, want := range map[string]int{"proof": http.StatusAccepted, "": http.StatusUnprocessableEntity, "x": http.StatusUnprocessableEntity} {
		if got := apply(token); got != want {
			t.Errorf("%q: %d, want %d", token, got, want)
		}
	}
	// A picture comes along, in base64, up to a bound.
	for sent, want := range map[string]int{
		"picture": http.StatusAccepted, strings.Repeat("x", tenants.LargestLogo): http.StatusAccepted,
		strings.Repeat("x", tenants.LargestLogo+100<<10): http.StatusBadRequest,
	} {
		logo = `,"logo":"` + base64.StdEncoding.EncodeToString([]byte(sent)) + `"`
		if got := apply("proof"); got != want {
			t.Errorf("a logo of %d bytes: %d, want %d", len(sent), got, want)
		}
	}
	logo = ""
	// Each makes us fetch from an address that a stranger names (B95).
	for range 17 {
		apply("x")
	}
	if got := apply("proof"); got != http.StatusTooManyRequests {
		t.Errorf("the 24th at once: %d", got)
	}
	a.Clock.Advance(3 * time.Minute)
	if got := apply("proof"); got != http.StatusAccepted {
		t.Errorf("three minutes later: %d", got)
	}
}

// M3: an agent learns what to name in aud where it may act, and nothing of the
// other Brands that are here.
func TestAnAgentLearnsItsAudiences(t *testing.T) {
	a := newAdmin(t)
	read := func(token, query string) (int, []string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.origin+"/api/v1/agents/audiences"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got struct {
			Audiences []tenants.AudienceAt
			Next      string
		}
		_ = json.NewDecoder(resp.Body).Decode(&got)
		out := []string{got.Next}
		for _, one := range got.Audiences {
			out = append(out, string(one.Brand)+" "+one.Audience)
		}
		return resp.StatusCode, out
	}
	for _, token := range []string{"", "x", a.key} {
		if status, got := read(token, ""); status != http.StatusUnauthorized || len(got) != 1 {
			t.Errorf("%q: %d %v", token, status, got)
		}
	}
	hotel, shop := "harbor-hotel "+a.Hotel.Audience, "fern-and-fell "+a.Shop.Audience
	if _, got := read("proof of Aria", ""); !slices.Equal(got, []string{"", shop, hotel}) {
		t.Errorf("%q", got)
	}
	if _, got := read("proof of Aria", "?limit=1"); !slices.Equal(got, []string{"fern-and-fell", shop}) {
		t.Errorf("%q", got)
	}
	if _, got := read("proof of Aria", "?cursor=fern-and-fell"); !slices.Equal(got, []string{"", hotel}) {
		t.Errorf("%q", got)
	}
	if err := tenants.ListAgent(t.Context(), a.owner(), a.Shop.ID, authoritytest.Alex.Agent, false); err != nil {
		t.Fatal(err)
	}
	if _, got := read("proof of Aria", ""); !slices.Equal(got, []string{"", hotel}) {
		t.Errorf("where it is denied: %q", got)
	}
}
