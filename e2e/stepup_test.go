package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// steppedUp is what the Brand hears when it asks for more in an agent's name.
type steppedUp struct {
	Missing []string `json:"pact.missingScopes"`
	Link    string   `json:"pact.verificationUriComplete"`
}

// stepUp is the Brand's own server: it passes on what the agent sent it.
func (r *request) stepUp(token, reason string, scopes ...string) steppedUp {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{
		"pa_jwt": r.proof(), "delegation_token": token, "scopes": scopes, "reason": reason,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.brand.Issuer+"/stepup", strings.NewReader(string(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.brand.APIKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var up steppedUp
	if err := json.NewDecoder(resp.Body).Decode(&up); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("step-up: %d, %v", resp.StatusCode, err)
	}
	if up.Link != "" {
		code := up.Link[strings.LastIndex(up.Link, "=")+1:]
		r.product.secrets.keep("user code", code, strings.ReplaceAll(code, "-", ""))
	}
	return up
}

// refresh spends the refresh token.
func (r *request) refresh(token string) answer {
	r.t.Helper()
	var a answer
	a.status = r.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}, &a)
	if a.AccessToken != "" {
		r.product.secrets.keep("token", a.AccessToken, a.RefreshToken)
	}
	return a
}

// begun is what an agent got that asked for the scopes, and the person's
// browser.
func (i *inspector) begun(b brand, user string, scopes ...string) (*request, answer) {
	i.t.Helper()
	r := i.product.ask(i.t, b, user, scopes...)
	i.open(r.Link)
	i.signIn("alex")
	i.allow()
	i.mustSee(allowedHeading)
	a := r.poll()
	if a.status != http.StatusOK {
		i.t.Fatalf("the agent got %d %q", a.status, a.Error)
	}
	return r, a
}

// M22, wire.md §10: in the middle of a conversation the Brand needs more. The
// link is refused to somebody else; the right person allows it and goes back to
// the conversation; the agent refreshes and has both.
func TestStepUpInTheMiddleOfAConversation(t *testing.T) {
	p := theProduct(t)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	r, first := i.begun(p.hotel(t), userOf(t), "bookings:read")
	const reason = "To move your stay to the 14th we need your leave to change bookings."
	up := r.stepUp(first.AccessToken, reason, "bookings:read", "bookings:change")
	if strings.Join(up.Missing, " ") != "bookings:change" || up.Link == "" {
		t.Fatalf("missing: %v", up.Missing)
	}
	if again := r.stepUp(first.AccessToken, reason, "bookings:change"); again.Link != up.Link {
		t.Error("the same question is another link")
	}

	sam := &inspector{newPerson(t, p), i.axe, i.names}
	sam.open(up.Link)
	sam.mustSee(startHeading)
	if strings.Contains(sam.reads(), "14th") {
		t.Error("the reason shows before login")
	}
	sam.signIn("sam")
	sam.mustSee("This is for another account")
	if all := sam.reads(); strings.Contains(all, "alex") || strings.Contains(all, "14th") {
		t.Errorf("sam reads %q", all)
	}
	sam.inspect("stepup-other-account")

	// The same browser, the right account.
	sam.follow("main .ways a.button")
	sam.logIn("alex", "demo")
	sam.mustSee("Let Aria do more on your Harbor Hotel account?")
	sam.mustRead("Harbor Hotel says: “"+reason+"”", "Already allowed")
	sam.inspect("stepup-ask")
	sam.allow()
	sam.mustSee(allowedHeading)
	sam.mustRead("Go back to your conversation with Aria")
	sam.inspect("stepup-allowed")

	if a := r.refresh(first.RefreshToken); a.Scope != "bookings:read bookings:change" {
		t.Errorf("the agent refreshed to %d %q, scope %q", a.status, a.Error, a.Scope)
	}
	if n := p.livingGrants(t, userOf(t)); n != 1 {
		t.Errorf("%d grants", n)
	}
	if none := r.stepUp(first.AccessToken, reason, "bookings:change"); none.Link != "" || none.Missing == nil || len(none.Missing) != 0 {
		t.Errorf("nothing is missing, and still %+v", none)
	}
}

// An agent that asks only for what it has: one Continue where the Brand wants
// that, with the ways to change and to end it on the same page (B40).
func TestOneContinue(t *testing.T) {
	p := theProduct(t)
	shop := p.outfitter(t)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	_, first := i.begun(shop, userOf(t), "orders:read", "returns:start")
	p.change(t, `UPDATE brands SET skip_consent = true WHERE id = $1`, shop.ID)
	t.Cleanup(func() { p.change(t, `UPDATE brands SET skip_consent = false WHERE id = $1`, shop.ID) })

	again := p.ask(t, shop, userOf(t), "orders:read")
	i.open(again.Link)
	i.follow("main a.button")
	i.openUntil("[value=continue]")
	i.mustSee("Let Aria go on at Fern & Fell Outfitters?")
	i.mustRead(again.UserCode, "Change what it may do", "End it")
	if i.has("[name=scope]") {
		t.Error("there are boxes")
	}
	i.inspect("brief")
	page := i.address()
	i.follow(`main a[href*="full=1"]`)
	if !i.has("[name=scope]") || i.has("[value=continue]") {
		t.Error("the full question has no boxes")
	}
	i.open(page)
	i.follow(`main a[href*="end="]`)
	i.mustSee("End what Aria may do?")
	i.open(page)
	again.mustStillWait()
	i.waitForEye()
	i.follow("[value=continue]")
	i.mustSee("Aria can go on")
	i.inspect("continued")
	if a := again.poll(); a.Scope != first.Scope {
		t.Errorf("the agent got %d %q, scope %q, and had %q", a.status, a.Error, a.Scope, first.Scope)
	}
}

// openUntil asks for the open page until an instance with old settings would
// have read the new ones.
func (p *person) openUntil(selector string) {
	p.t.Helper()
	const patience, pause = 10 * time.Second, 100 * time.Millisecond
	late := time.After(patience)
	look := time.NewTicker(pause)
	defer look.Stop()
	for p.open(p.address()); !p.has(selector); p.open(p.address()) {
		select {
		case <-late:
			p.t.Fatalf("at %s: no %s after %s", p.where(), selector, patience)
		case <-look.C:
		}
	}
}
