package consent_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// B20: a form's token vouches for that form alone. Every form that one person has
// open in one browser is posted with every other one's token.
func TestNoFormsTokenIsGoodForAnother(t *testing.T) {
	s := skipping(t)
	first := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read", "bookings:change")
	second := s.allow(t, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "a"}, alexAtHotel, "bookings:read")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	brief := s.inBrief(t, p, started)
	list := p.open(s.pages(s.Hotel, "agents"))
	agent := p.open(list.way(t, "agent="+first.id))
	type form struct {
		action string
		values url.Values
	}
	read := func(g page) form {
		action, values := g.form(t)
		return form{action, values}
	}
	forms := map[string]form{
		"sign out":       read(list),
		"end one":        read(p.open(list.way(t, "end="+first.id))),
		"end another":    read(p.open(list.way(t, "end="+second.id))),
		"end all":        read(p.open(list.way(t, "end=all"))),
		"end permission": read(p.open(agent.way(t, "scope=bookings%3Aread"))),
		"allow":          read(p.open(brief.way(t, "full=1"))),
		"continue":       read(brief),
	}
	forms["allow"].values.Set("decision", "allow")
	forms["continue"].values.Set("decision", "continue")
	for to, f := range forms {
		for from, other := range forms {
			if from == to {
				continue
			}
			swapped := url.Values{}
			for name, values := range f.values {
				swapped[name] = values
			}
			swapped.Set("session", other.values.Get("session"))
			if g := p.post(f.action, swapped); g.status != http.StatusBadRequest {
				t.Errorf("%s, with the token of %s: %d %s", to, from, g.status, g.words())
			}
		}
	}
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Errorf("the request is %s", got)
	}
	if g := p.open(s.pages(s.Hotel, "agents")); !strings.Contains(g.words(), "alex@example.com") {
		t.Errorf("signed out: %s", g.words())
	}
	mustHold(t, []*allowed{first, second}, 2, 1)
	// It was the tokens: with its own, the form counts.
	f := forms["end permission"]
	p.post(f.action, f.values)
	mustHold(t, []*allowed{first, second}, 1, 1)
}

// B38: a page of My agents that was open for too long ends nothing, and leads back
// to the list by way of the sign-in.
func TestLapsedLoginEndsNothing(t *testing.T) {
	s := newSite(t)
	a := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read", "bookings:change")
	p := s.person(t)
	action, form := p.open(s.mine(t, p, s.Hotel, "alex").way(t, "end="+a.id)).choice(t)
	s.Clock.Advance(15 * time.Minute)

	lapsed := p.post(action, form)
	if lapsed.status != http.StatusForbidden || !strings.Contains(lapsed.words(), "look at your agents again") {
		t.Fatalf("%d %s", lapsed.status, lapsed.words())
	}
	list := p.signInBy(lapsed.way(t, "/login"), "alex")
	if len(list.all("article")) != 1 {
		t.Errorf("the sign-in leads to %s", list.words())
	}
	mustHold(t, []*allowed{a}, 2)
}

// R16: a form's address, opened as a put-away tab is, changes nothing and leads to
// the list.
func TestAddressOfAFormLeadsBack(t *testing.T) {
	s := newSite(t)
	a := s.allow(t, s.Hotel, alex, alexAtHotel, "bookings:read", "bookings:change")
	p := s.person(t)
	action, form := p.open(s.mine(t, p, s.Hotel, "alex").way(t, "end="+a.id)).choice(t)
	for _, address := range []string{action, strings.SplitN(action, "?", 2)[0] + "?" + form.Encode(), s.pages(s.Hotel, "agents/signout")} {
		if !strings.HasPrefix(address, "https://") {
			address = s.url + address
		}
		if g := p.open(address); g.status != http.StatusOK || len(g.all("article")) != 1 {
			t.Errorf("%s: %d %s", address, g.status, g.words())
		}
	}
	mustHold(t, []*allowed{a}, 2)
}
