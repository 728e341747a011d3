package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// An owner who allows a change reads whom or what it is of, also where that stays as it
// is, and what becomes empty; there is no column for what never was, or never will be.
func TestACardSaysWhomItIsAbout(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	ctx, edit := t.Context(), s.program()
	const brand, by = "harbor-hotel", "abcdefghijkl"
	rita := uuid.New()
	s.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, 'rita@example.com', 'rita@example.com', 'Rita', 'en', $2)`, rita, s.Clock.Now())
	s.Exec(t, `INSERT INTO memberships VALUES ('harbor-hotel', $1, 'viewer', $2, $2)`, rita, s.Clock.Now())
	hook, _, err := tenants.CreateWebhook(ctx, edit, s.Master, tenants.Site{}, brand, tenants.WebhookDraft{URL: "https://hotel.example/hook", Events: []string{"grant.created"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.SetAgentEndpoint(ctx, edit, s.Master, tenants.Site{}, brand, "https://hotel.example/agent"); err != nil {
		t.Fatal(err)
	}
	// card asks, and is the card without its markup, then nothing waits again.
	card := func(_ tenants.PendingChange, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		p := owner.open(hotel + "changes").must(http.StatusOK)
		s.Exec(t, `UPDATE pending_changes SET state = 'rejected', decided_at = now(), payload_sealed = NULL WHERE state = 'pending'`)
		_, body, _ := strings.Cut(p.body, `class="table diff">`)
		body, _, _ = strings.Cut(body, "</table>")
		body = regexp.MustCompile(`<[^>]+>`).ReplaceAllString(strings.ReplaceAll(body, "<wbr>", ""), " ")
		return strings.Join(strings.Fields(body), " ")
	}
	for what, tt := range map[string][2]string{
		"a role":               {card(s.asks.AskRole(ctx, edit, brand, rita, tenants.Support, by, "api")), "What Now After Person rita@example.com rita@example.com Role Viewer Support"},
		"events":               {card(s.asks.AskWebhookEvents(ctx, edit, brand, hook.ID, []string{"grant.revoked"}, by, "api")), "What Now After Events grant.created – Agent allowed grant.revoked – Agent ended Address https://hotel.example/hook https://hotel.example/hook"},
		"an address that goes": {card(s.asks.AskAgentEndpoint(ctx, edit, tenants.Site{}, brand, "", by, "api")), "What Now After Address https://hotel.example/agent –"},
		"somebody new":         {card(s.asks.AskInvitation(ctx, edit, brand, "sami@example.com", tenants.Support, by, "api")), "What After Person sami@example.com Role Support"},
		"somebody who goes":    {card(s.asks.AskRemoval(ctx, edit, brand, rita, by, "api")), "What Now Person rita@example.com Role Viewer"},
	} {
		if card, want := tt[0], tt[1]; card != want {
			t.Errorf("%s: %q, want %q", what, card, want)
		}
	}
}
