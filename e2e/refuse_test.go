package e2e

import "testing"

// B01: a no reaches the agent, and for good.
func TestNoReachesTheAgent(t *testing.T) {
	p := theProduct(t)
	user := userOf(t)
	agent := p.login(t, p.hotel(t), user)
	alex := newPerson(t, p)
	alex.reachQuestion(agent.Link, "alex")
	alex.deny()
	alex.mustSee(deniedHeading)
	if got := agent.wait(); got.Event != "denied" || got.exit != 3 {
		t.Errorf("the agent ended with %q, exit %d, want denied and 3", got.Event, got.exit)
	}
	if n := p.livingGrants(t, user); n != 0 {
		t.Errorf("%d grants after a no", n)
	}
	// The link is dead now, and the page does not say why (B03).
	if status := alex.open(agent.Link); status != 404 {
		t.Errorf("the answered link has status %d", status)
	}
	alex.mustSee("This code does not work")
}

// P17: Allow with nothing ticked allows nothing, and the page says so.
func TestNothingTickedIsNo(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read", "profile:read")
	alex.untick("bookings:read")
	alex.untick("profile:read")
	alex.allow()
	alex.mustSee(deniedHeading)
	if a := r.poll(); a.Error != "access_denied" {
		t.Errorf("the agent is told %d %q", a.status, a.Error)
	}
}

// A slip at the Brand's sign-in costs nothing but another try.
func TestWrongPasswordThenRight(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	alex.open(r.Link)
	alex.follow("main a.button")
	alex.logIn("alex", "mode")
	if !alex.has("#wrong") {
		t.Error("the Brand let a wrong password pass")
	}
	r.mustStillWait()
	alex.logIn("alex", "demo")
	alex.mustSee(askHeading)
}

// B01, B56: who turns back at the Brand's sign-in has not said no to the agent.
func TestCancelAtTheSignInIsNotANo(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	alex.open(r.Link)
	alex.follow("main a.button")
	if status := alex.follow("main p a"); status != 403 {
		t.Errorf("the page after a cancelled sign-in has status %d", status)
	}
	alex.mustSee("Harbor Hotel did not sign you in")
	r.mustStillWait()
	alex.follow("main a.button")
	alex.logIn("alex", "demo")
	alex.mustSee(askHeading)
	alex.allow()
	alex.mustSee(allowedHeading)
	if a := r.poll(); a.Scope != "bookings:read" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}
