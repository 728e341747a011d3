package consent_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// wish begins at the Hotel with authorization_details.
func (s *site) wish(t *testing.T, details string, scopes ...string) authority.Started {
	t.Helper()
	started, err := s.rules.BeginWith(t.Context(), s.Hotel, alex, authority.Wish{Scopes: scopes, Details: &details})
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// detailsShown are the sentences beneath the boxes.
func (g page) detailsShown() []string {
	out := []string{}
	for _, n := range g.all("span") {
		if attr(n, "class") == "detail" {
			out = append(out, textOf(n))
		}
	}
	return out
}

func textOf(n *html.Node) string {
	var b strings.Builder
	walk(n, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	})
	return b.String()
}

// P47: what an agent asks for more exactly is said in words beneath its permission,
// in the reader's language, escaped and isolated; the record repeats it; the grant
// and the token hold it if the box is ticked.
func TestDetailsAreShownInWords(t *testing.T) {
	s := newSite(t)
	s.Detailed(t, authoritytest.StayCharge())
	const details = `[{"type":"stay_charge","amount":200,"currency":"EUR"},
		{"type":"stay_charge","amount":20.50,"currency":"USD","shop":"<b>Bar</b> \"البار\" & more"}]`
	for language, want := range map[string][]string{
		"en":      {"Up to 200 EUR", `Up to 20.5 USD at <b>Bar</b> "البار" & more`},
		"zh-Hant": {"最多 200 EUR", `最多 20.5 USD（<b>Bar</b> "البار" & more）`},
	} {
		started := s.wish(t, details, "bookings:read", "extras:order")
		p := s.person(t)
		speaking(p, language)
		g := s.ask(t, p, s.Hotel, started, "alex")
		if diff := cmp.Diff(want, g.detailsShown()); diff != "" {
			t.Errorf("%s: %s", language, diff)
		}
		if strings.Contains(g.body, "<b>Bar") || !strings.Contains(g.body, `<bdi>&lt;b&gt;Bar`) {
			t.Errorf("%s: the agent's text is neither escaped nor isolated", language)
		}
		action, form := g.form(t)
		p.answer(action, form, "allow", "bookings:read", "extras:order")
		row := s.record(t, started)["scopes"].([]any)[1].(object)
		if diff := cmp.Diff(any(row["details"]), any([]any{want[0], want[1]})); diff != "" {
			t.Errorf("%s: the record: %s", language, diff)
		}
		for where, g := range map[string]page{"closing page": p.open(g.url.String()), "My agents": p.open(s.pages(s.Hotel, "agents"))} {
			if plain := strings.NewReplacer("\u2068", "", "\u2069", "").Replace(g.text()); !strings.Contains(plain, " · "+want[0]+" · "+want[1]) {
				t.Errorf("%s: %s: %s", language, where, plain)
			}
		}
		got := s.redeem(t, started)
		if len(got.Details) != 2 {
			t.Errorf("%s: the token says %s", language, got.Details)
		}
		if diff := cmp.Diff(want, p.open(s.pages(s.Hotel, "agents")+"?agent="+got.GrantID.String()).detailsShown()); diff != "" {
			t.Errorf("%s: the agent's own page: %s", language, diff)
		}
	}
	// Held, they are shown to whoever comes for something else, and go with the box.
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "account:read")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "alex")
	if got := g.detailsShown(); len(got) != 2 {
		t.Errorf("of what is held it shows %q", got)
	}
	action, form := g.form(t)
	p.answer(action, form, "allow", "bookings:read", "account:read")
	if got := s.redeem(t, started); len(got.Details) != 0 || slices.Contains(got.Scopes, "extras:order") {
		t.Errorf("unticked, the token says %v %s", got.Scopes, got.Details)
	}
}

// A page whose words the Brand changed meanwhile is no answer to the new ones (B42).
func TestOtherWordsForDetailsAreAskedAnew(t *testing.T) {
	s := newSite(t)
	s.Detailed(t, authoritytest.StayCharge())
	started := s.wish(t, `[{"type":"stay_charge","amount":200,"currency":"EUR"}]`, "extras:order")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "alex")
	other := authoritytest.StayCharge()
	other.Words = "At the very most {amount} {currency}[ at {shop}]"
	s.Detailed(t, other)
	s.Brands.Forget(s.Hotel.ID)
	action, form := g.form(t)
	g = p.answer(action, form, "allow", "extras:order")
	if !g.asks() || !slices.Equal(g.detailsShown(), []string{"At the very most 200 EUR"}) {
		t.Fatalf("%d %s", g.status, g.text())
	}
	if state := s.state(t, s.Hotel, started); state != "pending" {
		t.Error(state)
	}
	action, form = g.form(t)
	if g = p.answer(action, form, "allow", "extras:order"); g.status != http.StatusOK || s.state(t, s.Hotel, started) != "approved" {
		t.Errorf("%d %s", g.status, g.text())
	}
}
