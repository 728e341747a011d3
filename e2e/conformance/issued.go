package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func issuedChecks() []check {
	return []check{
		{"M17", "the token is for one Brand, and says all it must", func(t *trial) {
			u := t.user()
			asked := time.Now()
			p := u.granted(0, t.scopes(1)...)
			h, c := p.read.header, p.read.claims
			for name, want := range map[string]string{
				"iss": t.brand.oauth.Issuer, "aud": t.brand.at, "client_id": u.pa.Issuer, "scope": p.Scope,
			} {
				if c[name] != want {
					t.fail("%s is %v, not the one string %q", name, c[name], want)
				}
			}
			for _, name := range []string{"sub", "grant_id", "jti"} {
				if p.claim(name) == "" {
					t.fail("%s is missing", name)
				}
			}
			iat, _ := c["iat"].(float64)
			exp, _ := c["exp"].(float64)
			switch {
			case h["typ"] != "at+jwt" || h["alg"] != "ES256" && h["alg"] != "RS256":
				t.fail("header typ %v, alg %v", h["typ"], h["alg"])
			case iat < float64(asked.Unix()-60) || iat > float64(time.Now().Unix()+60):
				t.fail("iat is not now")
			case exp <= iat || exp-iat > 3600:
				t.fail("a life of %v s", exp-iat)
			case p.ExpiresIn > int(exp-iat):
				t.fail("expires_in %d is longer than the token's life of %v s", p.ExpiresIn, exp-iat)
			}
			if f, ok := t.People.(*Forms); ok && f.People[0].Subject != "" && c["sub"] != f.People[0].Subject {
				t.fail("sub is not the Brand's id of the person")
			}
		}},
		{"M17", "the token's signature is of a published key", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			if err := p.read.verify(t.get(t.brand.oauth.JWKSURI).body); err != nil {
				t.fail("%v", err)
			}
		}},
		{"M17", "another Brand's token, or its keys, say nothing here", func(t *trial) {
			other := t.neighbour()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			if p.read.verify(other.keys) == nil {
				t.fail("two Brands sign with the same key")
			}
			a := u.there().post(other.oauth.TokenEndpoint, url.Values{"grant_type": {refreshGrant}, "refresh_token": {p.RefreshToken}})
			a.refuses(t, "the refresh token at another Brand", bad, "invalid_grant")
			if other.oauth.RevocationEndpoint != "" {
				u.there().post(other.oauth.RevocationEndpoint, url.Values{"token": {p.RefreshToken}}).is(t, "revoking at another Brand", http.StatusOK)
			}
			u.refresh(p.RefreshToken).pays(u, "the refresh at its own Brand")
		}},
		{"M17", "introspection: active here, and only that", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			if got := t.introspect(p.AccessToken); got["active"] != true || got["scope"] != p.Scope || got["client_id"] != u.pa.Issuer || got["aud"] != t.brand.at {
				t.fail("a good token is %v", got)
			}
			dead := map[string]string{"nonsense": "not-a-jwt", "a tampered token": flip(p.AccessToken), "a refresh token": p.RefreshToken, "a pa-jwt": u.bearer()}
			if t.OtherCard != "" {
				dead["another Brand's token"] = t.elsewhere().user().granted(0, t.neighbour().document.scopes[0]).AccessToken
			}
			for what, token := range dead {
				if got := t.introspect(token); len(got) != 1 || got["active"] != false {
					t.fail("%s: %v, not only {active: false}", what, got)
				}
			}
			u.revoke(p.RefreshToken).is(t, "the revocation", http.StatusOK)
			if got := t.introspect(p.AccessToken); len(got) != 1 || got["active"] != false {
				t.fail("a revoked token: %v", got)
			}
		}},
		{"M17", "introspection is for the Brand alone", func(t *trial) {
			t.needs(t.brand.oauth.IntrospectionEndpoint != "", "an introspection endpoint")
			u := t.user()
			for _, bearer := range []string{"", "cs_none_none", u.bearer()} {
				t.form(t.brand.oauth.IntrospectionEndpoint, bearer, url.Values{"token": {"x"}}).
					bare401(t, "introspection by a stranger", `Bearer realm="countersign", error="invalid_token"`)
			}
		}},
		{"M17", "revocation: 200 for all, and only the rightful ends anything", func(t *trial) {
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			strangers := []user{u.other()}
			if t.OtherPA != nil {
				strangers = append(strangers, u.at(t.OtherPA))
			}
			for _, who := range strangers {
				for _, token := range []string{p.RefreshToken, p.AccessToken} {
					who.revoke(token).is(t, "revoking what is not one's own", http.StatusOK)
				}
			}
			next := u.refresh(p.RefreshToken).pays(u, "the refresh afterwards")
			u.revoke("unknown").is(t, "revoking what nobody knows", http.StatusOK)
			t.form(t.brand.oauth.RevocationEndpoint, u.bearer(), url.Values{"token": {next.AccessToken}, "token_type_hint": {"refresh_token"}}).
				is(t, "revoking without client_id, with a wrong hint", http.StatusOK)
			u.refresh(next.RefreshToken).refuses(t, "the refresh after its end", bad, "invalid_grant")
			u.revoke(next.AccessToken).is(t, "revoking again", http.StatusOK)
		}},
		{"M18", "a step-up takes no token that another agent shows", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			t.needs(t.OtherPA != nil, "a second agent (--other-pa)")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			rest := t.brand.document.scopes[1:2]
			good := t.stepUp(object{"pa_jwt": u.bearer(), "delegation_token": p.AccessToken, "scopes": rest})
			good.is(t, "the rightful agent's step-up", http.StatusOK)
			a := t.stepUp(object{"pa_jwt": u.at(t.OtherPA).bearer(), "delegation_token": p.AccessToken, "scopes": rest})
			a.refuses(t, "another agent's", bad, "invalid_token")
			a = t.stepUp(object{"pa_jwt": u.other().bearer(), "delegation_token": p.AccessToken, "scopes": rest})
			a.refuses(t, "another User's of the same agent", bad, "invalid_token")
			a = t.stepUp(object{"pa_jwt": u.bearer(), "delegation_token": flip(p.AccessToken), "scopes": rest})
			a.refuses(t, "a tampered token", bad, "invalid_token")
		}},
		{"M18", "a grant is shown to the agent that holds it alone", func(t *trial) {
			at := t.grantEndpoint()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			address := at + "/" + p.claim("grant_id")
			t.do(call{method: http.MethodGet, url: address, bearer: u.bearer()}).is(t, "the holder", http.StatusOK)
			t.do(call{method: http.MethodGet, url: address, bearer: u.other().bearer()}).is(t, "another User", http.StatusNotFound)
			if t.OtherPA != nil {
				t.do(call{method: http.MethodGet, url: address, bearer: u.at(t.OtherPA).bearer()}).is(t, "another agent", http.StatusNotFound)
			}
		}},
	}
}

func (t *trial) introspect(token string) map[string]any {
	a := t.form(t.brand.oauth.IntrospectionEndpoint, t.BrandKey, url.Values{"token": {token}})
	a.is(t, "introspection", http.StatusOK)
	var got map[string]any
	a.json(t, &got)
	return got
}

// stepUp is a Brand's own call.
func (t *trial) stepUp(body object) answer { return t.asBrand("stepup", body) }

// asBrand is a call of the Brand's own server.
func (t *trial) asBrand(endpoint string, body object) answer {
	raw, err := json.Marshal(body)
	if err != nil {
		t.fail("encode: %v", err)
	}
	at := t.brand.oauth.Issuer + "/" + endpoint
	a := t.do(call{method: http.MethodPost, url: at, bearer: t.BrandKey, media: jsonType, body: string(raw)})
	if a.status == http.StatusNotFound {
		t.notServed("there is no " + path(at))
	}
	return a
}

func (t *trial) grantEndpoint() string {
	var m struct {
		Endpoint string `json:"grant_management_endpoint"`
	}
	_ = json.Unmarshal(t.brand.rawOAuth, &m) // it parsed before
	if m.Endpoint == "" || !slices.Contains(t.brand.oauth.GrantManagementActions, "query") {
		t.notServed("no grant management")
	}
	return strings.TrimRight(m.Endpoint, "/")
}
