package consent_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// P48, R75: a whole journey, from the browser's side and the agent's, with its
// accidents, leaves ids in the audit trail and nothing else: no code, no token,
// no word that a person typed or read, no e-mail address.
func TestTheTrailHoldsIdsOnly(t *testing.T) {
	s := newSite(t)
	const name, sub = "Canary Name", "canary-sub"
	s.Exec(t, `UPDATE agents SET name = $1`, name)
	who := authority.Caller{Agent: alex.Agent, Sub: sub}
	ask := func(scopes ...string) authority.Started {
		return authoritytest.Begin(t, s.rules, s.Hotel, who, scopes...)
	}
	p := s.person(t)
	decide := func(started authority.Started, decision string) (session string) {
		t.Helper()
		action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
		form.Set("decision", decision)
		p.post(action, form)
		return form.Get("session")
	}
	denied, first := ask("bookings:read"), ask("bookings:read", "account:read")
	sessions := []string{decide(denied, "deny"), decide(first, "allow")}
	p.open(s.pages(s.Hotel, "device") + "?user_code=BCDF-GHJK") // nobody's
	paid, err := s.rules.Poll(t.Context(), s.Hotel, who, first.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.rules.Poll(t.Context(), s.Hotel, who, first.DeviceCode) // paid twice
	next, err := s.rules.Refresh(t.Context(), s.Hotel, who, paid.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.rules.EndScopeByUser(t.Context(), s.Hotel.ID, "harbor-hotel-7", paid.GrantID, "account:read"); err != nil {
		t.Fatal(err)
	}
	if err := s.rules.EndByToken(t.Context(), s.Hotel.ID, who, next.JWS); err != nil {
		t.Fatal(err)
	}
	again := ask("bookings:read")
	sessions = append(sessions, decide(again, "allow"))
	more, err := s.rules.Poll(t.Context(), s.Hotel, who, again.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.rules.Refresh(t.Context(), s.Hotel, who, more.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(s.Hotel.Grace + time.Minute)
	if _, err := s.rules.Refresh(t.Context(), s.Hotel, who, more.Refresh, nil); err == nil {
		t.Fatal("a replay was paid")
	}

	var trail strings.Builder
	err = s.rules.Trail(t.Context(), s.Hotel.ID, authority.Events{}, 1000, func(e authority.Entry) error {
		e.Salt, e.Digest, e.Hash = nil, nil, nil // random: could look like anything
		line, err := e.Line()
		trail.Write(line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"request.denied", "grant.created", "grant.narrowed", "grant.reuse_detected", "request.redeemed_again", "grant.revoked", "harbor-hotel-7", alex.Agent} {
		if !strings.Contains(trail.String(), event) {
			t.Errorf("%s is missing, so this proves little", event)
		}
	}
	canaries := map[string]string{
		"an e-mail address": "alex@", "the name at the sign-in": "login-alex", "the agent's words": name,
		"the agent's name for the person": sub, "the Brand's words": "See your", "a JWT": "eyJ", "a device code": "dc_",
		"a refresh token": "rt_", "a user code in a link": "user_code=", "a wrong code": "BCDF-GHJK", "a wrong code, bare": "BCDFGHJK",
		"the access token's signature": after(paid.JWS), "another's": after(next.JWS),
	}
	for i, started := range []authority.Started{denied, first, again} {
		canaries["user code "+string(rune('1'+i))] = started.UserCode.String()
		canaries["user code, bare "+string(rune('1'+i))] = string(started.UserCode)
		canaries["form session "+string(rune('1'+i))] = sessions[i]
		canaries["cookie"] = cookieOf(p, must(url.Parse(s.url)))
	}
	for what, text := range canaries {
		if text == "" {
			t.Errorf("%s: nothing to look for", what)
		} else if strings.Contains(trail.String(), text) {
			t.Errorf("the trail holds %s:\n%s", what, trail.String())
		}
	}
	if _, err := s.rules.VerifyTrail(t.Context(), s.Hotel.ID, nil); err != nil {
		t.Error(err)
	}
}

// after is the last part of a JWS.
func after(jws string) string { return jws[strings.LastIndex(jws, ".")+1:] }
