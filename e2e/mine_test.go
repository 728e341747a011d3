package e2e

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// My agents, as somebody uses it who has only a phone.

// held is what an agent got, and goes on with.
type held struct {
	*request
	grant   string
	refresh string
}

// allowed lets the person allow what an agent asks for, and the agent fetch it.
func (i *inspector) allowed(user string, scopes ...string) *held {
	i.t.Helper()
	r := i.product.ask(i.t, i.product.hotel(i.t), user, scopes...)
	i.open(r.Link)
	i.mustSee(startHeading)
	i.signIn("sam")
	i.mustSee(askHeading)
	i.allow()
	i.mustSee(allowedHeading)
	h := &held{request: r, refresh: r.poll().RefreshToken}
	const q = `SELECT id::text FROM grants WHERE agent_sub = $1 AND ended_at IS NULL`
	if err := i.product.connect(i.t).QueryRow(i.t.Context(), q, user).Scan(&h.grant); err != nil {
		i.t.Fatal(err)
	}
	return h
}

// again refreshes with the token.
func (h *held) again(token string) answer {
	h.t.Helper()
	var a answer
	a.status = h.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}, &a)
	if a.RefreshToken != "" {
		h.product.secrets.keep("token", a.AccessToken, a.RefreshToken)
	}
	return a
}

// mustHold demands what the next refresh carries; nothing: it is over.
func (h *held) mustHold(scope string) {
	h.t.Helper()
	a := h.again(h.refresh)
	if scope == "" {
		if a.status != 400 || a.Error != "invalid_grant" {
			h.t.Errorf("it should be over: %d %q, scope %q", a.status, a.Error, a.Scope)
		}
		return
	}
	if a.Scope != scope {
		h.t.Errorf("the agent got %d %q, scope %q, want %q", a.status, a.Error, a.Scope, scope)
	}
	h.refresh = a.RefreshToken
}

// pressByKey presses what has the focus, as those do who use no pointer.
func (p *person) pressByKey(selector string) {
	p.t.Helper()
	p.arrive(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(kb.Enter))
}

// P33, P34, B29, B40: allow two agents, end one permission, one agent, and
// everything; each page is looked at on the way.
func TestMyAgentsEndWhatTheySay(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	before := p.count(t, `SELECT count(*) FROM grants WHERE brand_id = $1 AND subject = $2 AND ended_at IS NULL AND expires_at > now()`,
		hotel.ID, hotel.Users[1].Subject)

	one := i.allowed(userOf(t)+"-1", "bookings:read", "bookings:change")
	two := i.allowed(userOf(t)+"-2", "bookings:read", "profile:read")

	// B40: the promise of the closing page, on a phone that knows nobody yet.
	promise := evaluate[string](i.person, `document.querySelector('main a[href*="/agents"]').href`)
	phone := newPerson(t, p)
	phone.open(promise)
	phone.signIn("sam")
	phone.mustSee("My agents")
	if !phone.has(`a[href*="` + two.grant + `"]`) {
		t.Error("the promise does not lead to what was just allowed")
	}

	i.follow(`main a[href*="/agents"]`)
	i.mustSee("My agents")
	i.inspect("mine")

	// One permission: opening the page that asks ends nothing.
	i.follow(`a[href*="agent=` + one.grant + `"]`)
	i.mustSee("What Aria may do")
	i.press("summary")
	i.mustRead("you allowed for 30 days:")
	i.inspect("mine-one")
	i.follow(`a[href*="scope=bookings%3Aread"]`)
	i.mustSee("End this permission of Aria?")
	i.inspect("end-permission")
	one.mustHold("bookings:read bookings:change")
	i.follow("main form button")
	i.mustSee("What Aria may do")
	i.mustRead("Aria can no longer do this: See your bookings: dates, room and price")
	i.inspect("mine-narrowed")
	one.mustHold("bookings:change")
	two.mustHold("bookings:read profile:read")

	// What is left is the last: ending it ends the agent, and the page says so. It
	// is kept.
	i.follow(`a[href*="scope=bookings%3Achange"]`)
	i.mustRead("This is the only thing Aria may do.")
	i.inspect("end-last-permission")
	i.follow(".decide a")
	i.mustSee("What Aria may do")
	one.mustHold("bookings:change")

	// One agent.
	i.follow(".decide a:last-child")
	i.mustSee("My agents")
	i.follow(`a[href*="end=` + two.grant + `"]`)
	i.follow("main form button")
	i.mustRead("Aria can no longer act on your Harbor Hotel account.", "You ended it on")
	two.mustHold("")
	one.mustHold("bookings:change")

	// Everything, by the keyboard alone.
	three := i.allowed(userOf(t)+"-3", "bookings:read")
	i.open(p.page(hotel, "agents"))
	i.pressByKey(`a[href*="end=all"]`)
	i.mustSee("End everything?")
	i.inspect("end-everything")
	question := i.address()
	three.mustHold("bookings:read")
	i.pressByKey("main form button")
	count := fmt.Sprintf("%d agents can no longer act on your Harbor Hotel account.", before+2)
	i.mustRead(count, "No agent acts for you here")
	if i.has("main article") {
		t.Error("something is still listed")
	}
	i.inspect("mine-ended")
	one.mustHold("")
	three.mustHold("")
	i.open(question)
	i.mustSee("My agents") // there is nothing left to ask about

	// P34: what is allowed after that is a new grant, with that alone.
	anew := i.allowed(userOf(t)+"-1", "profile:read")
	if anew.grant == one.grant {
		t.Error("the ended grant lives again")
	}
	anew.mustHold("profile:read")
	one.mustHold("")
}

// P32, R46: what the person did not do is said: the Brand paused it, or we ended
// it because an old key came back.
func TestMyAgentsSayWhatHappened(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	kept := i.allowed(userOf(t)+"-1", "bookings:read")
	stolen := i.allowed(userOf(t)+"-2", "bookings:read")

	account := []string{"--brand", hotel.ID, "--subject", hotel.Users[1].Subject}
	p.operate(t, append([]string{"user", "suspend"}, account...)...)
	resume := func() { p.operate(t, append([]string{"user", "resume"}, account...)...) }
	t.Cleanup(resume)
	i.open(p.page(hotel, "agents"))
	i.mustRead("Harbor Hotel has paused what agents may do on this account")
	i.inspect("mine-paused")
	resume()
	kept.mustHold("bookings:read")

	old := stolen.refresh
	stolen.mustHold("bookings:read")
	stolen.mustHold("bookings:read")
	p.change(t, `UPDATE refresh_tokens SET used_at = used_at - interval '10 minutes' WHERE grant_id = $1 AND used_at IS NOT NULL`, stolen.grant)
	if a := stolen.again(old); a.Error != "invalid_grant" {
		t.Errorf("an old key: %d %q", a.status, a.Error)
	}
	p.change(t, `UPDATE grants SET expires_at = now() + interval '3 days' WHERE id = $1`, kept.grant)
	i.open(p.page(hotel, "agents"))
	i.mustRead("We ended Aria on", "An old key of this agent was used a second time", "This ends on")
	i.inspect("mine-alarm")
	stolen.mustHold("")
	kept.mustHold("bookings:read")
}
