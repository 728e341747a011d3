package console_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

const fronted = "https://agents.hotel.example"

func move(mode, at string) string {
	return hotel + "interface/move?" + url.Values{"mode": {mode}, "interface_url": {at}, "provider": {""}, "audience": {""}}.Encode()
}

// hotelWithGrants is the Hotel with a proven domain and two people's grants.
func hotelWithGrants(t *testing.T) (*site, *visitor) {
	t.Helper()
	s := newSite(t)
	s.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
		VALUES ('harbor-hotel', 'hotel.example', 'x', $1, $1, 'dns')`, s.Clock.Now())
	a := s.Authority(nil)
	for _, subject := range []string{"u-1", "u-2"} {
		authoritytest.Approve(t, a, s.Hotel, authoritytest.Begin(t, a, s.Hotel, authoritytest.Alex, "bookings:read"), subject, "bookings:read")
	}
	return s, s.owner(t, "harbor-hotel")
}

// A move shows how many lose what they allowed, wants the Brand's id typed and a
// fresh touch, ends all of it, and every owner hears of it (B98).
func TestAMoveSaysWhatEndsAndEndsIt(t *testing.T) {
	s, owner := hotelWithGrants(t)
	owner.open(hotel+"interface").must(http.StatusOK, "We host it", "Strict agents refuse", "https://provider.example", s.Hotel.Issuer)
	at := move("fronted", fronted)
	p := owner.open(at).must(http.StatusOK, "ends all 2 living permissions", "2 customers gave them, to 1 agents",
		"end all 2 permissions", fronted+"/oauth", "urn:countersign:provider:harbor-hotel", "another audience")
	if s.living(t) != 2 || s.Count(t, `SELECT count(*) FROM providers WHERE id = 'harbor-hotel'`) != 0 {
		t.Error("looking at it did it")
	}
	form := p.fields(hotel + "interface/move")
	for _, confirm := range []string{"", "harbor", "Harbor-Hotel "} {
		owner.post(hotel+"interface/move", with(form, "confirm", confirm), at).must(http.StatusUnprocessableEntity, "letter by letter")
	}
	form.Set("confirm", "harbor-hotel")

	s.Clock.Advance(6 * time.Minute) // the touch is an old one
	owner.post(hotel+"interface/move", form, at).mustGo("/console/touch?" + url.Values{"back": {at}}.Encode())
	owner.open(at).must(http.StatusOK, "Use it first")
	if s.living(t) != 2 {
		t.Error("it ended without a touch")
	}
	s.told(t, "brand.interface", 0)
	owner.touch().must(http.StatusSeeOther)

	owner.post(hotel+"interface/move", form, at).mustGo(hotel + "interface?moved")
	if s.living(t) != 0 {
		t.Error("grants live on")
	}
	if n := s.Count(t, `SELECT count(*) FROM grants WHERE end_reason = 'interface_changed'`); n != 2 {
		t.Errorf("%d ended for this", n)
	}
	s.told(t, "brand.interface", 1)
	owner.open(hotel+"interface?moved").must(http.StatusOK, "The interface has moved", fronted, "It is your own")

	// The same form again: what stands above its button is no longer true.
	owner.post(hotel+"interface/move", form, at).must(http.StatusBadRequest, "no longer current")
	owner.open(at).must(http.StatusOK, "Nothing would change")
}

// What cannot be is said at its field, before anything is confirmed.
func TestAMoveThatCannotBe(t *testing.T) {
	s, owner := hotelWithGrants(t)
	for name, tt := range map[string]struct{ mode, at, says string }{
		"not proven":     {"fronted", "https://elsewhere.example", "not proven to be yours"},
		"no URL":         {"split", "", "no whole address"},
		"a slash":        {"fronted", fronted + "/", "slash at the end"},
		"no such way":    {"sideways", fronted, "Choose one of these"},
		"another's name": {"hosted", fronted, "is not ours"},
	} {
		if p := owner.open(move(tt.mode, tt.at)); p.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, p.status)
		} else {
			p.must(http.StatusUnprocessableEntity, tt.says)
		}
	}
	// A form that was made up, with the right confirmation.
	seen := owner.open(move("fronted", fronted)).fields(hotel + "interface/move").Get("seen")
	owner.post(hotel+"interface/move", filled("mode", "fronted", "interface_url", "https://elsewhere.example", "confirm", "harbor-hotel", "seen", seen), "").
		must(http.StatusUnprocessableEntity, "not proven to be yours")
	owner.post(hotel+"interface/move", filled("mode", "fronted", "interface_url", fronted, "confirm", "harbor-hotel"), "").must(http.StatusBadRequest)
	if s.living(t) != 2 {
		t.Error("grants ended")
	}
	s.told(t, "brand.interface", 0)
}

// A hosted Brand may have a Provider of its own; no grant ends by that.
func TestAProviderOfOnesOwn(t *testing.T) {
	s, owner := hotelWithGrants(t)
	at := hotel + "interface/move?mode=hosted&interface_url=&provider=harbor-hotel&audience=" + url.QueryEscape("https://hotel.example/agents")
	p := owner.open(at).must(http.StatusOK, "https://hotel.example/agents", "another audience")
	owner.post(hotel+"interface/move", with(p.fields(hotel+"interface/move"), "confirm", "harbor-hotel"), at).mustGo(hotel + "interface?moved")
	if s.living(t) != 2 {
		t.Error("grants ended")
	}
	i, err := tenants.InterfaceOf(t.Context(), s.DB, "harbor-hotel")
	if err != nil || i.Provider != "harbor-hotel" || i.Audience != "https://hotel.example/agents" {
		t.Errorf("%+v, %v", i, err)
	}
}

// The check is told line by line, in words.
func TestTheCheckIsToldLineByLine(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	owner.post(hotel+"interface/check", nil, hotel+"interface").
		must(http.StatusOK, "What a strict agent finds", ">Good<", ">Wrong<", "is another origin; put it behind the proxy", `lang="en"`)
}
