package e2e

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign.dev/consent/federation/logintest"
)

// ownLogin has the hotel's people sign in on the hotel's own page until the test
// ends. As 127.0.0.1 the page is another site than ours on localhost, so browsers
// keep our cookie from what it posts.
func (p *product) ownLogin(t *testing.T, connected bool) *logintest.Page {
	t.Helper()
	hotel := p.hotel(t)
	page, err := logintest.Start(logintest.Config{Back: p.page(hotel, ""), Users: []logintest.User{
		{Username: "alex", Subject: hotel.Users[0].Subject, Email: "alex@example.com"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Close() })
	at := []string{"--brand", hotel.ID, "--allow-loopback"}
	one := func(which string) (id string) {
		q := `SELECT id::text FROM login_connections WHERE brand_id = $1 AND ended_at IS NULL AND ` + which
		if err := p.connect(t).QueryRow(t.Context(), q, hotel.ID).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	former := one("live")
	p.operate(t, append([]string{
		"idp", "set", "--kind", "assertion", "--issuer", page.Issuer(), "--jwks-uri", page.JWKSURI(), "--login-url", page.LoginURL(),
	}, at...)...)
	own := one("NOT live")
	p.operate(t, append([]string{"idp", "live", "--as-operator", "--id", own}, at...)...)
	t.Cleanup(func() {
		p.operate(t, append([]string{"idp", "live", "--as-operator", "--id", former}, at...)...)
		p.operate(t, append([]string{"idp", "remove", "--id", own}, at...)...)
	})
	if connected {
		p.operate(t, append([]string{"brand", "set", "--set", "connected_url=" + page.ConnectedURL()}, at...)...)
		t.Cleanup(func() { p.operate(t, append([]string{"brand", "set", "--set", "connected_url="}, at...)...) })
	}
	return page
}

// vouched goes through the hotel's own page, and with its assertion back to ours.
func (p *person) vouched() {
	p.t.Helper()
	p.follow("main a.button")
	p.logIn("alex", "demo")
	p.mustSee("Welcome")
	p.product.secrets.keep("assertion", p.value("[name=assertion]"))
	p.follow("button[type=submit]")
	p.product.secrets.keep("session of a page", p.value("[name=session]"))
}

// wire.md §6: sign in on the Brand's own page, decide on ours, go on at the Brand;
// then My agents the same way. Every page of ours is looked at.
func TestSignInOnTheBrandsOwnPage(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	page := p.ownLogin(t, true)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	i.lookAt(looks[0])

	r := p.ask(t, hotel, userOf(t), "bookings:read", "bookings:change", "extras:order")
	i.open(r.Link)
	i.mustSee(startHeading)
	i.inspect("own-login-start")
	i.vouched()
	i.mustSee(askHeading)
	i.mustRead("alex@example.com", r.UserCode)
	r.mustStillWait()
	i.inspect("own-login-ask")
	i.untick("bookings:change")
	i.allow()
	i.mustSee("Back at the Brand: approved")
	if got, want := i.address(), page.ConnectedURL()+"?status=approved"; got != want {
		t.Errorf("ended at %s, want %s", got, want)
	}
	if a := r.poll(); a.Scope != "bookings:read extras:order" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}

	no := p.ask(t, hotel, userOf(t)+"-no", "bookings:read")
	i.open(no.Link)
	i.vouched()
	i.deny()
	i.mustSee("Back at the Brand: denied")
	if a := no.poll(); a.Error != "access_denied" {
		t.Errorf("the agent got %d %q", a.status, a.Error)
	}

	i.open(p.page(hotel, "agents"))
	i.mustSee("See which agents act for you")
	i.vouched()
	i.mustSee("See which agents act for you")
	i.mustRead("alex@example.com")
	i.inspect("own-login-enter")
	i.follow("main form button")
	i.mustRead("alex@example.com", "Aria")
	if !strings.HasSuffix(i.address(), "/agents") {
		t.Errorf("at %s", i.where())
	}
}

// Without a place at the Brand to go on to, it ends on our own page, from where
// My agents are one link away. Another site that has learned the session of an
// open page cannot answer with it (B20).
func TestSignInOnTheBrandsOwnPageAndEndOnOurs(t *testing.T) {
	p := theProduct(t)
	p.ownLogin(t, false)
	alex := newPerson(t, p)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex.open(r.Link)
	alex.vouched()
	alex.mustSee(askHeading)
	stranger, neighbour := evilSite(t, `<form method=post action="`+p.page(p.hotel(t), "consent/decision")+`">
		<input type=hidden name=session value="`+alex.value("[name=session]")+`"><input type=hidden name=scope value="bookings:read">
		<button name=decision value=allow>Win</button></form>`)
	for _, from := range []string{stranger, neighbour} {
		tab := alex.tab()
		tab.open(from)
		if status := tab.arrive(submit(`document.querySelector("button")`)); status != http.StatusForbidden {
			t.Errorf("from %s: status %d", from, status)
		}
	}
	r.mustStillWait()
	alex.allow()
	alex.mustSee(allowedHeading)
	alex.follow(`main a[href*="/agents"]`)
	alex.mustRead("alex@example.com", "Aria")
}

var input = regexp.MustCompile(`<input type="(hidden|checkbox)"[^>]*? name="(session|scope)" value="([^"]*)"`)

// P27: a plain HTTP client without cookies, as other people's drivers are. It says
// what a browser would in Origin, and is refused where it does not.
func TestADriverSignsInOnTheBrandsOwnPage(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	page := p.ownLogin(t, true)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(origin, to string, form url.Values) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", origin)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	for decision, status := range map[string]string{"allow": "approved", "deny": "denied"} {
		r := p.ask(t, hotel, userOf(t)+"-"+decision, "bookings:read", "extras:order")
		back := p.page(hotel, "consent") + "?user_code=" + r.UserCode
		assertion := page.Assert(p.page(hotel, "consent"), logintest.User{Subject: hotel.Users[0].Subject, Email: "alex@example.com"}, r.UserCode, nil)
		p.secrets.keep("assertion", assertion)
		if resp, _ := post("https://evil.example", back, url.Values{"assertion": {assertion}}); resp.StatusCode != http.StatusForbidden {
			t.Errorf("from elsewhere: %s", resp.Status)
		}
		resp, body := post(page.Issuer(), back, url.Values{"assertion": {assertion}})
		form := url.Values{"decision": {decision}}
		for _, m := range input.FindAllStringSubmatch(body, -1) {
			form.Add(m[2], m[3])
		}
		if resp.StatusCode != http.StatusOK || !slices.Equal(form["scope"], []string{"bookings:read", "extras:order"}) || len(form["session"]) != 1 {
			t.Fatalf("%s, form with %v", resp.Status, form["scope"])
		}
		p.secrets.keep("session of a page", form.Get("session"))
		resp, _ = post(p.PublicURL, p.page(hotel, "consent/decision"), form)
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != page.ConnectedURL()+"?status="+status {
			t.Errorf("%s: %s to %s", decision, resp.Status, resp.Header.Get("Location"))
		}
		if resp, _ = post(p.PublicURL, p.page(hotel, "consent/decision"), form); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("again: %s", resp.Status)
		}
		if a := r.poll(); decision == "allow" && a.Scope != "bookings:read extras:order" || decision == "deny" && a.Error != "access_denied" {
			t.Errorf("%s: the agent got %d %q, scope %q", decision, a.status, a.Error, a.Scope)
		}
	}
}
