package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/tenants"
)

// An owner makes the organisation's Provider and names it, by which nothing moves;
// nobody else does.
func TestAnOwnerMakesAProvider(t *testing.T) {
	s, owner := hotelWithGrants(t)
	at := hotel + "interface"
	owner.open(at).must(http.StatusOK, "Make a Provider of your own", "Ours, shared by Brands that we host")
	form := filled("provider_name", "Harbor Hotels")
	for _, role := range []tenants.Role{tenants.Security, tenants.Viewer} {
		other := s.become(t, string(role)+"@example.com", "Other")
		s.own(t, other, "harbor-hotel", role)
		if strings.Contains(other.open(at).body, "Make a Provider of your own") {
			t.Errorf("%s is offered it", role)
		}
		other.post(at+"/provider", form, at).must(http.StatusForbidden, refusedByRole)
	}
	owner.post(at+"/provider", filled("provider_name", " "), at).must(http.StatusUnprocessableEntity, "Name of the organisation")
	owner.post(at+"/provider", filled("provider_name", "Harbor", "provider_audience", "https://bank.example"), at).must(http.StatusUnprocessableEntity, "is not proven to be yours")
	s.told(t, "provider.made", 0)
	owner.post(at+"/provider", form, at).mustGo(at + "?named#provider")
	owner.open(at).must(http.StatusOK, "Name your Provider", "Harbor Hotels", "urn:countersign:provider:harbor-hotel", "Yours: Harbor Hotel made it")
	owner.post(at+"/provider", filled("provider_name", "Harbors"), at).mustGo(at + "?named#provider")
	s.told(t, "provider.made", 1)
	s.told(t, "provider.named", 1)
	if s.living(t) != 2 || s.Reload(t, s.Hotel.ID).Provider != "demo" {
		t.Error("something moved")
	}
}

// Somebody who owns both Brands takes one into the other's Provider, by a fresh
// touch; every owner of both hears of it. Others are not offered it, and a guess is
// answered as if there were none.
func TestAnOwnerOfBothJoinsAProvider(t *testing.T) {
	s, owner := hotelWithGrants(t)
	edit := s.program()
	site := tenants.Site{PublicURL: origin}
	if err := tenants.NameProvider(t.Context(), edit, site, s.Shop.ID, "Fell Group", ""); err != nil {
		t.Fatal(err)
	}
	at := hotel + "interface"
	there := func(provider string) string {
		return at + "/move?" + url.Values{"mode": {"hosted"}, "provider": {provider}}.Encode()
	}
	if p := owner.open(at); strings.Contains(p.body, "Fell Group") {
		t.Error("a stranger's Provider is offered")
	}
	const none = "The Brand cannot belong to this one"
	guess := owner.open(there("fern-and-fell")).must(http.StatusUnprocessableEntity, none)
	missing := owner.open(there("nowhere")).must(http.StatusUnprocessableEntity, none)
	if strings.ReplaceAll(guess.body, "fern-and-fell", "nowhere") != strings.ReplaceAll(missing.body, "fern-and-fell", "nowhere") &&
		len(guess.body)-len(missing.body) > len("fern-and-fell")*4 {
		t.Errorf("a guess reads differently:\n%s\n%s", guess.body, missing.body)
	}
	s.own(t, owner, "fern-and-fell", tenants.Owner)
	wanda := s.become(t, "wanda@example.com", "Wanda")
	s.own(t, wanda, "fern-and-fell", tenants.Owner)
	s.drain(t)
	owner.open(at).must(http.StatusOK, "Fell Group (fern-and-fell)")
	p := owner.open(there("fern-and-fell")).must(http.StatusOK, "will share the audience of the Provider", "urn:countersign:provider:fern-and-fell")
	form := p.fields(at + "/move")
	form.Set("confirm", "harbor-hotel")
	owner.post(at+"/move", form, there("fern-and-fell")).mustGo(at + "?moved")
	if b := s.Reload(t, s.Hotel.ID); b.Provider != "fern-and-fell" || s.living(t) != 2 {
		t.Errorf("%s, %d grants", b.Provider, s.living(t))
	}
	owner.open(at).must(http.StatusOK, "Another of your Brands")
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = 'provider.joined'`); n != 3 {
		t.Errorf("%d notices, of three owners at two Brands", n)
	}
	m := s.letterAbout(t, "shares your audience")
	if !strings.Contains(m.Text, "Olga took the Brand harbor-hotel into") {
		t.Errorf("%s\n%s", m.Subject, m.Text)
	}
}

// What an API key asked for is decided by somebody who owns both; another owner is
// told why theirs does not count.
func TestAJoinThatWaitsNeedsAnOwnerOfBoth(t *testing.T) {
	s, owner := hotelWithGrants(t)
	site := tenants.Site{PublicURL: origin}
	if err := tenants.NameProvider(t.Context(), s.program(), site, s.Shop.ID, "Fell Group", ""); err != nil {
		t.Fatal(err)
	}
	wanda := s.become(t, "wanda@example.com", "Wanda")
	s.own(t, wanda, "fern-and-fell", tenants.Owner)
	s.own(t, wanda, "harbor-hotel", tenants.Owner)
	c, err := s.asks.AskInterface(t.Context(), s.program(), site, "harbor-hotel", tenants.Interface{Mode: tenants.Hosted, Provider: "fern-and-fell"}, "k", "api")
	if err != nil {
		t.Fatal(err)
	}
	approve := hotel + "changes/" + c.ID.String() + "/approve"
	owner.post(approve, nil, hotel+"changes").must(http.StatusConflict, "somebody who owns both takes it")
	if b := s.Reload(t, s.Hotel.ID); b.Provider != "demo" {
		t.Fatal("it moved")
	}
	wanda.post(approve, nil, hotel+"changes").mustGo(hotel + "changes?applied")
	if b := s.Reload(t, s.Hotel.ID); b.Provider != "fern-and-fell" {
		t.Errorf("it is at %s", b.Provider)
	}
}
