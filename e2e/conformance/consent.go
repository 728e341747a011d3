package conformance

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func consentChecks() []check {
	return []check{
		{"M19", "before the sign-in there is nothing to see and nothing to decide", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(2)...)
			v := s.seen(0)
			if len(v.before) == 0 {
				t.fail("the link leads to the question without any page or sign-in before")
			}
			for _, p := range v.before {
				if _, there := p.asks(); there {
					t.fail("%s has a decision before the sign-in", p.url.Path)
				}
				for _, f := range p.forms {
					if f.boxes.Has("scope") || f.values.Has("scope") {
						t.fail("%s has scopes before the sign-in", p.url.Path)
					}
				}
				for id, words := range t.brand.document.descriptions {
					if strings.Contains(p.text, fold(words)) || strings.Contains(p.text, id) {
						t.fail("%s tells the scope %s before the sign-in", p.url.Path, id)
					}
				}
			}
		}},
		{"M19", "a decision without a sign-in is 403, and the request stays open", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			v := s.seen(0)
			copied := t.withoutProof(v.question.values)
			for what, values := range map[string]url.Values{"a form copied from the question": copied, "an empty form": {}} {
				for _, decision := range []string{"allow", "deny"} {
					form := url.Values{}
					for name, value := range values {
						form[name] = value
					}
					form.Set("decision", decision)
					p, err := newVisitor(t.ctx).submit(v.asked, v.question, form)
					if err != nil {
						t.fail("%s: %v", what, err)
					}
					if p.status != http.StatusForbidden {
						t.fail("%s from a browser without a sign-in: %d, not 403", what, p.status)
					}
				}
			}
			s.poll(u).refuses(t, "the request", bad, "authorization_pending")
		}},
		{"M19", "who has only opened the link cannot decide", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			signedIn := s.seen(0)
			stranger := newVisitor(t.ctx)
			for _, address := range []string{s.Link, signedIn.asked.url.String()} {
				p, err := stranger.open(address)
				if err != nil {
					t.fail("open the page: %v", err)
				}
				if _, there := p.asks(); there {
					t.fail("the question stands open to a browser without a sign-in")
				}
			}
			form := t.withoutProof(signedIn.question.values)
			form.Set("decision", "allow")
			p, err := stranger.submit(signedIn.asked, signedIn.question, form)
			if err != nil || p.status < 400 {
				t.fail("a stranger's decision with a copied form: %d, %v", p.status, err)
			}
			s.poll(u).refuses(t, "the request", bad, "authorization_pending")
		}},
		{"M20", "the question says who asks, for what, in the Brand's words", func(t *trial) {
			u := t.user()
			asked := t.scopes(2)
			s := u.ask(asked...)
			v := s.seen(0)
			host := u.pa.Issuer
			if parsed, err := url.Parse(host); err == nil {
				host = parsed.Host
			}
			for what, words := range map[string]string{"the agent's host": host, "the user code": s.UserCode} {
				if !strings.Contains(v.asked.text, words) {
					t.fail("%s is not on the page", what)
				}
			}
			for _, id := range asked {
				if !strings.Contains(v.asked.text, fold(t.brand.document.descriptions[id])) {
					t.fail("the description of %s is not on the page verbatim", id)
				}
				if !slices.Contains(v.question.boxes["scope"], id) {
					t.fail("%s has no box", id)
				}
			}
			if !isSet(strings.Join(v.question.boxes["scope"], " "), asked...) {
				t.fail("boxes %q for what was asked, %q", v.question.boxes["scope"], asked)
			}
			decisions := v.question.buttons["decision"]
			if !slices.Contains(decisions, "allow") || !slices.Contains(decisions, "deny") {
				t.fail("the ways to decide are %q", decisions)
			}
		}},
		{"M20", "pages refuse frames, and are not kept", func(t *trial) {
			u := t.user()
			v := u.ask(t.scopes(1)...).seen(0)
			for _, p := range append(v.before, v.asked) {
				policy := p.header.Get("Content-Security-Policy")
				switch {
				case p.header.Get("X-Frame-Options") != "DENY" || !strings.Contains(policy, "frame-ancestors 'none'"):
					t.fail("%s may be framed", p.url.Path)
				case !strings.Contains(p.header.Get("Cache-Control"), "no-store"):
					t.fail("%s: Cache-Control is %q", p.url.Path, p.header.Get("Cache-Control"))
				case strings.Contains(policy, "unsafe-inline") || !strings.Contains(policy, "form-action"):
					t.fail("%s: the policy is %q", p.url.Path, html.EscapeString(policy))
				}
			}
		}},
		{"M20", "only what was offered can be granted", func(t *trial) {
			u := t.user()
			one, other := t.scopes(2)[0], t.scopes(2)[1]
			s := u.ask(one)
			s.seen(0).answer(t, url.Values{"decision": {"allow"}, "scope": {one, other, "no:such:scope"}})
			if p := s.poll(u).pays(u, "the poll"); p.Scope != one {
				t.fail("offered %q, and the form ticked more: granted %q", one, p.Scope)
			}
		}},
		{"M20", "unticking at the next question takes a scope away, from what is held too", func(t *trial) {
			u := t.user()
			all := t.scopes(2)
			first := u.granted(0, all...)
			s := u.ask(all...)
			s.decides(0, Decision{Untick: all[1:]})
			if p := s.poll(u).pays(u, "the poll"); p.Scope != all[0] || p.claim("grant_id") != first.claim("grant_id") {
				t.fail("after unticking %q the grant holds %q", all[1], p.Scope)
			}
		}},
		{"M20", "deny answers access_denied, and changes nothing", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			s := u.ask(t.scopes(2)...)
			s.decides(0, Decision{Deny: true})
			s.poll(u).refuses(t, "the poll", bad, "access_denied")
			if next := u.refresh(p.RefreshToken).pays(u, "a refresh of what was held"); next.Scope != p.Scope {
				t.fail("a no changed the grant to %q", next.Scope)
			}
		}},
		{"M20", "nothing ticked is a no, and ends what was held", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.decides(0, Decision{Untick: t.scopes(1)})
			s.poll(u).refuses(t, "the poll", bad, "access_denied")
			v := t.user()
			p := v.granted(0, t.scopes(1)...)
			again := v.ask(t.scopes(1)...)
			again.decides(0, Decision{Untick: t.scopes(1)})
			again.poll(v).refuses(t, "the poll", bad, "access_denied")
			v.refresh(p.RefreshToken).refuses(t, "a refresh of what was held", bad, "invalid_grant")
		}},
		{"M20", "the first decision is final", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			one, two := s.seen(0), s.seen(0)
			one.answer(t, url.Values{"decision": {"deny"}})
			two.answer(t, url.Values{"decision": {"allow"}})
			s.poll(u).refuses(t, "denied first, then allowed", bad, "access_denied")
			v := t.user()
			s = v.ask(t.scopes(1)...)
			one, two = s.seen(0), s.seen(0)
			one.answer(t, url.Values{"decision": {"allow"}})
			two.answer(t, url.Values{"decision": {"deny"}})
			s.poll(v).pays(v, "allowed first, then denied")
		}},
	}
}

// withoutProof are the question's values for a browser that did not sign in. Where
// the Brand signs people in on its own page, the hidden session is the proof of it,
// in whatever browser.
func (t *trial) withoutProof(values url.Values) url.Values {
	out := url.Values{}
	for name, value := range values {
		out[name] = value
	}
	if f, ok := t.People.(*Forms); ok && f.Assertion != nil {
		out.Del("session")
	}
	return out
}

// fold makes blanks alike.
func fold(s string) string { return strings.Join(strings.Fields(s), " ") }
