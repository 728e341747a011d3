package e2e

import (
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// Tabs, the back button, reloads and double clicks: wherever somebody comes
// from, they end at the step that is really next.

// B43: one agent asks at two Brands; the tab opened first is answered last.
func TestTwoBrandsInTwoTabs(t *testing.T) {
	p := theProduct(t)
	user := userOf(t)
	atHotel := p.ask(t, p.hotel(t), user, "bookings:read")
	atOutfitter := p.ask(t, p.outfitter(t), user, "orders:read")

	one := newPerson(t, p)
	one.open(atHotel.Link)
	one.follow("main a.button")
	two := one.tab()
	two.open(atOutfitter.Link)
	two.follow("main a.button")
	// Both are at their Brands' sign-ins now, and come back crosswise.
	one.logIn("alex", "demo")
	one.mustSee(askHeading)
	two.logIn("sam", "demo")
	two.mustRead("sam@example.com", "Fern & Fell Outfitters")
	two.allow()
	two.mustSee(allowedHeading)
	one.mustRead("alex@example.com")
	one.allow()
	one.mustSee(allowedHeading)

	if a := atHotel.poll(); a.Scope != "bookings:read" {
		t.Errorf("at the hotel: %d %q, scope %q", a.status, a.Error, a.Scope)
	}
	if a := atOutfitter.poll(); a.Scope != "orders:read" {
		t.Errorf("at the outfitter: %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}

// B43: two requests at one Brand, answered in the other order, each with its own
// answer.
func TestTwoRequestsInTwoTabs(t *testing.T) {
	p := theProduct(t)
	first := p.ask(t, p.hotel(t), userOf(t)+"-1", "bookings:read")
	second := p.ask(t, p.hotel(t), userOf(t)+"-2", "profile:read")

	one := newPerson(t, p)
	one.reachQuestion(first.Link, "alex")
	two := one.tab()
	two.reachQuestion(second.Link, "alex")
	two.mustRead(second.UserCode)
	two.deny()
	two.mustSee(deniedHeading)
	one.mustRead(first.UserCode)
	one.allow()
	one.mustSee(allowedHeading)

	if a := second.poll(); a.Error != "access_denied" {
		t.Errorf("the refused one: %d %q, scope %q", a.status, a.Error, a.Scope)
	}
	if a := first.poll(); a.Scope != "bookings:read" {
		t.Errorf("the allowed one: %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}

// B03, B58: back, and the same button again.
func TestBackButtonFindsTheClosingPage(t *testing.T) {
	p := theProduct(t)
	alex, _ := question(t, p, "bookings:read")
	alex.allow()
	alex.mustSee(allowedHeading)
	alex.do(chromedp.NavigateBack())
	alex.mustSee(allowedHeading)
	if alex.has("[name=decision]") {
		t.Error("there is still something to decide")
	}
	if n := p.livingGrants(t, userOf(t)); n != 1 {
		t.Errorf("%d grants, want 1", n)
	}
}

// B58: the way back from the Brand's sign-in counts once, and leads to the same
// place each time.
func TestReloadsShowTheStepThatIsNext(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	alex.open(r.Link)
	alex.follow("main a.button")
	callback := alex.noteCallback(func() { alex.logIn("alex", "demo") })
	alex.mustSee(askHeading)

	alex.open(callback)
	alex.mustSee(askHeading)
	alex.do(chromedp.Reload())
	alex.mustSee(askHeading)
	alex.mustRead(r.UserCode)
	alex.allow()
	alex.mustSee(allowedHeading)
	alex.do(chromedp.Reload())
	alex.mustSee(allowedHeading)
	alex.open(callback)
	alex.mustSee(allowedHeading)
	if n := p.livingGrants(t, userOf(t)); n != 1 {
		t.Errorf("%d grants, want 1", n)
	}
}

// B03, P25: the same form twice at the same moment is one answer, and each window
// says that it was given.
func TestDoubleSubmitIsOneAnswer(t *testing.T) {
	p := theProduct(t)
	one, r := question(t, p, "bookings:read")
	two := one.tab()
	question := one.address()
	two.open(question)
	two.mustSee(askHeading)
	one.waitForEye()
	two.waitForEye()

	var both sync.WaitGroup
	for _, tab := range []*person{one, two} {
		both.Go(func() {
			// Not follow: a step that fails must not end the test from here.
			if err := chromedp.Do(tab.ctx, chromedp.Click(chromedp.CSS("[value=allow]"))); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for _, tab := range []*person{one, two} {
		tab.do(chromedp.WaitVisible(chromedp.CSS(".seal, .ways")))
		// Whoever comes between the answer and the note of it in the journey reads
		// only that it was given.
		if got := tab.text("h1"); got != allowedHeading && got != "This has already been answered" {
			t.Errorf("the page says %q", got)
		}
	}
	for _, tab := range []*person{one, two} {
		tab.open(question)
		tab.mustSee(allowedHeading)
	}
	if n := p.livingGrants(t, userOf(t)); n != 1 {
		t.Errorf("%d grants, want 1", n)
	}
	if a := r.poll(); a.Scope != "bookings:read" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}

// A page that alex left open decides nothing for sam, who signed in since in the
// same browser (R13).
func TestAnotherTabsLoginDoesNotDecide(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	sam := alex.tab()
	sam.open(r.Link)
	sam.signIn("sam")
	sam.mustRead("sam@example.com")

	alex.waitForEye()
	if status := alex.follow("[value=allow]"); status < 400 {
		t.Errorf("the old page was accepted with %d", status)
	}
	r.mustStillWait()
	if n := p.livingGrants(t, userOf(t)); n != 0 {
		t.Errorf("%d grants, want none", n)
	}
	alex.mustSee("This page is out of date")
	// It leads back to the same request, by way of the sign-in (B45).
	alex.follow("main a.button")
	alex.mustSee(startHeading)
	alex.signIn("sam")
	alex.mustSee(askHeading)
	alex.mustRead("sam@example.com", r.UserCode)
}

// noteCallback returns the address at which the sign-in sent the browser back.
func (p *person) noteCallback(signIn func()) string {
	p.t.Helper()
	p.product.secrets.mu.Lock()
	p.product.secrets.callback = ""
	p.product.secrets.mu.Unlock()
	signIn()
	p.product.secrets.mu.Lock()
	defer p.product.secrets.mu.Unlock()
	if !strings.Contains(p.product.secrets.callback, "code=") {
		p.t.Fatal("the sign-in sent nobody back")
	}
	return p.product.secrets.callback
}
