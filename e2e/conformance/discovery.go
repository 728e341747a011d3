package conformance

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func discoveryChecks() []check {
	return []check{
		{"M8", "the card has one identity scheme, and delegation", func(t *trial) {
			d := t.brand.document
			var found []string
			for _, name := range []string{"paJwt", "platformJwt"} {
				if raw, there := d.SecuritySchemes[name]; there {
					found = append(found, name)
					var s struct {
						HTTP struct {
							Scheme string `json:"scheme"`
							Format string `json:"bearerFormat"`
						} `json:"httpAuthSecurityScheme"`
					}
					if json.Unmarshal(raw, &s) != nil || s.HTTP.Scheme != "Bearer" || s.HTTP.Format != "JWT" {
						t.fail("%s is not HTTP Bearer with a JWT", name)
					}
				}
			}
			if len(found) != 1 {
				t.fail("identity schemes: %q, not one", found)
			}
		}},
		{"M8", "the JWT alone, and the JWT with delegation, are both enough", func(t *trial) {
			name := t.identityScheme()
			var got []string
			for _, r := range t.brand.document.SecurityRequirements {
				names := slices.Sorted(maps.Keys(r.Schemes))
				got = append(got, strings.Join(names, " "))
			}
			both := slices.Sorted(slices.Values([]string{name, "userDelegation"}))
			want := []string{name, strings.Join(both, " ")}
			if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.fail("securityRequirements name %q, not %q", got, want)
			}
		}},
		{"M8", "no capability is claimed that is not there", func(t *trial) {
			for _, name := range []string{"streaming", "pushNotifications", "extendedAgentCard"} {
				if got := t.brand.document.Capabilities[name]; got != false {
					t.fail("capabilities.%s is %v, not false", name, got)
				}
			}
		}},
		{"M8", "card and metadata tell the same, byte for byte", func(t *trial) {
			d, m := t.brand.document.delegation.OAuth2, t.brand.oauth
			flow := d.Flows.DeviceCode
			for what, pair := range map[string][2]string{
				"device endpoint": {flow.DeviceURL, m.DeviceEndpoint},
				"token endpoint":  {flow.TokenURL, m.TokenEndpoint},
			} {
				if pair[0] != pair[1] {
					t.fail("%s: the card says %q, the metadata %q", what, pair[0], pair[1])
				}
			}
			if flow.RefreshURL != "" && flow.RefreshURL != m.TokenEndpoint {
				t.fail("refreshUrl %q is not the token endpoint %q", flow.RefreshURL, m.TokenEndpoint)
			}
			if !slices.Equal(t.brand.document.scopes, m.Scopes) {
				t.fail("scopes: the card has %q, the metadata %q", t.brand.document.scopes, m.Scopes)
			}
		}},
		{"M8", "the issuer is {interface}/oauth on the interface's own origin", func(t *trial) {
			m := t.brand.oauth
			if m.Issuer != t.brand.at+"/oauth" {
				t.fail("the issuer is %q, the interface %q: strict agents refuse it", m.Issuer, t.brand.at)
			}
			for _, address := range []string{
				m.DeviceEndpoint, m.TokenEndpoint, m.JWKSURI, m.RevocationEndpoint, m.IntrospectionEndpoint,
				t.brand.document.delegation.OAuth2.MetadataURL,
			} {
				if address != "" && origin(address) != origin(t.brand.at) {
					t.fail("%s is on another origin than %s", address, t.brand.at)
				}
			}
		}},
		{"M8", "the card is public, the unknown one is not there", func(t *trial) {
			a := t.get(t.brand.card)
			a.is(t, "the card", http.StatusOK)
			if !isJSON(a.header) {
				t.fail("the card's Content-Type is %q", a.header.Get("Content-Type"))
			}
			t.get(t.unknownBrand(t.brand.card)).is(t, "an unknown Brand's card", http.StatusNotFound)
		}},
		{"M8", "metadata: what must be in it, at both addresses", func(t *trial) {
			m := t.brand.oauth
			for name, value := range map[string]string{
				"revocation_endpoint": m.RevocationEndpoint, "introspection_endpoint": m.IntrospectionEndpoint, "jwks_uri": m.JWKSURI,
			} {
				if value == "" {
					t.fail("%s is missing", name)
				}
			}
			for name, pair := range map[string][2][]string{
				"token_endpoint_auth_methods_supported":         {m.TokenAuth, {"private_key_jwt"}},
				"revocation_endpoint_auth_methods_supported":    {m.RevocationAuth, {"private_key_jwt"}},
				"introspection_endpoint_auth_methods_supported": {m.IntrospectionAuth, {"Bearer"}},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					t.fail("%s is %q, not %q", name, pair[0], pair[1])
				}
			}
			for _, grant := range []string{deviceGrant, refreshGrant} {
				if !slices.Contains(m.GrantTypes, grant) {
					t.fail("grant_types_supported lacks %s", grant)
				}
			}
			u, err := url.Parse(m.Issuer)
			if err != nil {
				t.fail("the issuer is no URL")
			}
			for _, at := range []string{m.Issuer + metadataPath, origin(m.Issuer) + metadataPath + u.Path} {
				a := t.get(at)
				a.is(t, at, http.StatusOK)
				if compact(a.body) != compact(t.brand.rawOAuth) {
					t.fail("%s says something else", at)
				}
				if a.header.Get("Access-Control-Allow-Origin") != "*" {
					t.fail("%s cannot be read from other origins", at)
				}
			}
		}},
		{"M8", "keys: public only, cached for 300 s, with an ETag", func(t *trial) {
			a := t.get(t.brand.oauth.JWKSURI)
			a.is(t, "the JWKS", http.StatusOK)
			var set struct {
				Keys []map[string]any `json:"keys"`
			}
			a.json(t, &set)
			for _, k := range set.Keys {
				for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
					if _, there := k[secret]; there {
						t.fail("a published key has the private member %s", secret)
					}
				}
			}
			tag := a.header.Get("ETag")
			if !strings.Contains(a.header.Get("Cache-Control"), "public") || !strings.Contains(a.header.Get("Cache-Control"), "max-age=300") ||
				tag == "" || a.header.Get("Access-Control-Allow-Origin") != "*" {
				t.fail("Cache-Control %q, ETag %q, CORS %q", a.header.Get("Cache-Control"), tag, a.header.Get("Access-Control-Allow-Origin"))
			}
			again := t.do(call{method: http.MethodGet, url: t.brand.oauth.JWKSURI, header: http.Header{"If-None-Match": {tag}}})
			again.is(t, "the JWKS by its ETag", http.StatusNotModified)
		}},
		{"M8", "addresses are configuration and never the caller's headers", func(t *trial) {
			// The Host that leads to the server stays: a front of several names would
			// not find it otherwise.
			a := t.do(call{method: http.MethodGet, url: t.brand.card, header: http.Header{
				"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"gopher"}, "Forwarded": {"host=evil.example"},
			}})
			if compact(a.body) != compact(t.brand.rawCard) {
				t.fail("the card changes with X-Forwarded-Host")
			}
		}},
	}
}

// identityScheme is the name of the JWT scheme on the card.
func (t *trial) identityScheme() string {
	for _, name := range []string{"paJwt", "platformJwt"} {
		if _, there := t.brand.document.SecuritySchemes[name]; there {
			return name
		}
	}
	t.fail("the card has no identity scheme")
	return ""
}

func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}
