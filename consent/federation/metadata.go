package federation

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// metadata is the part of a discovery document that we use.
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKS                  string   `json:"jwks_uri"`
	Algorithms            []string `json:"id_token_signing_alg_values_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
}

// signing are the algorithms we accept. HS256 and its kin are not among them: with
// them, whoever holds a public key or our secret could sign as the provider. "none"
// even less so.
var signing = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// discover fetches and checks the provider's description of itself.
func (c *Client) discover(ctx context.Context, key providerKey) (metadata, error) {
	if !usable(key.issuer, key.loopback) || strings.Contains(key.issuer, "?") {
		return metadata{}, misconfigured("the issuer is not an https URL")
	}
	var m metadata
	address := strings.TrimSuffix(key.issuer, "/") + "/.well-known/openid-configuration"
	if err := c.getJSON(ctx, "discovery", address, &m); err != nil {
		return metadata{}, err
	}
	if m.Issuer != key.issuer {
		if !usable(m.Issuer, key.loopback) {
			return metadata{}, misconfigured("the provider names no usable issuer")
		}
		return metadata{}, &IssuerMismatch{Configured: key.issuer, Found: m.Issuer}
	}
	for _, endpoint := range []struct{ name, address string }{
		{"authorization_endpoint", m.AuthorizationEndpoint},
		{"token_endpoint", m.TokenEndpoint},
		{"jwks_uri", m.JWKS},
	} {
		// The browser is sent to the first one: javascript: would run as ours.
		if !usable(endpoint.address, key.loopback) {
			return metadata{}, misconfigured("the provider's " + endpoint.name + " is not an https URL")
		}
	}
	if len(m.Algorithms) == 0 {
		m.Algorithms = []string{oidc.RS256} // which each provider must have
	}
	m.Algorithms = slices.DeleteFunc(m.Algorithms, func(alg string) bool { return !slices.Contains(signing, alg) })
	if len(m.Algorithms) == 0 {
		return metadata{}, misconfigured("the provider signs ID tokens with no algorithm that we accept")
	}
	if len(m.AuthMethods) == 0 {
		m.AuthMethods = []string{"client_secret_basic"} // RFC 8414, 2
	}
	return m, nil
}

// fits tells whether the provider takes us the way the connection says.
func (c Connection) fits(m metadata) error {
	if c.Key != nil {
		if !slices.Contains(m.AuthMethods, authPrivateKey) {
			return misconfigured("the provider takes no private_key_jwt")
		}
		return nil
	}
	if m.authStyle() == oauth2.AuthStyleAutoDetect {
		return misconfigured("the provider takes no client secret")
	}
	return nil
}

const authPrivateKey = "private_key_jwt"

// authStyle is never left to x/oauth2's guessing: it would send the code twice, and
// a strict provider takes a repeated code for theft.
func (m metadata) authStyle() oauth2.AuthStyle {
	switch {
	case slices.Contains(m.AuthMethods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	case slices.Contains(m.AuthMethods, "client_secret_post"):
		return oauth2.AuthStyleInParams
	default:
		return oauth2.AuthStyleAutoDetect
	}
}

// usable tells whether an address may be asked, or the browser be sent there.
func usable(address string, loopback bool) bool {
	const longest = 2048
	u, err := url.Parse(address)
	if err != nil || len(address) > longest || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(address, "#") {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	host := u.Hostname()
	return loopback && u.Scheme == "http" && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
