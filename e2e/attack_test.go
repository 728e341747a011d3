package e2e

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// evilSite serves one page from another origin. As 127.0.0.1 it is another site;
// as localhost it is the same site on another port, so that the person's cookie
// arrives with what it sends.
func evilSite(t *testing.T, body string) (asStranger, asNeighbour string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>Win a weekend</title><link rel=icon href='data:,'>%s", body)
	}))
	t.Cleanup(s.Close)
	return s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// B20, P24: another site that posts the answer in the person's browser, and even
// knows everything that stands in the form, is refused.
func TestAnotherSiteCannotAnswer(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	var form strings.Builder
	fmt.Fprintf(&form, `<form method=post action="%s">`, p.page(p.hotel(t), "consent/decision"))
	for _, name := range []string{"j", "shown", "session"} {
		fmt.Fprintf(&form, `<input type=hidden name=%s value="%s">`, name, html.EscapeString(alex.value("[name="+name+"]")))
	}
	form.WriteString(`<input type=hidden name=scope value="bookings:read"><input type=hidden name=until value=30>` +
		`<button name=decision value=allow>Win</button></form>`)
	stranger, neighbour := evilSite(t, form.String())
	for _, from := range []string{stranger, neighbour} {
		tab := alex.tab()
		tab.open(from)
		if status := tab.arrive(submit(`document.querySelector("button")`)); status != http.StatusForbidden {
			t.Errorf("from %s: status %d", from, status)
		}
		tab.mustSee("This answer did not come from our page")
	}
	r.mustStillWait()
	if n := p.livingGrants(t, userOf(t)); n != 0 {
		t.Errorf("%d grants, want none", n)
	}
	// alex's own page still works.
	alex.allow()
	alex.mustSee(allowedHeading)
}

// The attacker's own form, with the token of his own session, is worth nothing
// in another browser (B20, R13, R14).
func TestAnotherBrowsersFormIsWorthNothing(t *testing.T) {
	p := theProduct(t)
	attacker, r := question(t, p, "bookings:read")
	alex := newPerson(t, p)
	other := p.ask(t, p.hotel(t), userOf(t)+"-alex", "bookings:read")
	alex.reachQuestion(other.Link, "alex")
	for _, name := range []string{"j", "shown", "session"} {
		evaluate[bool](alex, fmt.Sprintf(`document.querySelector("[name=%s]").value = %q, true`, name, attacker.value("[name="+name+"]")))
	}
	if status := alex.allow(); status < 400 {
		t.Errorf("status %d", status)
	}
	r.mustStillWait()
	other.mustStillWait()
}

// R107, B51: no page shows itself inside another.
func TestNoPageCanBeFramed(t *testing.T) {
	p := theProduct(t)
	alex, r := question(t, p, "bookings:read")
	alex.seen.mu.Lock()
	alex.seen.provoked = true
	alex.seen.mu.Unlock()
	hotel := p.hotel(t)
	pages := map[string]string{
		"question": alex.address(), "start": r.Link, "code": p.page(hotel, "device"), "My agents": p.page(hotel, "agents"),
		"dead code": p.page(hotel, "device?user_code=BCDF-GHJK"), "no page": p.PublicURL + "/nowhere",
		"home": p.PublicURL + "/", "console": p.PublicURL + "/console",
	}
	for name, address := range pages {
		_, neighbour := evilSite(t, fmt.Sprintf(`<h1>Win</h1><iframe src="%s" width=600 height=900></iframe>`, html.EscapeString(address)))
		tab := alex.tab()
		tab.open(neighbour)
		tree := call(tab, page.GetFrameTree, cdp.Empty{}).FrameTree
		if len(tree.ChildFrames) != 1 {
			t.Errorf("%s: %d frames", name, len(tree.ChildFrames))
			continue
		}
		if frame := tree.ChildFrames[0].Frame; frame.UnreachableURL == "" {
			t.Errorf("%s shows itself in a frame of another page", name)
		}
	}
	alex.seen.mu.Lock()
	defer alex.seen.mu.Unlock()
	if alex.seen.steppedIn < len(pages) {
		t.Errorf("the browser told of the policy %d times for %d pages: the other journeys would not hear of it either", alex.seen.steppedIn, len(pages))
	}
}

// B46, B49, R64: one cookie, with every bound spelt out, and another one after the
// sign-in, so that one that somebody planted or saw before is worth nothing.
func TestCookieIsBoundAndRenewed(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	cookie := func() *network.Cookie {
		t.Helper()
		all := call(alex, network.GetCookies, network.GetCookiesParams{URLs: []string{p.PublicURL}}).Cookies
		if len(all) != 1 {
			t.Fatalf("%d cookies, want one", len(all))
		}
		p.secrets.keep("cookie", all[0].Value)
		return all[0]
	}
	alex.open(r.Link)
	alex.follow("main a.button")
	before := cookie()
	alex.logIn("alex", "demo")
	alex.mustSee(askHeading)
	after := cookie()
	if before.Value == after.Value {
		t.Error("the sign-in left the cookie as it was")
	}
	if !strings.HasPrefix(after.Name, "__Host-") || after.Path != "/" || !after.Secure || !after.HTTPOnly || after.SameSite != network.CookieSameSiteLax {
		t.Errorf("%s: path %s, secure %v, http only %v, same site %q", after.Name, after.Path, after.Secure, after.HTTPOnly, after.SameSite)
	}
	if life := time.Until(time.Unix(int64(after.Expires), 0)); life <= 0 || life > time.Hour+time.Minute {
		t.Errorf("it lives for %s", life)
	}
	if after.Size > 200 {
		t.Errorf("it has %d bytes", after.Size)
	}
}

// P26, R3: who guesses codes is stopped at the eleventh, with a page that says
// for how long, and a right code is not let through either.
func TestGuessingCodesIsStopped(t *testing.T) {
	p := theProduct(t)
	outfitter := p.outfitter(t)
	r := p.ask(t, outfitter, userOf(t), "orders:read")
	guesser := newPerson(t, p)
	guesser.open(p.page(outfitter, "device"))
	const letters = "BCDFGHJKLM"
	for i := range len(letters) {
		evaluate[bool](guesser, `document.querySelector("#user_code").value = "", true`)
		guesser.fill("#user_code", strings.Repeat(letters[i:i+1], 8))
		if status := guesser.follow("main form button"); status != http.StatusUnprocessableEntity {
			t.Fatalf("wrong code %d: status %d", i+1, status)
		}
		guesser.mustRead("This code does not work.")
	}
	evaluate[bool](guesser, `document.querySelector("#user_code").value = "", true`)
	guesser.fill("#user_code", "NNNNNNNN")
	if status := guesser.follow("main form button"); status != http.StatusTooManyRequests {
		t.Fatalf("wrong code 11: status %d", status)
	}
	guesser.mustSee("Too many wrong codes")
	if status := guesser.open(r.Link); status != http.StatusTooManyRequests {
		t.Errorf("a right code after that: status %d", status)
	}
}

// submit presses a button that stands on a page of the attacker's, by script.
func submit(button string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](button + `.click()`)
}
