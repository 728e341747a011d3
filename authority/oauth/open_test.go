package oauth_test

import (
	"net/http"
	"net/url"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
)

// rule sets which agents may ask at the Hotel, and has all servers forget.
func (d *door) rule(t *testing.T, rule string) {
	t.Helper()
	edit, id := d.rules.Editor(authority.ByOperator()), d.Hotel.ID
	var err error
	if rule == tenants.AgentsOpen {
		err = tenants.OpenAgents(t.Context(), edit, id)
	} else {
		_, err = tenants.ChangeSettings(t.Context(), edit, tenants.Site{}, id, func(s *tenants.Settings) error {
			s.Agents = rule
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.url, d.rules = d.instance(t, nil)
}

// M2 and M14 at the wire: an agent that nobody registered gets in where the Brand is
// open and nowhere else, with every right and every end of a registered one; and
// it is out at its next call once the Brand is open no more.
func TestOpenBrandsMeetStrangers(t *testing.T) {
	d := newDoor(t, nil)
	pa := agenttest.New(t)
	pa.Audience, pa.Now = audience, d.Clock.Now
	pa.Describe(nil)
	ask := func(b *tenants.Brand, scope string) answer {
		return d.post(t, d.issuer(b)+"/device_authorization", pa, "x", url.Values{"client_id": {pa.Issuer}, "scope": {scope}})
	}
	if a := ask(d.Hotel, "bookings:read"); a.status != http.StatusUnauthorized || pa.Looks() != 0 {
		t.Fatalf("before: %d, %d looks", a.status, pa.Looks())
	}
	d.rule(t, tenants.AgentsOpen)
	a := ask(d.Hotel, "bookings:read")
	if a.status != http.StatusOK {
		t.Fatalf("at an open Brand: %d %s", a.status, a.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM agents WHERE issuer = $1 AND discovered`, pa.Issuer); n != 1 {
		t.Error("it is not marked as discovered")
	}
	if a := ask(d.Shop, "orders:read"); a.status != http.StatusUnauthorized || a.body != "" {
		t.Errorf("at another Brand: %d %q", a.status, a.body)
	}
	code := a.json["device_code"]
	poll := func() answer {
		return d.post(t, d.issuer(d.Hotel)+"/token", pa, "x", url.Values{
			"grant_type": {deviceGrant}, "device_code": {code.(string)}, "client_id": {pa.Issuer},
		})
	}
	if a := poll(); a.error() != "authorization_pending" {
		t.Errorf("poll: %d %s", a.status, a.body)
	}
	judge := func(allowed bool) {
		t.Helper()
		if err := tenants.ListAgent(t.Context(), d.rules.Editor(authority.ByOperator()), d.Hotel.ID, pa.Issuer, allowed); err != nil {
			t.Fatal(err)
		}
	}
	judge(false)
	if a := poll(); a.status != http.StatusUnauthorized {
		t.Errorf("denied by the Brand: %d %s", a.status, a.body)
	}
	judge(true)
	// No word of the Brand lets it in where the Brand is not open.
	for _, rule := range []string{tenants.AgentsRegistered, tenants.AgentsListed} {
		d.rule(t, rule)
		if a := poll(); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", rule, a.status, a.body)
		}
	}
	d.rule(t, tenants.AgentsOpen)
	if a := poll(); a.error() != "authorization_pending" && a.error() != "slow_down" {
		t.Errorf("open again: %d %s", a.status, a.body)
	}
	// What is unproven is not open, whatever stands in its row.
	d.Exec(t, `UPDATE brands SET proven = false WHERE id = $1`, string(d.Hotel.ID))
	d.url, d.rules = d.instance(t, nil)
	late := agenttest.New(t)
	late.Audience, late.Now = audience, d.Clock.Now
	late.Describe(nil)
	form := url.Values{"client_id": {late.Issuer}, "scope": {"bookings:read"}}
	if a := d.post(t, d.issuer(d.Hotel)+"/device_authorization", late, "x", form); a.status != http.StatusUnauthorized || late.Looks() != 0 {
		t.Errorf("unproven: %d, %d looks", a.status, late.Looks())
	}
	if a := poll(); a.status != http.StatusUnauthorized {
		t.Errorf("unproven, known: %d %s", a.status, a.body)
	}
}
