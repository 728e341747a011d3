package conformance

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// told are the headers that a proxy takes over from the answer.
var told = []string{
	"Countersign-Agent", "Countersign-Agent-Subject", "Countersign-User", "Countersign-Scopes",
	"Countersign-Details", "Countersign-Grant", "Countersign-Token", "Countersign-Expires",
}

// unset are those of them that an answer leaves out; empty is set.
func unset(header http.Header) []string {
	return slices.DeleteFunc(slices.Clone(told), func(name string) bool {
		_, there := header[name]
		return there
	})
}

// proxyChecks are about {issuer}/verify, where a Brand's own proxy asks who calls.
func proxyChecks() []check {
	return []check{
		{"M18", "a Brand's proxy lets no token through that another agent shows", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			t.needs(t.OtherPA != nil, "a second agent (--other-pa)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			t.asks(u.bearer(), p.AccessToken).is(t, "the rightful agent", http.StatusOK)
			t.asks(u.at(t.OtherPA).bearer(), p.AccessToken).bare401(t, "another agent", badToken)
			t.asks(u.other().bearer(), p.AccessToken).bare401(t, "another User of the same agent", badToken)
		}},
		{"M21", "a Brand's proxy is told who calls, with every header set", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			for _, token := range []string{p.AccessToken, ""} {
				a := t.asks(u.bearer(), token)
				a.is(t, "a good call", http.StatusOK)
				if len(a.body) != 0 {
					t.fail("the answer has a body")
				}
				for _, name := range unset(a.header) {
					t.fail("%s is not set: what a caller forged would stay", name)
				}
				user, scopes := p.claim("sub"), p.Scope
				if token == "" {
					user, scopes = "", ""
				}
				if a.header.Get("Countersign-Agent") != u.pa.Issuer || a.header.Get("Countersign-User") != user || a.header.Get("Countersign-Scopes") != scopes {
					t.fail("the headers say %q of %q", a.header.Get("Countersign-Scopes"), a.header.Get("Countersign-User"))
				}
			}
		}},
		{"M21", "a Brand's proxy is given the same 401s, the pa-jwt's first", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			for _, token := range []string{"", p.AccessToken, "not-a-jwt"} {
				t.asks(u.pa.sign(u.sub, object{"exp": 1}), token).plain401(t, "a bad pa-jwt")
			}
			for what, token := range map[string]string{
				"not a JWT": "not-a-jwt", "a tampered token": flip(p.AccessToken), "a refresh token": p.RefreshToken, "a pa-jwt": u.bearer(),
			} {
				t.asks(u.bearer(), token).bare401(t, what, badToken)
			}
			u.revoke(p.RefreshToken).is(t, "the revocation", http.StatusOK)
			t.asks(u.bearer(), p.AccessToken).bare401(t, "a revoked token", badToken)
		}},
		{"M21", "a proxy proves itself first", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			t.asks(u.bearer(), "").is(t, "the Brand's proxy", http.StatusOK)
			for _, key := range []string{"", "cs_none_none", t.BrandKey[:len(t.BrandKey)-1]} {
				a := t.asksWith(key, u.bearer(), "")
				a.is(t, "another key", http.StatusServiceUnavailable)
				if a.header.Get("Retry-After") == "" || a.header.Get("WWW-Authenticate") != "" || len(unset(a.header)) < len(told) {
					t.fail("another key: the caller hears %v", a.header)
				}
			}
		}},
	}
}

// asks is a proxy's question about a call with this pa-jwt and token.
func (t *trial) asks(paJWT, token string) answer { return t.asksWith(t.BrandKey, paJWT, token) }

func (t *trial) asksWith(key, paJWT, token string) answer {
	at := cmp.Or(t.Verify, strings.TrimRight(t.brand.oauth.Issuer, "/")+"/verify")
	header := http.Header{"X-Original-Uri": {path(t.operation("message:send"))}, "X-Original-Method": {http.MethodPost}}
	if key != "" {
		header.Set("Countersign-Authorization", "Bearer "+key)
	}
	a := t.do(call{method: http.MethodGet, url: at, bearer: paJWT, delegation: token, header: header})
	if a.status == http.StatusNotFound {
		t.notServed("there is no " + path(at))
	}
	return a
}
