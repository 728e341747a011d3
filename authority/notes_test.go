package authority_test

import (
	"context"
	"errors"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// noted are the events of the Brand's trail after the first ones.
func noted(t *testing.T, w *authoritytest.World, a *authority.Authority, since int64) []string {
	t.Helper()
	var out []string
	err := a.Trail(t.Context(), w.Hotel.ID, authority.Events{Since: since}, 100, func(e authority.Entry) error {
		out = append(out, e.Actor+" "+e.ActorID+" "+e.Event+" "+e.Detail)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever becomes of a Brand's keys stands in its trail, with who did it, and
// what changes nothing does not.
func TestKeysLeaveATrail(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	keys := w.Keys.Noted(a.NoteKeys(authority.ByAdminKey("k1")))
	upkeep := w.Keys.Noted(a.NoteKeys(authority.ByUpkeep()))
	list, err := keys.List(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	p := signing.Policy{Alg: signing.ES256, Backend: "local"}
	first := list[0].KID
	second, err := keys.Prepare(t.Context(), w.Hotel.ID, p.Backend, p.Alg)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(signing.PublishWait)
	if err := upkeep.Activate(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if err := keys.Retire(t.Context(), w.Hotel.ID, second.KID); !errors.Is(err, signing.ErrInUse) {
		t.Fatal(err)
	}
	for range 2 {
		if err := keys.Revoke(t.Context(), w.Hotel.ID, first, "laptop stolen", p); err != nil {
			t.Fatal(err)
		}
	}
	got := noted(t, w, a, 0)
	if len(got) == 4 && got[1] > got[2] { // in one transaction; which comes first says nothing
		got[1], got[2] = got[2], got[1]
	}
	want := []string{
		`admin k1 key.next {"kid":"` + second.KID + `"}`,
		`system  key.current {"before":"next","kid":"` + second.KID + `"}`,
		`system  key.retired {"before":"current","kid":"` + first + `"}`,
		`admin k1 key.revoked {"before":"retired","kid":"` + first + `"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is done to an agent stands in every Brand's trail, or is not done.
func TestAgentsLeaveATrailEverywhere(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	registry := agent.NewRegistry(agent.RegistryConfig{DB: w.DB.Pool(), Now: w.Clock.Now, Note: a.NoteAgent(authority.ByOperator())})
	one := agent.Agent{Issuer: authoritytest.Agent, JWKSURI: "https://keys.example/jwks.json", Name: "Aria", Enabled: true}
	for range 2 {
		if err := registry.Register(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	for _, on := range []bool{false, false, true} {
		if err := registry.SetEnabled(t.Context(), one.Issuer, on); err != nil {
			t.Fatal(err)
		}
	}
	const about = ` {"agent":"` + authoritytest.Agent + `"}`
	want := []string{"operator  agent.registered" + about, "operator  agent.disabled" + about, "operator  agent.enabled" + about}
	if diff := cmp.Diff(want, noted(t, w, a, 0)); diff != "" {
		t.Error(diff)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'fern-and-fell' AND event LIKE 'agent.%'`); n != 3 {
		t.Errorf("%d of 3 stand in the other Brand's trail", n)
	}
	for _, b := range []tenants.BrandID{w.Hotel.ID, w.Shop.ID} {
		if _, err := a.VerifyTrail(t.Context(), b, nil); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	broken := errors.New("the trail cannot be written")
	deaf := agent.NewRegistry(agent.RegistryConfig{
		DB: w.DB.Pool(), Now: w.Clock.Now,
		Note: func(context.Context, pgx.Tx, string, string) error { return broken },
	})
	if err := deaf.SetEnabled(t.Context(), one.Issuer, false); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if got, err := deaf.Find(t.Context(), one.Issuer); err != nil || !got.Enabled {
		t.Errorf("R82: it was disabled without a word in the trail: %v", err)
	}
}
