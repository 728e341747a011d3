package consent_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// skipping is a site whose hotel lets agents through with one Continue.
func skipping(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.SkipConsent = true })
	return s
}

// anew forgets all grants and requests, and sets the hotel up as it was given:
// a new site takes a second.
func (s *site) anew(t *testing.T, hotel tenants.Brand) {
	t.Helper()
	s.Exec(t, `TRUNCATE refresh_tokens, device_requests, grants, consents CASCADE`)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { *b = hotel })
}

// decisions are the answers that a page offers.
func (g page) decisions() []string {
	var out []string
	for _, b := range g.all("button") {
		if attr(b, "name") == "decision" {
			out = append(out, attr(b, "value"))
		}
	}
	return out
}

func (g page) boxes() int {
	n := 0
	for _, in := range g.all("input") {
		if attr(in, "name") == "scope" {
			n++
		}
	}
	return n
}

// inBrief brings alex to the page with one Continue.
func (s *site) inBrief(t *testing.T, p *person, started authority.Started) page {
	t.Helper()
	g := s.ask(t, p, s.Hotel, started, "alex")
	if g.boxes() != 0 || !slices.Equal(g.decisions(), []string{"continue", "deny"}) {
		t.Fatalf("not in brief: %v\n%s", g.decisions(), g.text())
	}
	return g
}

// Consent is skipped, never the act: no boxes, but who, whose account, which
// code, what is allowed, until when, and the ways to change and end it.
func TestOneContinueWhereNothingNewIsAsked(t *testing.T) {
	s := skipping(t)
	tokens := s.holding(t, "bookings:read", "account:read")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	g := s.inBrief(t, p, started)
	ends := s.Clock.Now().AddDate(0, 0, 30)
	for _, want := range []string{
		"alex@example.com", "agent.example", started.UserCode.String(), "See your bookings", "See your name and contact details",
		ends.Format("2"), "Change what it may do", "End it",
	} {
		if !strings.Contains(g.text(), want) {
			t.Errorf("the page does not show %q:\n%s", want, g.text())
		}
	}
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Fatalf("R11: %s without any act", got)
	}
	// B40: both ways lead where they say.
	if full := p.open(g.way(t, "full=1")); full.boxes() != 2 || !slices.Equal(full.decisions(), []string{"allow", "deny"}) {
		t.Errorf("the full question: %v", full.decisions())
	}
	if end := p.open(g.way(t, "end=")); !strings.Contains(end.text(), "End what Aria may do?") {
		t.Errorf("the end: %s", end.text())
	}
	s.Clock.Advance(1)
	before := s.Count(t, `SELECT version FROM grants`)
	action, form := g.form(t)
	form.Set("decision", "continue")
	done := p.post(action, form)
	if done.status != 200 || !strings.Contains(done.text(), "Aria can go on") || !strings.Contains(done.text(), "See your name and contact details") ||
		strings.Contains(done.text(), "No longer allowed") {
		t.Fatalf("%d %s", done.status, done.text())
	}
	again, err := s.rules.Poll(t.Context(), s.Hotel, alex, started.DeviceCode)
	if err != nil || again.GrantID != tokens.GrantID {
		t.Fatalf("%v, %v", again, err)
	}
	held, err := s.rules.Grants(t.Context(), s.Hotel.ID, "harbor-hotel-7")
	if err != nil || len(held) != 1 || !held[0].ExpiresAt.Equal(ends) || s.Count(t, `SELECT version FROM grants`) != before {
		t.Errorf("the grant has changed: %+v, %v", held, err)
	}
	if n := s.Count(t, `SELECT count(*) FROM consents WHERE answer = 'continued'`); n != 1 {
		t.Error("not recorded")
	}
}

// Don't allow is as near as Continue, and changes nothing.
func TestDenyInBrief(t *testing.T) {
	s := skipping(t)
	tokens := s.holding(t, "bookings:read")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	action, form := s.inBrief(t, p, started).form(t)
	form.Set("decision", "deny")
	p.post(action, form)
	if got := s.state(t, s.Hotel, started); got != "denied" {
		t.Errorf("the request is %s", got)
	}
	if _, err := s.rules.Refresh(t.Context(), s.Hotel, alex, tokens.Refresh, nil); err != nil {
		t.Errorf("what was held: %v", err)
	}
}

// B36: the full question wherever one condition is missing.
func TestContinueIsNotEnough(t *testing.T) {
	reworded := func(change func(*tenants.Scope)) func(*testing.T, *site) {
		return func(t *testing.T, s *site) {
			s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
				b.Scopes = slices.Clone(b.Scopes)
				change(&b.Scopes[0])
			})
		}
	}
	s := skipping(t)
	hotel := *s.Hotel
	read := []string{"bookings:read"}
	for name, tt := range map[string]struct {
		held, asked []string
		change      func(*testing.T, *site)
		who         authority.Caller
		user        string
	}{
		"the Brand does not want it": {read, read, func(t *testing.T, s *site) {
			s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.SkipConsent = false })
		}, alex, "alex"},
		"more is asked":               {read, []string{"bookings:read", "bookings:change"}, nil, alex, "alex"},
		"something else is asked":     {read, []string{"account:read"}, nil, alex, "alex"},
		"high impact":                 {[]string{"extras:order"}, []string{"extras:order"}, nil, alex, "alex"},
		"high impact, held beside it": {[]string{"bookings:read", "extras:order"}, read, nil, alex, "alex"},
		"other words":                 {read, read, reworded(func(s *tenants.Scope) { s.Description = "Cancel your bookings" }), alex, "alex"},
		"other words beside it": {
			[]string{"bookings:read", "account:read"},
			[]string{"account:read"},
			reworded(func(s *tenants.Scope) { s.Description = "Cancel your bookings" }), alex, "alex",
		},
		"another way to undo it": {read, read, reworded(func(s *tenants.Scope) { s.Undo = "Write a letter." }), alex, "alex"},
		"another effect":         {read, read, reworded(func(s *tenants.Scope) { s.Effect = "pays" }), alex, "alex"},
		"another impact":         {read, read, reworded(func(s *tenants.Scope) { s.Impact = "medium" }), alex, "alex"},
		"a translation since": {read, read, reworded(func(s *tenants.Scope) {
			s.Texts = map[string]tenants.ScopeText{"en": {Description: "See and cancel your bookings"}}
		}), alex, "alex"},
		"revoked": {read, read, func(t *testing.T, s *site) {
			if _, err := s.rules.End(t.Context(), s.Hotel.ID, authority.ByOperator(), authority.Which{Subject: "harbor-hotel-7"}); err != nil {
				t.Fatal(err)
			}
		}, alex, "alex"},
		"run out": {read, read, func(t *testing.T, s *site) {
			s.Exec(t, `UPDATE grants SET expires_at = $1`, s.Clock.Now())
		}, alex, "alex"},
		"another person of the agent": {read, read, nil, authority.Caller{Agent: alex.Agent, Sub: "sam-phone"}, "alex"},
		"another agent":               {read, read, nil, authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}, "alex"},
		"another Brand user":          {read, read, nil, alex, "sam"},
		"two Brand users": {read, read, func(t *testing.T, s *site) {
			other := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			authoritytest.Approve(t, s.rules, s.Hotel, other, "harbor-hotel-8", "bookings:read")
		}, alex, "alex"},
	} {
		t.Run(name, func(t *testing.T) {
			s.anew(t, hotel)
			s.holding(t, tt.held...)
			if tt.change != nil {
				tt.change(t, s)
			}
			started := authoritytest.Begin(t, s.rules, s.Hotel, tt.who, tt.asked...)
			p := s.person(t)
			g := s.ask(t, p, s.Hotel, started, tt.user)
			if g.boxes() == 0 || !slices.Equal(g.decisions(), []string{"allow", "deny"}) {
				t.Fatalf("not in full: %v", g.decisions())
			}
			// Continue by hand is no answer: the full question again.
			action, form := g.form(t)
			form.Set("decision", "continue")
			again := p.post(action, form)
			if again.status != http.StatusOK || again.boxes() != g.boxes() || !slices.Equal(again.decisions(), []string{"allow", "deny"}) {
				t.Errorf("continued by hand: %d %v", again.status, again.decisions())
			}
			if _, kept := again.form(t); cmp.Diff(form["scope"], kept["scope"]) != "" {
				t.Errorf("ticked now: %v", kept["scope"])
			}
			if got := s.state(t, s.Hotel, started); got != "pending" {
				t.Errorf("the request is %s", got)
			}
			// Nor does the rule itself take it, whoever asks it.
			q, err := s.rules.Ask(t.Context(), s.Hotel.ID, started.ID, "harbor-hotel-7")
			if err != nil {
				t.Fatal(err)
			}
			if tt.user == "alex" {
				if err := s.rules.Proceed(t.Context(), s.Hotel, authoritytest.Answer(s.Hotel, q, "harbor-hotel-7")); err == nil {
					t.Error("the rule let it through")
				}
			}
		})
	}
}

// What changes under the open page makes its Continue worth nothing (B42), and
// the person reads the whole question.
func TestContinueOnAnOldPage(t *testing.T) {
	s := skipping(t)
	hotel := *s.Hotel
	for name, change := range map[string]func(*testing.T, *site){
		"words": func(t *testing.T, s *site) {
			s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
				b.Scopes = slices.Clone(b.Scopes)
				b.Scopes[0].Description = "Cancel your bookings"
			})
		},
		"setting": func(t *testing.T, s *site) {
			s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.SkipConsent = false })
		},
		"grant ended": func(t *testing.T, s *site) {
			if _, err := s.rules.End(t.Context(), s.Hotel.ID, authority.ByOperator(), authority.Which{Agent: alex.Agent}); err != nil {
				t.Fatal(err)
			}
		},
		"grant widened": func(t *testing.T, s *site) {
			other := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:change")
			authoritytest.Approve(t, s.rules, s.Hotel, other, "harbor-hotel-7", "bookings:read", "bookings:change")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.anew(t, hotel)
			s.holding(t, "bookings:read")
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			p := s.person(t)
			action, form := s.inBrief(t, p, started).form(t)
			change(t, s)
			form.Set("decision", "continue")
			g := p.post(action, form)
			if name == "grant ended" { // the agent's first grant again: a fresh login
				g = p.signIn(g, "alex")
			}
			if g.status != http.StatusOK || g.boxes() == 0 {
				t.Errorf("%d %v %s", g.status, g.decisions(), g.text())
			}
			if _, kept := g.form(t); len(kept["scope"]) != g.boxes() {
				t.Error("the boxes are not ticked: a Continue left an answer behind")
			}
			if got := s.state(t, s.Hotel, started); got != "pending" {
				t.Errorf("the request is %s", got)
			}
		})
	}
}

// The form of one shape is no answer in the other: a yes needs boxes that were
// shown, or Allow posted from the page with one Continue would end everything.
func TestNoShapeAnswersForTheOther(t *testing.T) {
	s := skipping(t)
	s.holding(t, "bookings:read")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	brief := s.inBrief(t, p, started)
	full := p.open(brief.way(t, "full=1"))
	for decision, from := range map[string]page{"allow": brief, "continue": full} {
		action, form := from.form(t)
		form.Set("decision", decision)
		form.Set("until", "30")
		if g := p.post(action, form); g.boxes() == 0 {
			t.Errorf("%s: %d %s", decision, g.status, g.text())
		}
		if got := s.state(t, s.Hotel, started); got != "pending" {
			t.Fatalf("%s: the request is %s", decision, got)
		}
	}
	held, err := s.rules.Grants(t.Context(), s.Hotel.ID, "harbor-hotel-7")
	if err != nil || len(held) != 1 {
		t.Errorf("%v, %v", held, err)
	}
}

// The full question stays full in another language.
func TestFullQuestionStaysFullInAnotherLanguage(t *testing.T) {
	s := skipping(t)
	s.holding(t, "bookings:read")
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	full := p.open(s.inBrief(t, p, started).way(t, "full=1"))
	for _, a := range full.all("a") {
		if href := attr(a, "href"); strings.Contains(href, "ui_locales=zh-Hant") {
			if g := p.open(s.url + href); g.boxes() != 1 || !strings.Contains(g.body, `lang="zh-Hant"`) {
				t.Errorf("%d boxes in Chinese", g.boxes())
			}
			return
		}
	}
	t.Error("no other language")
}
