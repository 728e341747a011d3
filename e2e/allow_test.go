package e2e

import (
	"net/url"
	"strings"
	"testing"
)

// The whole way, as it should go: link, sign-in, question, one permission taken
// out, answer, token, and the end.
func TestWhatIsTickedIsWhatTheAgentGets(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	user := userOf(t)
	agent := p.login(t, hotel, user)
	words := scopesOf(t, hotel)

	alex := newPerson(t, p)
	alex.open(agent.Link)
	alex.mustSee(startHeading)
	// M19, P19: before the sign-in there is nothing to read and nothing to press.
	all := alex.reads()
	for id, description := range words {
		if strings.Contains(all, description) || strings.Contains(all, id) {
			t.Errorf("a signed-out visitor reads %q", description)
		}
	}
	if alex.has("form, button, input") {
		t.Error("a signed-out visitor finds something to answer with")
	}
	if strings.Contains(all, "Aria") {
		t.Error("a signed-out visitor learns who asks")
	}

	alex.signIn("alex")
	alex.mustSee(askHeading)
	// M20: who asks, at which Brand, for whose account, by which code, for what.
	issuer, err := url.Parse(p.Agent.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	alex.mustRead(issuer.Host, hotel.Name, "alex@example.com", agent.UserCode)
	for id, description := range words {
		alex.mustRead(description)
		if !alex.has(`[name=scope][value="` + id + `"]:checked`) {
			t.Errorf("%s has no box that is ticked", id)
		}
	}

	alex.untick("extras:order")
	if status := alex.allow(); status != 200 {
		t.Errorf("the closing page has status %d", status)
	}
	alex.mustSee(allowedHeading)
	for id, description := range words {
		if id != "extras:order" {
			alex.mustRead(description)
		} else if strings.Contains(alex.reads(), description) {
			t.Errorf("the closing page lists %q, which was taken out", description)
		}
	}

	got := agent.wait()
	p.secrets.keep("token", got.AccessToken)
	if want := "bookings:read bookings:change profile:read"; got.exit != 0 || got.Scope != want {
		t.Fatalf("the agent ended with %d, scope %q, want %q", got.exit, got.Scope, want)
	}
	if out, exit := p.run(t, got.AccessToken, "verify", "token", "-", "--card", hotel.InterfaceURL); exit != 0 {
		t.Errorf("the Brand's check of the token: exit %d\n%s", exit, out)
	}

	// B40: the closing page's promise leads to the grant just made, where it ends.
	alex.follow(`main a[href*="/agents"]`)
	alex.mustSee("My agents")
	alex.mustRead("Aria", issuer.Host)
	alex.end(got.GrantID)
	if _, exit := p.run(t, "", "pa", "refresh", "--data", p.data, "--card", hotel.InterfaceURL, "--sub", user); exit == 0 {
		t.Error("the agent could refresh what had been ended")
	}
}

// end ends a grant on My agents, where the page asks once more.
func (p *person) end(grant string) {
	p.t.Helper()
	p.follow(`a[href*="end=` + grant + `"]`)
	p.mustSee("End what Aria may do?")
	p.follow("main form button")
	p.mustSee("My agents")
	p.mustRead("Aria can no longer act on your Harbor Hotel account.")
	if p.has(`a[href*="end=` + grant + `"]`) {
		p.t.Error("what was ended is still listed")
	}
}

// B07, P20: a code typed as a thumb types it leads to the same page as the link.
func TestTypedCodeLeadsWhereTheLinkLeads(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	alex.open(p.page(p.hotel(t), "device"))
	letters := strings.ToLower(strings.ReplaceAll(r.UserCode, "-", ""))
	alex.fill("#user_code", " "+letters[:3]+" "+letters[3:]+" ")
	alex.follow("main form button")
	alex.mustSee(startHeading)
	if alex.address() != r.Link {
		t.Error("the typed code led elsewhere than the link")
	}
	alex.signIn("alex")
	alex.mustSee(askHeading)
	alex.mustRead(r.UserCode)
	alex.allow()
	alex.mustSee(allowedHeading)
	if a := r.poll(); a.Scope != "bookings:read" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}
