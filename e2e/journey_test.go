package e2e

import (
	"fmt"
	"testing"
)

// The steps of a journey, as a person takes them.

// The headings that tell where somebody is.
const (
	startHeading   = "An agent asks to act on your Harbor Hotel account"
	askHeading     = "Let Aria act on your Harbor Hotel account?"
	allowedHeading = "Aria may now act for you"
	deniedHeading  = "You did not allow it"
)

// signIn goes from the page before the sign-in through the Brand's own login.
func (p *person) signIn(username string) {
	p.t.Helper()
	p.follow("main a.button")
	p.logIn(username, "demo")
}

// logIn fills in the Brand's own page.
func (p *person) logIn(username, password string) (status int64) {
	p.t.Helper()
	if p.value("#username") != username { // the page remembers it after a slip
		p.fill("#username", username)
	}
	p.fill("#password", password)
	return p.follow("button[type=submit]")
}

// reachQuestion opens the link and signs in.
func (p *person) reachQuestion(link, username string) {
	p.t.Helper()
	p.open(link)
	p.mustSee(startHeading)
	p.signIn(username)
	p.mustSee(askHeading)
}

// untick takes one permission out.
func (p *person) untick(scope string) {
	p.t.Helper()
	box := fmt.Sprintf(`[name=scope][value=%q]`, scope)
	p.press(box)
	if evaluate[bool](p, fmt.Sprintf(`document.querySelector(%q).checked`, box)) {
		p.t.Fatalf("%s is still ticked", scope)
	}
}

// allow presses Allow once the page has stood there long enough to be read
// (B51), by the page's own clock.
func (p *person) allow() (status int64) {
	p.t.Helper()
	p.waitForEye()
	return p.follow("[value=allow]")
}

func (p *person) waitForEye() {
	p.t.Helper()
	evaluate[bool](p, `Promise.all(document.getAnimations().map(a => a.finished)).then(() => true)`)
}

// deny is heard at once.
func (p *person) deny() (status int64) {
	p.t.Helper()
	return p.follow("[value=deny]")
}

// question brings somebody new to the question about a request of the hotel.
func question(t *testing.T, p *product, scopes ...string) (*person, *request) {
	t.Helper()
	r := p.ask(t, p.hotel(t), userOf(t), scopes...)
	who := newPerson(t, p)
	who.reachQuestion(r.Link, "alex")
	return who, r
}
