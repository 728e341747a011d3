package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
)

// What can go wrong under an open page, and what the page then says.

// B38, R4: too late is said on the page and to the agent, and stays so.
func TestExpiredIsSaidToBoth(t *testing.T) {
	p := theProduct(t)
	user := userOf(t)
	agent := p.login(t, p.hotel(t), user)
	alex := newPerson(t, p)
	alex.reachQuestion(agent.Link, "alex")
	p.change(t, `UPDATE device_requests SET expires_at = now() - interval '1 second' WHERE agent_sub = $1`, user)

	if status := alex.allow(); status != 410 {
		t.Errorf("the answer that came too late has status %d", status)
	}
	alex.mustSee("This request is too old")
	if got := agent.wait(); got.Event != "expired" || got.exit != 4 {
		t.Errorf("the agent ended with %q, exit %d, want expired and 4", got.Event, got.exit)
	}
	if n := p.livingGrants(t, user); n != 0 {
		t.Errorf("%d grants after the end", n)
	}
}

// B42: an agent that is switched off under the open page gets nothing.
func TestDisabledAgentIsNotAllowed(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	question := alex.address()
	p.operate(t, "agent", "disable", "--issuer", p.Agent.Issuer)
	enable := func() { p.operate(t, "agent", "enable", "--issuer", p.Agent.Issuer) }
	t.Cleanup(enable)

	if status := alex.allow(); status != 403 {
		t.Errorf("status %d", status)
	}
	alex.mustSee("This agent cannot ask at the moment")
	alex.mustRead("Aria")
	if n := p.livingGrants(t, userOf(t)); n != 0 {
		t.Errorf("%d grants for an agent that is off", n)
	}
	enable()
	alex.open(question)
	alex.mustSee(askHeading)
	alex.allow()
	alex.mustSee(allowedHeading)
	p.untilBack(t, r)
}

// untilBack polls until the service has noticed that the agent is on again: two
// seconds at most (authority/agent).
func (p *product) untilBack(t *testing.T, r *request) {
	t.Helper()
	for range eventually(t) {
		switch a := r.poll(); {
		case a.Scope == "bookings:read":
			return
		case a.status != 401:
			t.Fatalf("the agent got %d %q", a.status, a.Error)
		}
	}
	t.Error("the agent stayed out after it was enabled")
}

// A Brand that pauses agents says so on the page, and takes up again where it
// stopped.
func TestPausedBrandSaysSo(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	question := alex.address()
	p.operate(t, "brand", "pause", "--brand", "harbor-hotel")
	resume := func() { p.operate(t, "brand", "resume", "--as-operator", "--brand", "harbor-hotel") }
	t.Cleanup(resume)

	if status := alex.allow(); status != 503 {
		t.Errorf("status %d", status)
	}
	alex.mustSee("Harbor Hotel does not take requests just now")
	resume()
	alex.open(question)
	alex.mustSee(askHeading)
	alex.allow()
	alex.mustSee(allowedHeading)
	if a := r.poll(); a.Scope != "bookings:read" && a.Error != "temporarily_unavailable" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}

// B45: a browser that lost its cookie on the way begins the same request anew,
// by one button.
func TestLostCookieStartsTheSameRequestAgain(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	alex.open(r.Link)
	alex.follow("main a.button")
	call(alex, network.ClearBrowserCookies, cdp.Empty{})
	if status := alex.logIn("alex", "demo"); status != 400 {
		t.Errorf("status %d", status)
	}
	alex.mustSee("Your browser did not keep our cookie")
	if n := evaluate[int](alex, `document.querySelectorAll("main a.button, main button").length`); n != 1 {
		t.Errorf("%d buttons, want the one way on", n)
	}
	alex.follow("main a.button")
	alex.mustSee(startHeading)
	if alex.address() != r.Link {
		t.Error("it leads to another request")
	}
	alex.signIn("alex")
	alex.mustSee(askHeading)
	alex.mustRead(r.UserCode)
}

// M19, B38: a session that is gone when the answer is posted decides nothing, and
// the page says what helps.
func TestLostSessionDecidesNothing(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	call(alex, network.ClearBrowserCookies, cdp.Empty{})
	if status := alex.allow(); status != 403 {
		t.Errorf("status %d", status)
	}
	alex.mustSee("Your browser did not keep our cookie")
	r.mustStillWait()
}

// P32: a suspended account may not allow, and may again when the Brand lifts it.
func TestSuspendedAccountCannotAllow(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	question := alex.address()
	account := []string{"--brand", "harbor-hotel", "--subject", p.hotel(t).Users[0].Subject}
	p.operate(t, append([]string{"user", "suspend"}, account...)...)
	resume := func() { p.operate(t, append([]string{"user", "resume"}, account...)...) }
	t.Cleanup(resume)
	if status := alex.allow(); status != 403 {
		t.Errorf("status %d", status)
	}
	r.mustStillWait()
	resume()
	alex.open(question)
	alex.mustSee(askHeading)
}

// B62, R69: a sign-in that does not answer is said so, decides nothing, and the
// same button works once it is back.
func TestUnreachableSignInIsSaidSo(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	r := p.ask(t, hotel, userOf(t), "bookings:read")
	const move = `UPDATE login_connections SET issuer = $2 WHERE brand_id = $1`
	restore := func() { p.change(t, move, hotel.ID, hotel.IDPIssuer) }
	t.Cleanup(restore)
	p.change(t, move, hotel.ID, "http://127.0.0.1:1") // where nobody listens

	alex := newPerson(t, p)
	alex.open(r.Link)
	if status := alex.follow("main a.button"); status != 502 {
		t.Errorf("status %d", status)
	}
	alex.mustSee("Harbor Hotel’s sign-in does not answer")
	r.mustStillWait()
	restore()
	alex.follow("main a.button")
	alex.logIn("alex", "demo")
	alex.mustSee(askHeading)
	alex.mustRead(r.UserCode)
}
