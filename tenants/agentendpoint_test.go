package tenants_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// A secret is shown once, another place gets another one, and both sign for as
// long as the overlap says; nobody who can write rows has calls to a place of his
// own signed with it.
func TestTheSecretOfABrandsAgent(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, hotel := t.Context(), editor(w), w.Hotel.ID
	set := func(url string) string {
		t.Helper()
		secret, err := tenants.SetAgentEndpoint(ctx, edit, w.Master, tenants.Site{}, hotel, url)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	place := func() (tenants.AgentPlace, error) {
		return tenants.NewAgentPlaces(w.DB, w.Master, w.Clock.Now).Place(ctx, hotel)
	}
	if _, err := place(); !errors.Is(err, tenants.ErrNoAgentEndpoint) {
		t.Errorf("nowhere: %v", err)
	}
	first := set("https://hotel.example/turn")
	if again := set("https://hotel.example/turn"); again != "" || !strings.HasPrefix(first, "whsec_") {
		t.Errorf("%q, and again %q", first, again)
	}
	second, err := tenants.RotateAgentSecret(ctx, w.DB, edit, w.Master, hotel, time.Hour)
	if err != nil || second == first {
		t.Fatalf("%q, %v", second, err)
	}
	p, err := place()
	if err != nil || len(p.Keys) != 2 || !p.Keys[1].Until.Equal(w.Clock.Now().Add(time.Hour)) {
		t.Fatalf("%v, %v", p, err)
	}
	if _, err := tenants.RotateAgentSecret(ctx, w.DB, edit, w.Master, hotel, 0); err != nil {
		t.Fatal(err)
	}
	if p, err := place(); err != nil || len(p.Keys) != 1 {
		t.Errorf("at once: %v, %v", p, err)
	}
	// Another place: another secret, and the former one is worth nothing there.
	if third := set("https://elsewhere.example/turn"); third == "" || third == second {
		t.Errorf("elsewhere: %q", third)
	}
	if p, err := place(); err != nil || len(p.Keys) != 1 {
		t.Errorf("elsewhere: %v, %v", p, err)
	}
	w.Exec(t, `UPDATE agent_endpoints SET url = 'https://thief.example/turn'`)
	if p, err := place(); err == nil {
		t.Errorf("a row that was written by hand: %v", p.URL)
	}
	w.Exec(t, `UPDATE agent_endpoints SET url = 'https://elsewhere.example/turn'`)
	// B71: it moves to a new keeper.
	m := mover{from: w.Master, to: signing.NewMaster()}
	if n, err := tenants.RewrapAgentSecrets(ctx, w.DB, m, hotel); n != 1 || err != nil {
		t.Errorf("rewrapped %d, %v", n, err)
	}
	if p, err := tenants.NewAgentPlaces(w.DB, m.to, w.Clock.Now).Place(ctx, hotel); err != nil || len(p.Keys) != 1 {
		t.Errorf("rewrapped: %v, %v", p, err)
	}
	if n, err := tenants.RewrapAgentSecrets(ctx, w.DB, m, w.Shop.ID); n != 0 || err != nil {
		t.Errorf("another Brand's: %d, %v", n, err)
	}
	if set(""); w.Count(t, `SELECT count(*) FROM agent_endpoints`) != 0 {
		t.Error("it was not taken away")
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE detail::text LIKE '%example/turn%' OR detail::text LIKE '%whsec%'`); n != 0 {
		t.Errorf("%d facts hold an address or a secret", n)
	}
}

// Asked for through API, command line or file, it waits for an owner; what it was
// asked about must still be so, and a second run does no harm.
func TestAnOwnerAllowsWhereTheAgentIs(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, hotel, site := t.Context(), editor(w), w.Hotel.ID, tenants.Site{}
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.AgentAppliers(w.DB, w.Master, site)}
	if _, err := asks.AskAgentEndpoint(ctx, edit, site, hotel, "http://hotel.example/turn", "k", "api"); err == nil {
		t.Error("http was asked for")
	}
	if _, err := asks.AskAgentSecret(ctx, edit, hotel, "k", "api"); !errors.Is(err, tenants.ErrNoAgentEndpoint) {
		t.Errorf("a secret of nothing: %v", err)
	}
	one, err := asks.AskAgentEndpoint(ctx, edit, site, hotel, "https://hotel.example/turn", "k", "api")
	if err != nil {
		t.Fatal(err)
	}
	other, err := asks.AskAgentEndpoint(ctx, edit, site, hotel, "https://thief.example/turn", "k", "api")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.AgentEndpointOf(ctx, w.DB, hotel); !errors.Is(err, tenants.ErrNoAgentEndpoint) {
		t.Errorf("before an owner said anything: %v", err)
	}
	secret, err := asks.Apply(ctx, edit, hotel, one.ID, "owner")
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("%q, %v", secret, err)
	}
	if _, err := asks.Apply(ctx, edit, hotel, other.ID, "owner"); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("what was asked about the former place: %v", err)
	}
	if _, err := asks.Apply(ctx, edit, w.Shop.ID, other.ID, "owner"); err == nil {
		t.Error("another Brand's owner applied it")
	}
	turn, err := asks.AskAgentSecret(ctx, edit, hotel, "k", "api")
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err := asks.Apply(ctx, edit, hotel, turn.ID, "owner"); err != nil || fresh == secret {
		t.Errorf("%q, %v", fresh, err)
	}
	f, err := tenants.FileOf(ctx, w.DB, hotel, w.Clock.Now())
	if err != nil || f.AgentEndpoint == nil || *f.AgentEndpoint != "https://hotel.example/turn" {
		t.Errorf("the file: %v, %v", f.AgentEndpoint, err)
	}
}
