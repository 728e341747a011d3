package consent_test

import (
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// marked are the scopes whose rows say that they are allowed already.
func (g page) marked() []string {
	var out []string
	for _, row := range g.all("label") {
		var id string
		held := false
		walk(row, func(n *html.Node) {
			if n.Type == html.ElementNode && attr(n, "name") == "scope" {
				id = attr(n, "value")
			}
			held = held || n.Type == html.TextNode && strings.Contains(n.Data, "Already allowed")
		})
		if held {
			out = append(out, id)
		}
	}
	return out
}

// redeem takes the tokens that the agent waits for.
func (s *site) redeem(t *testing.T, started authority.Started) authority.Tokens {
	t.Helper()
	tokens, err := s.rules.Poll(t.Context(), s.Hotel, alex, started.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// wire.md §6, M15: whether an agent asks for what is missing, for that and what
// it has, or for everything: the page shows all of it, what is allowed ticked
// and marked so, and one grant comes of it.
func TestWhatIsHeldIsTickedAndMarked(t *testing.T) {
	s := newSite(t)
	hotel := *s.Hotel
	for name, tt := range map[string]struct{ asked, shown, paid []string }{
		"missing": {
			[]string{"bookings:change"},
			[]string{"bookings:read", "bookings:change", "account:read"},
			[]string{"bookings:change", "bookings:read", "account:read"},
		},
		"granted and missing": {
			[]string{"account:read", "bookings:read", "bookings:change"},
			[]string{"bookings:read", "bookings:change", "account:read"},
			[]string{"account:read", "bookings:read", "bookings:change"},
		},
		"all": {
			[]string{"bookings:read", "bookings:change", "extras:order", "account:read"},
			[]string{"bookings:read", "bookings:change", "account:read", "extras:order"}, // what is sensitive stands last
			[]string{"bookings:read", "bookings:change", "extras:order", "account:read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.anew(t, hotel)
			first := s.holding(t, "bookings:read", "account:read")
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, tt.asked...)
			p := s.person(t)
			g := s.ask(t, p, s.Hotel, started, "alex")
			action, form := g.form(t)
			if diff := cmp.Diff(tt.shown, form["scope"]); diff != "" {
				t.Errorf("ticked: %s", diff)
			}
			if diff := cmp.Diff([]string{"bookings:read", "account:read"}, g.marked()); diff != "" {
				t.Errorf("marked: %s", diff)
			}
			form.Set("decision", "allow")
			p.post(action, form)
			paid := s.redeem(t, started)
			if diff := cmp.Diff(tt.paid, paid.Scopes); diff != "" || paid.GrantID != first.GrantID {
				t.Errorf("grant %v: %s", paid.GrantID, diff)
			}
			if n := s.Count(t, `SELECT count(*) FROM grants`); n != 1 {
				t.Errorf("%d grants", n)
			}
		})
	}
}

// wire.md §6: unticking what is held narrows: the closing page says so, and every
// family of the grant is without it from then on.
func TestUntickingNarrows(t *testing.T) {
	s := newSite(t)
	first := s.holding(t, "bookings:read", "account:read")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:change")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	form["scope"] = []string{"bookings:read", "bookings:change"}
	form.Set("decision", "allow")
	done := p.post(action, form)
	_, ended, found := strings.Cut(done.text(), "No longer allowed")
	if !found || !strings.Contains(ended, "See your name and contact details") {
		t.Errorf("the closing page does not say what ended: %s", done.text())
	}
	want := []string{"bookings:read", "bookings:change"}
	old, err := s.rules.Refresh(t.Context(), s.Hotel, alex, first.Refresh, nil)
	if err != nil || cmp.Diff(want, old.Scopes) != "" {
		t.Errorf("the old family: %v, %v", old.Scopes, err)
	}
	if paid := s.redeem(t, started); !slices.Contains(paid.Scopes, "bookings:read") || slices.Contains(paid.Scopes, "account:read") {
		t.Errorf("the new one: %v", paid.Scopes)
	}
}

// B39: what has left the card is not shown, not granted, and in no token: whether
// it left before the page, under it, or after the yes.
func TestWhatLeftTheCardIsNotGiven(t *testing.T) {
	s := newSite(t)
	hotel := *s.Hotel
	retire := func(id string) {
		t.Helper()
		s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
			b.Scopes = slices.DeleteFunc(slices.Clone(b.Scopes), func(s tenants.Scope) bool { return s.ID == id })
		})
	}
	for _, when := range []string{"before the page", "under the page", "after the yes"} {
		t.Run(when, func(t *testing.T) {
			s.anew(t, hotel)
			s.holding(t, "account:read")
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "bookings:change")
			p := s.person(t)
			if when == "before the page" {
				retire("bookings:change")
				retire("account:read")
			}
			g := s.ask(t, p, s.Hotel, started, "alex")
			if when == "before the page" && g.boxes() != 1 {
				t.Errorf("%d boxes", g.boxes())
			}
			action, form := g.form(t)
			form.Set("decision", "allow")
			if when == "under the page" { // B42: shown again, with a word about it
				retire("bookings:change")
				again := p.post(action, form)
				if again.boxes() != 2 || !strings.Contains(again.text(), "The list changed") {
					t.Fatalf("%d boxes: %s", again.boxes(), again.text())
				}
				action, form = again.form(t)
				form.Set("decision", "allow")
			}
			p.post(action, form)
			if when == "after the yes" {
				retire("bookings:change")
			}
			if paid := s.redeem(t, started); slices.Contains(paid.Scopes, "bookings:change") {
				t.Errorf("paid out %v", paid.Scopes)
			}
		})
	}
}

// B42: a no to one permission is not for ever: asked for again, it is offered
// like any other.
func TestUntickedOnceIsOfferedAgain(t *testing.T) {
	s := newSite(t)
	first := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "bookings:change")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, first, "alex").form(t)
	form["scope"] = []string{"bookings:read"}
	form.Set("decision", "allow")
	p.post(action, form)
	again := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:change")
	action, form = s.ask(t, p, s.Hotel, again, "alex").form(t)
	if diff := cmp.Diff([]string{"bookings:read", "bookings:change"}, form["scope"]); diff != "" {
		t.Fatal(diff)
	}
	form.Set("decision", "allow")
	p.post(action, form)
	if paid := s.redeem(t, again); len(paid.Scopes) != 2 {
		t.Errorf("paid out %v", paid.Scopes)
	}
}
