package consent_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/go-cmp/cmp"
)

// holding gives alex's agent what the page would, and returns the tokens.
func (s *site) holding(t *testing.T, scopes ...string) authority.Tokens {
	t.Helper()
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, scopes...)
	authoritytest.Approve(t, s.rules, s.Hotel, started, "harbor-hotel-7", scopes...)
	tokens, err := s.rules.Poll(t.Context(), s.Hotel, alex, started.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// stepUp asks for more in the name of alex's agent; with tokens, for their
// person alone.
func (s *site) stepUp(t *testing.T, tokens *authority.Tokens, reason string, scopes ...string) authority.Started {
	t.Helper()
	ask := authority.StepUp{Who: alex, Scopes: scopes, Reason: reason}
	if tokens != nil {
		raw, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.JWS, ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		ask.Token = raw
	}
	up, err := s.rules.StepUp(t.Context(), s.Hotel, ask)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := s.rules.Find(t.Context(), s.Hotel.ID, up.UserCode.String(), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	return authority.Started{ID: id, UserCode: up.UserCode}
}

// wire.md §6, §7, §10: the step-up's page shows the Brand's reason as its words,
// what is held ticked and marked; approved, the agent's next refresh carries the
// union, and the person is led back to the conversation.
func TestStepUpThroughThePages(t *testing.T) {
	s := newSite(t)
	tokens := s.holding(t, "bookings:read")
	started := s.stepUp(t, &tokens, `Your "late" checkout <b>needs</b> it.`, "bookings:change")
	p := s.person(t)
	before := p.open(s.link(s.Hotel, started))
	if strings.Contains(before.text(), "checkout") || before.asks() {
		t.Fatalf("M19: something shows before login: %s", before.text())
	}
	g := s.ask(t, p, s.Hotel, started, "alex")
	for _, want := range []string{`Harbor Hotel says: “ Your "late" checkout <b>needs</b> it. ”`, "do more on your", "Already allowed", started.UserCode.String()} {
		if !strings.Contains(g.text(), want) {
			t.Errorf("the page does not show %q:\n%s", want, g.text())
		}
	}
	action, form := g.form(t)
	if diff := cmp.Diff([]string{"bookings:read", "bookings:change"}, form["scope"]); diff != "" {
		t.Error(diff)
	}
	form.Set("decision", "allow")
	done := p.post(action, form)
	if done.status != 200 || !strings.Contains(done.text(), "Go back to your conversation") {
		t.Fatalf("%d %s", done.status, done.text())
	}
	next, err := s.rules.Refresh(t.Context(), s.Hotel, alex, tokens.Refresh, nil)
	if err != nil || cmp.Diff([]string{"bookings:read", "bookings:change"}, next.Scopes) != "" {
		t.Errorf("%v, %v", next.Scopes, err)
	}
}

// A no to a step-up changes nothing, and also leads back.
func TestStepUpDenied(t *testing.T) {
	s := newSite(t)
	tokens := s.holding(t, "bookings:read")
	started := s.stepUp(t, &tokens, "", "bookings:change")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	form.Set("decision", "deny")
	if done := p.post(action, form); !strings.Contains(done.text(), "did not allow") || !strings.Contains(done.text(), "your conversation") {
		t.Error(done.text())
	}
	next, err := s.rules.Refresh(t.Context(), s.Hotel, alex, tokens.Refresh, nil)
	if err != nil || cmp.Diff([]string{"bookings:read"}, next.Scopes) != "" {
		t.Errorf("%v, %v", next.Scopes, err)
	}
}

// wire.md §10, M19: somebody else who opens the link reads nothing before login,
// and after it only that it is for another account, with the way to sign in as
// that one. Nothing names the account that is expected.
func TestStepUpOpenedBySomebodyElse(t *testing.T) {
	s := newSite(t)
	tokens := s.holding(t, "bookings:read")
	started := s.stepUp(t, &tokens, "Your late checkout needs it.", "bookings:change")
	p := s.person(t)
	wrong := p.signIn(p.open(s.link(s.Hotel, started)), "sam")
	refused := func(what string, g page) {
		t.Helper()
		if g.status != http.StatusForbidden || g.asks() || !strings.Contains(g.text(), "This is for another account") || !strings.Contains(g.text(), "sam@example.com") {
			t.Fatalf("%s: %d %s", what, g.status, g.text())
		}
		for _, secret := range []string{"alex", "harbor-hotel-7", "checkout", "bookings", "Change or cancel", "agent.example", started.UserCode.String()} {
			if strings.Contains(g.text(), secret) {
				t.Errorf("%s: sam reads %q", what, secret)
			}
		}
	}
	refused("after login", wrong)
	refused("again", p.open(wrong.url.String()))
	if got := s.state(t, s.Hotel, started); got != "pending" {
		t.Fatalf("the request is %s", got)
	}
	// A login that is already there goes no further than one made for it.
	early := s.person(t)
	s.ask(t, early, s.Hotel, authoritytest.Begin(t, s.rules, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "sam"}, "bookings:read"), "sam")
	unasked := early.open(early.open(s.link(s.Hotel, started)).way(t, "/login?"))
	refused("with an earlier login", unasked)
	third := s.person(t)
	known := third.signIn(third.open(s.link(s.Hotel, started)), "sam")
	refused("in another browser", known)
	// The way on: the other account, in the same browser and request.
	there := p.open(wrong.way(t, "switch=1"))
	if there.url.Scheme != "http" {
		t.Fatalf("no new sign-in: %s", there.url)
	}
	action, values := there.form(t)
	values.Set("username", "alex")
	values.Set("password", "demo")
	g := p.post(action, values)
	if !g.asks() || !strings.Contains(g.text(), "checkout") {
		t.Fatalf("%d %s", g.status, g.text())
	}
	action, form := g.form(t)
	form.Set("decision", "allow")
	if done := p.post(action, form); done.status != 200 {
		t.Fatal(done.text())
	}
	// What alex decided is nothing for sam.
	refused("once decided", third.open(known.url.String()))
	if g := early.open(unasked.url.String()); g.status != http.StatusNotFound {
		t.Errorf("once decided, without a login for it: %d %s", g.status, g.text())
	}
}

// wire.md §10: the rule itself refuses: a form that was shown before the request
// was known to be somebody else's decides nothing, by no button.
func TestSomebodyElsesFormDecidesNoStepUp(t *testing.T) {
	s := newSite(t)
	for _, decision := range []string{"allow", "deny", "continue"} {
		t.Run(decision, func(t *testing.T) {
			started := s.stepUp(t, nil, "", "bookings:read")
			p := s.person(t)
			action, form := s.ask(t, p, s.Hotel, started, "sam").form(t)
			s.Exec(t, `UPDATE device_requests SET expected_subject = 'harbor-hotel-7' WHERE id = $1`, started.ID)
			form.Set("decision", decision)
			g := p.post(action, form)
			if g.status != http.StatusForbidden || !strings.Contains(g.text(), "another account") {
				t.Fatalf("%d %s", g.status, g.text())
			}
			if got := s.state(t, s.Hotel, started); got != "pending" {
				t.Errorf("the request is %s", got)
			}
			if n := s.Count(t, `SELECT count(*) FROM consents`); n != 0 {
				t.Error("a record was written")
			}
		})
	}
}

// wire.md §6, M20: without a token whoever logs in selects the grant; where
// another account lets the same agent act, the page warns and the trail says so.
func TestOpenStepUpWarnsASecondAccount(t *testing.T) {
	s := newSite(t)
	s.holding(t, "bookings:read")
	started := s.stepUp(t, nil, "", "bookings:read")
	p := s.person(t)
	g := s.ask(t, p, s.Hotel, started, "sam")
	if !strings.Contains(g.text(), "already acts for you on another Harbor Hotel account") {
		t.Fatalf("no warning: %s", g.text())
	}
	action, form := g.form(t)
	form.Set("decision", "allow")
	p.post(action, form)
	const q = `SELECT count(*) FROM audit_events WHERE event = 'request.approved' AND (detail->>'another_user_holds_a_grant')::bool`
	if n := s.Count(t, q); n != 1 {
		t.Error("not audited")
	}
}

// The typed code of a step-up takes the same way as its link.
func TestStepUpCodeCanBeTyped(t *testing.T) {
	s := newSite(t)
	started := s.stepUp(t, nil, "", "bookings:read")
	p := s.person(t)
	action, _ := p.open(s.pages(s.Hotel, "device")).form(t)
	if g := p.post(action, url.Values{"user_code": {started.UserCode.String()}}); g.url.String() != s.link(s.Hotel, started) {
		t.Errorf("went to %s", g.url.Path)
	}
}
