package conformance

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

var (
	deviceCode = regexp.MustCompile(`^dc_[A-Za-z0-9_-]{43}$`)
	userCode   = regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`)
)

func deviceChecks() []check {
	return []check{
		{"M9", "client_id is the pa-jwt's iss, byte for byte", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			ids := []string{"", u.pa.Issuer + "/", strings.ToUpper(u.pa.Issuer), u.pa.Issuer + " ", "https://nobody.invalid"}
			if t.OtherPA != nil {
				ids = append(ids, t.OtherPA.Issuer)
			}
			for _, id := range ids {
				what := "client_id " + strings.Replace(id, u.pa.Issuer, "ISS", 1)
				u.post(t.brand.oauth.DeviceEndpoint, url.Values{"client_id": {id}, "scope": t.scopes(1)}).
					refuses(t, "device authorization with "+what, http.StatusUnauthorized, "invalid_client")
				u.post(t.brand.oauth.TokenEndpoint, url.Values{"client_id": {id}, "grant_type": {deviceGrant}, "device_code": {s.DeviceCode}}).
					refuses(t, "the token endpoint with "+what, http.StatusUnauthorized, "invalid_client")
			}
			s.poll(u).refuses(t, "the rightful poll afterwards", http.StatusBadRequest, "authorization_pending")
		}},
		{"M9", "client_id may not be left out", func(t *trial) {
			u := t.user()
			t.form(t.brand.oauth.DeviceEndpoint, u.bearer(), url.Values{"scope": t.scopes(1)}).
				refuses(t, "device authorization", http.StatusUnauthorized, "invalid_client")
			t.form(t.brand.oauth.TokenEndpoint, u.bearer(), url.Values{"grant_type": {deviceGrant}, "device_code": {"dc_none"}}).
				refuses(t, "the token endpoint", http.StatusUnauthorized, "invalid_client")
		}},
		{"M10", "only scopes of the card, and at least one", func(t *trial) {
			u := t.user()
			one := t.scopes(1)[0]
			for _, scope := range []string{"", " ", "no:such:scope", one + " no:such:scope", strings.ToUpper(one), one + "*", "openid offline_access"} {
				u.post(t.brand.oauth.DeviceEndpoint, url.Values{"scope": {scope}}).
					refuses(t, "scope "+scope, http.StatusBadRequest, "invalid_scope")
			}
			u.post(t.brand.oauth.DeviceEndpoint, url.Values{}).refuses(t, "no scope", http.StatusBadRequest, "invalid_scope")
			u.ask(t.scopes(2)...)
		}},
		{"M10", "duplicates fold, and the order asked for stays", func(t *trial) {
			u := t.user()
			a, b := t.scopes(2)[0], t.scopes(2)[1]
			s := u.ask(b, a, b, a)
			s.decides(0, Decision{})
			if got := s.poll(u).pays(u, "the poll").Scope; got != b+" "+a {
				t.fail("scope is %q, not %q", got, b+" "+a)
			}
		}},
		{"M10", "asking again for what is held works", func(t *trial) {
			u := t.user()
			first := u.granted(0, t.scopes(1)...)
			second := u.granted(0, t.scopes(1)...)
			if first.claim("grant_id") != second.claim("grant_id") {
				t.fail("the second request made another grant")
			}
		}},
		{"M10", "what is no form is refused", func(t *trial) {
			u := t.user()
			good := url.Values{"client_id": {u.pa.Issuer}, "scope": t.scopes(1)}.Encode()
			for what, c := range map[string]call{
				"JSON":                 {media: jsonType, body: `{"client_id":"` + u.pa.Issuer + `","scope":"` + t.scopes(1)[0] + `"}`},
				"a repeated parameter": {media: formType, body: good + "&" + good},
				"more than 8 KiB":      {media: formType, body: good + "&pad=" + strings.Repeat("x", 8<<10)},
				"a broken escape":      {media: formType, body: good + "&pad=%zz"},
			} {
				c.method, c.url, c.bearer = http.MethodPost, t.brand.oauth.DeviceEndpoint, u.bearer()
				t.do(c).refuses(t, what, http.StatusBadRequest, "invalid_request")
			}
		}},
		{"M10", "authorization_details of no known type are refused", func(t *trial) {
			u := t.user()
			for _, details := range []string{`[{"type":"no-such-type"}]`, `[]`, `null`, `{`} {
				u.post(t.brand.oauth.DeviceEndpoint, url.Values{"scope": t.scopes(1), "authorization_details": {details}}).
					refuses(t, details, http.StatusBadRequest, "invalid_authorization_details")
			}
		}},
		{"M10", "too many requests of one User: 429 with Retry-After, and nobody else's", func(t *trial) {
			const most = 100
			u := t.user()
			for range most {
				a := u.post(t.brand.oauth.DeviceEndpoint, url.Values{"scope": t.scopes(1)})
				if a.status == http.StatusOK {
					continue
				}
				a.refuses(t, "one more", http.StatusTooManyRequests, "slow_down")
				if a.header.Get("Retry-After") == "" {
					t.fail("no Retry-After")
				}
				u.other().ask(t.scopes(1)...)
				return
			}
			t.fail("%d requests of one User, one after the other, were all begun", most)
		}},
		{"M10", "the answer is exactly RFC 8628's", func(t *trial) {
			u := t.user()
			a := u.post(t.brand.oauth.DeviceEndpoint, url.Values{"scope": t.scopes(1)})
			a.is(t, "device authorization", http.StatusOK)
			var s started
			a.json(t, &s)
			switch {
			case !deviceCode.MatchString(s.DeviceCode):
				t.fail("device_code is not dc_ and 256 bits in base64url")
			case !userCode.MatchString(s.UserCode):
				t.fail("user_code is not XXXX-XXXX over the twenty consonants")
			case s.ExpiresIn != 600 || s.Interval != 5:
				t.fail("expires_in %d and interval %d, not 600 and 5", s.ExpiresIn, s.Interval)
			case a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache":
				t.fail("Cache-Control %q, Pragma %q", a.header.Get("Cache-Control"), a.header.Get("Pragma"))
			}
			for _, link := range []string{s.URI, s.Link} {
				v, err := url.Parse(link)
				if err != nil || !v.IsAbs() || v.Fragment != "" || v.Scheme != "https" && !isLoopback(v.Hostname()) {
					t.fail("a verification address is no absolute https URL without a fragment")
				}
			}
			var members map[string]any
			a.json(t, &members)
			if len(members) != 6 {
				t.fail("the answer has %d members, not 6", len(members))
			}
		}},
	}
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || strings.HasSuffix(host, ".localhost")
}
