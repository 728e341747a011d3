package conformance

import (
	"net/http"
	"net/url"
	"sync"
	"time"
)

const bad = http.StatusBadRequest

func tokenChecks() []check {
	return []check{
		{"M11", "a code is of no use to others, and loses nothing by them", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			t.othersTry(u, func(who user) answer { return s.poll(who) })
			s.poll(u).refuses(t, "the rightful first poll afterwards", bad, "authorization_pending")
			s.decides(0, Decision{})
			t.othersTry(u, func(who user) answer { return s.poll(who) })
			s.poll(u).pays(u, "the rightful poll after the approval")
			t.othersTry(u, func(who user) answer { return s.poll(who) })
		}},
		{"M11", "a denied code tells others nothing", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{Deny: true})
			t.othersTry(u, func(who user) answer { return s.poll(who) })
			s.poll(u).refuses(t, "the rightful poll", bad, "access_denied")
		}},
		{"M11", "a code of one Brand is unknown at another", func(t *trial) {
			other := t.neighbour()
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			form := url.Values{"grant_type": {deviceGrant}, "device_code": {s.DeviceCode}}
			u.there().post(other.oauth.TokenEndpoint, form).refuses(t, "the code at another Brand", bad, "invalid_grant")
			s.poll(u).pays(u, "the rightful poll")
		}},
		{"M11", "what nobody was given is invalid_grant", func(t *trial) {
			u := t.user()
			for _, code := range []string{"dc_nothing", "x", "dc_" + newSub()} {
				form := url.Values{"grant_type": {deviceGrant}, "device_code": {code}}
				u.post(t.brand.oauth.TokenEndpoint, form).refuses(t, "an unknown code", bad, "invalid_grant")
			}
			u.post(t.brand.oauth.TokenEndpoint, url.Values{"grant_type": {deviceGrant}}).
				refuses(t, "no code", bad, "invalid_request")
			for _, grant := range []string{"authorization_code", "client_credentials", "password", "DEVICE_CODE"} {
				u.post(t.brand.oauth.TokenEndpoint, url.Values{"grant_type": {grant}}).
					refuses(t, "grant type "+grant, bad, "unsupported_grant_type")
			}
		}},
		{"M12", "polls inside the interval are told slow_down, the first never", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.poll(u).refuses(t, "the first poll", bad, "authorization_pending")
			s.poll(u).refuses(t, "a second poll at once", bad, "slow_down")
		}},
		{"M12", "an approved code is redeemed however early the poll", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.poll(u).refuses(t, "the first poll", bad, "authorization_pending")
			s.poll(u).refuses(t, "a second poll at once", bad, "slow_down")
			s.decides(0, Decision{})
			s.poll(u).pays(u, "an approved code polled early")
		}},
		{"M12", "the interval does not grow", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			for range 3 {
				s.poll(u)
			}
			t.waits(time.Duration(s.Interval) * time.Second)
			s.poll(u).refuses(t, "a poll after the interval", bad, "authorization_pending")
		}},
		{"M13", "redeemed once, however many poll at once", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			won := 0
			for _, a := range together(16, func() answer { return s.poll(u) }) {
				switch {
				case a.status == http.StatusOK:
					won++
				case a.status == bad && (a.oauthError() == "slow_down" || a.oauthError() == "invalid_grant"):
				default:
					t.fail("a poll that did not win: %s", a.says())
				}
			}
			if won != 1 {
				t.fail("%d of 16 polls were paid", won)
			}
			s.poll(u).refuses(t, "a poll afterwards", bad, "invalid_grant")
		}},
		{"M13", "a second redemption is refused and revokes nothing", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			p := s.poll(u).pays(u, "the poll")
			for range 2 {
				s.poll(u).refuses(t, "the same code again", bad, "invalid_grant")
			}
			u.refresh(p.RefreshToken).pays(u, "a refresh afterwards")
		}},
		{"M15", "scope says what was approved, not what was asked", func(t *trial) {
			u := t.user()
			all := t.scopes(2)
			s := u.ask(all...)
			s.decides(0, Decision{Untick: all[1:]})
			p := s.poll(u).pays(u, "the poll")
			if p.Scope != all[0] || p.claim("scope") != all[0] {
				t.fail("asked for %q, approved %q: the answer says %q, the token %q", all, all[0], p.Scope, p.claim("scope"))
			}
		}},
		{"M15", "the whole living grant: what was asked first, then the rest", func(t *trial) {
			u := t.user()
			all := t.scopes(2)
			u.granted(0, all[0])
			p := u.granted(0, all[1])
			if want := all[1] + " " + all[0]; p.Scope != want || p.claim("scope") != want {
				t.fail("held %q, asked for %q: the answer says %q, the token %q", all[0], all[1], p.Scope, p.claim("scope"))
			}
		}},
		{"M15", "the answer is a Bearer's, and not kept", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			h := p.raw.header
			switch {
			case p.TokenType != "Bearer":
				t.fail("token_type is %q", p.TokenType)
			case p.ExpiresIn <= 0 || p.ExpiresIn > 3600:
				t.fail("expires_in is %d", p.ExpiresIn)
			case h.Get("Cache-Control") != "no-store" || h.Get("Pragma") != "no-cache" || !isJSON(h):
				t.fail("Cache-Control %q, Pragma %q, Content-Type %q", h.Get("Cache-Control"), h.Get("Pragma"), h.Get("Content-Type"))
			}
		}},
	}
}

// othersTry makes the call as everybody whose business it is not.
func (t *trial) othersTry(u user, try func(user) answer) {
	try(u.other()).refuses(t, "another User of the same agent", bad, "invalid_grant")
	if t.OtherPA != nil {
		try(u.at(t.OtherPA)).refuses(t, "another agent, for a User of the same name", bad, "invalid_grant")
	}
}

// neighbour is the other Brand.
func (t *trial) neighbour() brand {
	t.needs(t.OtherCard != "", "another Brand that knows the agent (--other-card)")
	b, err := read(t.ctx, t.OtherCard)
	if err != nil {
		t.fail("the other Brand: %v", err)
	}
	return b
}

// together makes n calls at the same moment.
func together(n int, one func() answer) []answer {
	answers := make([]answer, n)
	problems := make([]any, n)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			defer func() { problems[i] = recover() }() // a trial's end, for this goroutine only
			<-begin
			answers[i] = one()
		})
	}
	close(begin)
	all.Wait()
	for _, p := range problems {
		if p != nil {
			panic(p)
		}
	}
	return answers
}
