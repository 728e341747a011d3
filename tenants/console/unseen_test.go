package console_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign.dev/tenants"
)

// An address may hold a secret: who may not see where events or calls go does not read
// it of what waits, and the trail, which forgets nothing, has none of it.
func TestAddressesThatWaitAreForWhoMaySeeThem(t *testing.T) {
	s := newSite(t)
	ctx, at := t.Context(), hotel+"changes"
	if _, err := s.asks.AskWebhook(ctx, s.program(), tenants.Site{}, "harbor-hotel", tenants.WebhookDraft{URL: "https://hotel.example/hush-hook"}, "abcdefghijkl", "api"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.asks.AskAgentEndpoint(ctx, s.program(), tenants.Site{}, "harbor-hotel", "https://hotel.example/hush-agent", "abcdefghijkl", "api"); err != nil {
		t.Fatal(err)
	}
	v := s.owner(t, "harbor-hotel")
	for role, sees := range map[tenants.Role]bool{tenants.Owner: true, tenants.Security: true, tenants.Support: false, tenants.Viewer: false} {
		s.Exec(t, `UPDATE memberships SET role = $1 WHERE brand_id = 'harbor-hotel'`, role)
		p := v.open(at).must(http.StatusOK, "A new webhook", "API key abcdefghijkl")
		for _, url := range []string{"hush-hook", "hush-agent"} {
			if strings.Contains(p.body, url) != sees {
				t.Errorf("%s, %s: want %v", role, url, sees)
			}
		}
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'change.asked'`); n != 2 {
		t.Errorf("%d facts", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE detail::text LIKE '%hush%'`); n != 0 {
		t.Errorf("the trail has %d addresses", n)
	}
}
