package e2e

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"
)

// A second product beside the first: neither notices the other, and what was
// granted outlives a restart.
func TestTwoDevInstances(t *testing.T) {
	first := theProduct(t)
	folder := filepath.Join(t.TempDir(), "second")
	second, err := start(folder, "data", "localhost:0")
	if second != nil {
		t.Cleanup(func() { second.kill() })
	}
	if err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, first)
	mustAnswer(t, second)

	// One browser is signed in at both; cookies know no ports.
	r1 := first.ask(t, first.hotel(t), userOf(t), "bookings:read")
	r2 := second.ask(t, second.hotel(t), userOf(t), "profile:read")
	one := newPerson(t, first)
	one.reachQuestion(r1.Link, "alex")
	two := one.tab()
	two.product = second
	two.reachQuestion(r2.Link, "alex")
	two.allow()
	two.mustSee(allowedHeading)
	one.allow()
	one.mustSee(allowedHeading)
	if a := r2.poll(); a.Scope != "profile:read" {
		t.Errorf("at the second: %d %q, scope %q", a.status, a.Error, a.Scope)
	}

	public := stopped(t, second)
	mustAnswer(t, first)
	if !first.isAlive() {
		t.Fatal("stopping the second ended the first")
	}

	// The same folder again, at the same address: all is as it was.
	again, err := start(folder, "data", public.Host)
	if again != nil {
		t.Cleanup(func() { again.kill() })
	}
	if err != nil {
		t.Fatal(err)
	}
	if again.Agent != second.Agent || again.hotel(t).IDPIssuer != second.hotel(t).IDPIssuer {
		t.Error("agent or sign-in moved; what was granted to them is lost")
	}
	three := one.tab()
	three.product = again
	three.open(again.page(again.hotel(t), "agents"))
	if three.text("h1") != "My agents" { // the sign-in may have been kept as well
		three.signIn("alex")
	}
	three.mustSee("My agents")
	three.mustRead("See your name, e-mail address and phone number")
	if n := again.livingGrants(t, userOf(t)); n != 1 {
		t.Errorf("%d grants after the restart, want 1", n)
	}
	stopped(t, again)
	mustAnswer(t, first)
	if found, err := again.leaks(); err != nil || found != nil {
		t.Error(found, err)
	}
}

// stopped stops the product well and returns where it was.
func stopped(t *testing.T, p *product) *url.URL {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := p.stop(ctx); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(p.PublicURL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// kill makes sure that nothing is left of a product whose test failed.
func (p *product) kill() {
	if p.isAlive() {
		_ = p.process.Process.Kill() // its PostgreSQL ends with it
		p.ended <- <-p.ended         // for whoever asks again
	}
}

func mustAnswer(t *testing.T, p *product) {
	t.Helper()
	for _, path := range []string{"/readyz", "/", "/b/harbor-hotel/device"} {
		resp, err := http.Get(p.PublicURL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", path, resp.Status)
		}
	}
}
