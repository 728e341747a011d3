package conformance

import (
	"net/http"
	"net/url"
)

// standingChecks are about what has changed since a person said yes.
func standingChecks() []check {
	return []check{
		{"M14", "a grant that ended is not paid out, nor refreshed", func(t *trial) {
			u := t.user()
			first := u.granted(0, t.scopes(1)...)
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			u.revoke(first.AccessToken).is(t, "the revocation", http.StatusOK)
			s.poll(u).refuses(t, "redeeming a code of a grant that ended", bad, "invalid_grant")
			u.refresh(first.RefreshToken).refuses(t, "refreshing a grant that ended", bad, "invalid_grant")
		}},
		{"M14", "a suspended user: invalid_grant, and everything is kept", func(t *trial) {
			u, subject := t.suspendable()
			p := u.granted(0, t.scopes(1)...)
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			defer t.operates("resume-user", subject)
			t.operates("suspend-user", subject)
			s.poll(u).refuses(t, "redeeming while suspended", bad, "invalid_grant")
			u.refresh(p.RefreshToken).refuses(t, "refreshing while suspended", bad, "invalid_grant")
			t.operates("resume-user", subject)
			s.poll(u).pays(u, "redeeming afterwards")
			u.refresh(p.RefreshToken).pays(u, "refreshing afterwards, with the same token")
		}},
		{"M14", "a paused Brand: 503 with Retry-After, and everything is kept", func(t *trial) {
			t.needs(t.Operator != nil, "an operator (--operator)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			defer t.operates("resume-brand", "")
			t.operates("pause-brand", "")
			t.soon("a paused Brand still pays", func() bool { return s.poll(u).status != http.StatusOK })
			for what, a := range map[string]answer{"redeeming": s.poll(u), "refreshing": u.refresh(p.RefreshToken)} {
				a.refuses(t, what+" while paused", http.StatusServiceUnavailable, "temporarily_unavailable")
				if a.header.Get("Retry-After") == "" {
					t.fail("%s while paused: no Retry-After", what)
				}
			}
			t.operates("resume-brand", "")
			t.soon("the code is lost to the pause", func() bool { return s.poll(u).status == http.StatusOK })
			u.refresh(p.RefreshToken).pays(u, "refreshing afterwards, with the same token")
		}},
		{"M14", "a scope that left the card is in no new token", func(t *trial) {
			t.needs(t.Operator != nil, "an operator (--operator)")
			u := t.user()
			all := t.scopes(2)
			p := u.granted(0, all...)
			s := u.ask(all...)
			s.decides(0, Decision{})
			defer t.operates("restore-scope", all[1])
			t.operates("retire-scope", all[1])
			for what, a := range map[string]answer{"redeeming": s.poll(u), "refreshing": u.refresh(p.RefreshToken)} {
				if got := a.pays(u, what); got.Scope != all[0] || got.claim("scope") != all[0] {
					t.fail("%s: scope %q, though %s left the card", what, got.Scope, all[1])
				}
			}
		}},
		{"M14", "a disabled agent: 401 at both grants", func(t *trial) {
			t.needs(t.Operator != nil, "an operator (--operator)")
			t.needs(t.OtherPA != nil, "a second agent (--other-pa)")
			u := t.user().at(t.OtherPA)
			p := u.granted(0, t.scopes(1)...)
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{})
			defer t.operates("enable-agent", u.pa.Issuer)
			t.operates("disable-agent", u.pa.Issuer)
			for what, a := range map[string]answer{"redeeming": s.poll(u), "refreshing": u.refresh(p.RefreshToken)} {
				a.is(t, what+" while disabled", http.StatusUnauthorized)
			}
			t.operates("enable-agent", u.pa.Issuer)
			t.soon("the code is lost to the agent's being disabled", func() bool { return s.poll(u).status == http.StatusOK })
			u.refresh(p.RefreshToken).pays(u, "refreshing afterwards, with the same token")
		}},
	}
}

// suspendable is a user of the agent, and the Brand's id of the person who will
// answer.
func (t *trial) suspendable() (user, string) {
	t.needs(t.Operator != nil, "an operator (--operator)")
	f, ok := t.People.(*Forms)
	t.needs(ok && len(f.People) > 0 && f.People[0].Subject != "", "the Brand's id of the person (subject in --people)")
	return t.user(), f.People[0].Subject
}

func refreshChecks() []check {
	return []check{
		{"M16", "a refresh rotates, and carries the grant", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(2)...)
			next := u.refresh(p.RefreshToken).pays(u, "the refresh")
			switch {
			case next.RefreshToken == p.RefreshToken:
				t.fail("the refresh token stays the same")
			case next.Scope != p.Scope || next.claim("grant_id") != p.claim("grant_id"):
				t.fail("scope %q of another grant or less than %q", next.Scope, p.Scope)
			case next.claim("jti") == p.claim("jti"):
				t.fail("two tokens have one jti")
			}
			u.refresh(next.RefreshToken).pays(u, "the refresh with its successor")
		}},
		{"M16", "another caller gets nothing, and nothing changes", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			t.othersTry(u, func(who user) answer { return who.refresh(p.RefreshToken) })
			next := u.refresh(p.RefreshToken).pays(u, "the rightful refresh afterwards")
			// Spent now: no more may come of it in strangers' hands than of a fresh one.
			t.othersTry(u, func(who user) answer { return who.refresh(p.RefreshToken) })
			u.refresh(next.RefreshToken).pays(u, "the rightful refresh with the successor")
		}},
		{"M16", "inside the grace window the same successor comes again", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			first := u.refresh(p.RefreshToken).pays(u, "the refresh")
			second := u.refresh(p.RefreshToken).pays(u, "the same refresh again")
			if first.RefreshToken != second.RefreshToken {
				t.fail("a retry got another successor")
			}
		}},
		{"M16", "callers at the same moment get one successor", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			next := ""
			for _, a := range together(8, func() answer { return u.refresh(p.RefreshToken) }) {
				got := a.pays(u, "one of eight at the same moment")
				if next != "" && got.RefreshToken != next {
					t.fail("two successors of one token")
				}
				next = got.RefreshToken
			}
		}},
		{"M16", "once the successor is used, the predecessor is invalid_grant and nothing more", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			next := u.refresh(p.RefreshToken).pays(u, "the refresh")
			third := u.refresh(next.RefreshToken).pays(u, "the refresh with the successor")
			u.refresh(p.RefreshToken).refuses(t, "the predecessor", bad, "invalid_grant")
			u.refresh(third.RefreshToken).pays(u, "the refresh with the third")
		}},
		{"M16", "scope narrows the access token alone, and never widens", func(t *trial) {
			u := t.user()
			all := t.scopes(2)
			p := u.granted(0, all...)
			narrow := u.refresh(p.RefreshToken, all[0]).pays(u, "a narrower refresh")
			if narrow.Scope != all[0] || narrow.claim("scope") != all[0] {
				t.fail("asked for %q: the answer says %q, the token %q", all[0], narrow.Scope, narrow.claim("scope"))
			}
			wide := u.refresh(narrow.RefreshToken).pays(u, "the next refresh")
			if !isSet(wide.Scope, all...) {
				t.fail("the grant became narrower: %q", wide.Scope)
			}
			v := t.user()
			q := v.granted(0, all[0])
			v.refresh(q.RefreshToken, all[0], all[1]).refuses(t, "more than granted", bad, "invalid_scope")
			v.refresh(q.RefreshToken).pays(v, "the same token afterwards")
		}},
		{"M16", "reuse after the window ends the whole grant", func(t *trial) {
			t.needs(t.Grace > 0, "to know how long the window lasts (--grace)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			next := u.refresh(p.RefreshToken).pays(u, "the refresh")
			t.waits(t.Grace)
			u.refresh(p.RefreshToken).refuses(t, "the spent token after the window", bad, "invalid_grant")
			u.refresh(next.RefreshToken).refuses(t, "its successor, after the reuse", bad, "invalid_grant")
		}},
		{"M16", "what nobody was given is invalid_grant", func(t *trial) {
			u := t.user()
			u.refresh("rt_"+newSub()).refuses(t, "an unknown refresh token", bad, "invalid_grant")
			u.post(t.brand.oauth.TokenEndpoint, url.Values{"grant_type": {refreshGrant}}).
				refuses(t, "no refresh token", bad, "invalid_request")
			p := u.granted(0, t.scopes(1)...)
			u.refresh(p.AccessToken).refuses(t, "an access token for a refresh token", bad, "invalid_grant")
		}},
	}
}
