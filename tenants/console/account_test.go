package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"golang.org/x/net/html"
)

const account = "/console/account"

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// buttons are the values of the hidden field with the name, down the page.
func (p page) buttons(name string) []string {
	p.t.Helper()
	var out []string
	for n := range p.root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "input" {
			continue
		}
		if is, _ := attr(n, "name"); is == name {
			value, _ := attr(n, "value")
			out = append(out, value)
		}
	}
	return out
}

// secondKey adds one more passkey, of another device.
func (v *visitor) secondKey() {
	v.t.Helper()
	p := v.open("/console/keys").must(http.StatusOK)
	other := newAuthenticator(v.t, origin, relying)
	v.post("/console/keys", with(p.fields("/console/keys"), "credential", other.create(p.options())), "/console/keys").must(http.StatusSeeOther)
}

// Somebody sees what opens their account and removes a passkey under a fresh touch;
// one is left with codes, or two: never fewer. They hear of it by mail, and whoever
// was signed in elsewhere is not.
func TestOwnPasskeysAreRemoved(t *testing.T) {
	s := newSite(t)
	olga := s.become(t, "olga@example.com", "Olga") // one passkey, printed codes
	p := olga.open(account).must(http.StatusOK, "Your passkeys", "Not since", "A passkey")
	only := p.buttons("passkey")
	if len(only) != 1 {
		t.Fatalf("%d passkeys", len(only))
	}
	olga.post(account+"/remove", url.Values{"passkey": only}, account).must(http.StatusConflict, "would lock you out")
	olga.header.Set("User-Agent", firefox)
	olga.secondKey()
	olga.open(account).must(http.StatusOK, "Firefox, Linux")
	s.drain(t)

	away := s.visitor(t)
	away.device = olga.device
	away.login().mustGo("/console/brands")
	mallory := s.become(t, "mallory@example.com", "Mallory")
	mallory.post(account+"/remove", url.Values{"passkey": only}, account).mustGo(account) // not theirs: as if it were not
	s.drain(t)
	if n := s.Count(t, `SELECT count(*) FROM passkeys`); n != 3 {
		t.Fatalf("%d passkeys", n)
	}
	olga.post(account+"/remove", url.Values{"passkey": {"%%"}}, account).must(http.StatusBadRequest)
	olga.post(account+"/remove", url.Values{"passkey": only}, account).mustGo(account + "?removed")
	if m := s.letter(t); m.To != "olga@example.com" || !strings.Contains(m.Subject, "removed") {
		t.Errorf("%s reads %s", m.To, m.Subject)
	}
	away.open(account).must(http.StatusSeeOther)
	left := olga.open(account+"?removed").must(http.StatusOK, "The passkey is removed").buttons("passkey")
	if len(left) != 1 || left[0] == only[0] {
		t.Fatalf("left: %v", left)
	}
	olga.post(account+"/remove", url.Values{"passkey": only}, account).mustGo(account) // twice is once
	olga.post(account+"/remove", url.Values{"passkey": left}, account).must(http.StatusConflict)
	// With the codes gone, two passkeys are what must be left.
	s.Exec(t, `DELETE FROM recovery_codes WHERE person_id = $1`, s.person(t, "olga@example.com"))
	olga.secondKey()
	olga.post(account+"/remove", url.Values{"passkey": left}, account).must(http.StatusConflict)
	s.Clock.Advance(6 * time.Minute)
	if p := olga.post(account+"/remove", url.Values{"passkey": left}, account); !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d to %s", p.status, p.location)
	}
}

// Of two passkeys that are removed at the same moment one stays.
func TestRemovedAtOnceOnePasskeyStays(t *testing.T) {
	s := newSite(t)
	olga := s.become(t, "olga@example.com", "Olga")
	olga.secondKey()
	who := s.person(t, "olga@example.com")
	keys, err := tenants.OwnPasskeys(t.Context(), s.DB, who)
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d passkeys, %v", len(keys), err)
	}
	var all sync.WaitGroup
	answers := make(chan error, 2)
	for _, k := range keys {
		all.Go(func() { answers <- tenants.RemovePasskey(t.Context(), s.DB, who, k.ID) })
	}
	all.Wait()
	a, b := <-answers, <-answers
	if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), tenants.ErrLastWay) {
		t.Errorf("%v and %v", a, b)
	}
}

// Somebody sees where they are signed in, of the browser no more than its family,
// and ends all of it but this.
func TestOwnSessionsAreEndedElsewhere(t *testing.T) {
	s := newSite(t)
	olga := s.become(t, "olga@example.com", "Olga")
	other := s.become(t, "other@example.com", "Otto")
	olga.open(account).must(http.StatusOK, "Here").mustNot("Sign out everywhere else")
	away := s.visitor(t)
	away.device = olga.device
	away.header.Set("User-Agent", firefox)
	away.login().mustGo("/console/brands")
	olga.open(account).must(http.StatusOK, "Firefox", "Sign out everywhere else").mustNot("X11", "140.0", "192.0.2.1")
	s.Clock.Advance(6 * time.Minute) // saying no needs no touch
	olga.post(account+"/elsewhere", nil, account).mustGo(account + "?ended")
	away.open(account).must(http.StatusSeeOther)
	other.open(account).must(http.StatusOK)
	olga.open(account+"?ended").must(http.StatusOK, "signed out everywhere else").mustNot("Firefox")
}

// A member leaves by themselves, with a tick, under a fresh touch, whatever their
// role; the owners hear of it, and the last of them stays.
func TestMembersLeave(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	at := "/console/b/lake/quit"
	sure := url.Values{"sure": {"yes"}}
	viewer, owner := people["viewer"], people["owner"]
	viewer.open(account).must(http.StatusOK, at)
	viewer.open(at).must(http.StatusOK, "an owner must invite you again")
	viewer.post(at, nil, at).mustGo(at)
	if n := s.Count(t, `SELECT count(*) FROM memberships WHERE brand_id = 'lake'`); n != 4 {
		t.Fatalf("%d members", n)
	}
	viewer.post(at, sure, at).mustGo("/console/brands")
	viewer.open("/console/b/lake/").must(http.StatusNotFound)
	if m := s.letter(t); m.To != "owner@example.com" || !strings.Contains(m.Text, "Member left by themselves") {
		t.Errorf("%s reads %s: %s", m.To, m.Subject, m.Text)
	}
	s.told(t, "member.left", 1)
	owner.post(at, sure, at).must(http.StatusConflict, "must keep an owner")
	s.Clock.Advance(6 * time.Minute)
	if p := people["support"].post(at, sure, at); !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d to %s", p.status, p.location)
	}
	if r := console.RightOf(console.QuitBrand); !r.Touch || !r.Tells || len(r.Roles) != len(tenants.Roles()) {
		t.Errorf("%+v", r)
	}
}
