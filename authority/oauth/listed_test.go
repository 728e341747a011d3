package oauth_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
	"github.com/go-jose/go-jose/v4"
)

// listed exercises what the metadata says beyond its addresses: each way to
// authenticate, each algorithm, each type of details; and that what is not listed
// does not work. A member that nobody here knows is red.
func listed(t *testing.T, d *door, meta map[string]any, post func(string, url.Values) answer, local func(string) string) {
	t.Helper()
	list := func(member string) (out []string) {
		t.Helper()
		values, ok := meta[member].([]any)
		if !ok {
			t.Errorf("%s is not listed", member)
		}
		for _, v := range values {
			out = append(out, v.(string))
		}
		return out
	}
	known := map[string]bool{
		"issuer": true, "scopes_supported": true, "grant_types_supported": true, "grant_management_actions_supported": true, // above
		"response_types_supported": len(list("response_types_supported")) == 0, // there is nothing to authorize at
	}
	for _, at := range []struct{ endpoint, prefix string }{
		{"token_endpoint", "token_endpoint"}, {"revocation_endpoint", "revocation_endpoint"},
	} {
		methods, algs := at.prefix+"_auth_methods_supported", at.prefix+"_auth_signing_alg_values_supported"
		known[methods], known[algs] = true, true
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"rt_x"}}
		if at.endpoint == "revocation_endpoint" {
			form = url.Values{"token": {"rt_x"}}
		}
		// authenticated is whether the door lets whoever holds the token come to its
		// question.
		authenticated := func(client, token string) bool {
			form.Set("client_id", client)
			a := do(t, request(t, http.MethodPost, local(at.endpoint), token, form.Encode()))
			return a.status == http.StatusOK || a.error() == "invalid_grant"
		}
		for _, method := range list(methods) {
			if method != "private_key_jwt" || !authenticated(d.pa.Issuer, d.pa.Token(t, agenttest.Claims{Sub: "alex"})) {
				t.Errorf("%s: %s is listed, and does not work", methods, method)
			}
		}
		if authenticated(d.pa.Issuer, "") || authenticated(d.pa.Issuer, d.key(t, d.Hotel, tenants.RightIntrospect, tenants.RightAdmin)) {
			t.Errorf("%s: a way that is not listed works", at.endpoint)
		}
		said := list(algs)
		client, proofs := proofsByAlgorithm(t, d)
		for alg, proof := range proofs {
			if works, says := authenticated(client, proof), strings.Contains(strings.Join(said, " "), alg); works != says {
				t.Errorf("%s: %s works: %v; listed: %v", algs, alg, works, says)
			}
		}
		for _, alg := range said {
			if _, tried := proofs[alg]; !tried {
				t.Errorf("%s: %s is listed, and nothing here shows that it works", algs, alg)
			}
		}
	}
	known["introspection_endpoint_auth_methods_supported"] = true
	for _, method := range list("introspection_endpoint_auth_methods_supported") {
		a := do(t, request(t, http.MethodPost, local("introspection_endpoint"), d.key(t, d.Hotel, tenants.RightIntrospect), "token=x"))
		if method != "Bearer" || a.status != http.StatusOK {
			t.Errorf("introspection by %s: %d %s", method, a.status, a.body)
		}
	}
	known["authorization_details_types_supported"] = true
	of := map[string][2]string{"stay_charge": {"extras:order", charge}}
	for _, typ := range list("authorization_details_types_supported") {
		a := post("device_authorization_endpoint", url.Values{"scope": {of[typ][0]}, "authorization_details": {"[" + of[typ][1] + "]"}})
		if a.status != http.StatusOK {
			t.Errorf("details of type %s: %d %s", typ, a.status, a.body)
		}
	}
	if a := post("device_authorization_endpoint", url.Values{"scope": {"extras:order"}, "authorization_details": {`[{"type":"unheard_of"}]`}}); a.error() != "invalid_authorization_details" {
		t.Errorf("a type that is not listed: %d %s", a.status, a.body)
	}
	for member := range meta {
		if !known[member] && !strings.HasSuffix(member, "_endpoint") && !strings.HasSuffix(member, "_uri") {
			t.Errorf("%s is listed, and nothing here shows that it is true", member)
		}
	}
}

// proofsByAlgorithm are pa-jwts of one agent that publishes a key for each.
func proofsByAlgorithm(t *testing.T, d *door) (client string, proofs map[string]string) {
	t.Helper()
	pa := d.newPA(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := jose.JSONWebKey{Key: key.Public(), KeyID: "rsa", Use: "sig"}
	pa.Publish(pa.PublicJWK(), public)
	proofs = map[string]string{"ES256": pa.Token(t, agenttest.Claims{Sub: "alex"})}
	for alg, hash := range map[string]crypto.Hash{"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512} {
		proofs[alg] = agenttest.Forge(t, map[string]any{"alg": alg, "kid": "rsa", "typ": "JWT"}, pa.Members(agenttest.Claims{Sub: "alex"}), agenttest.RSA(t, key, hash))
	}
	return pa.Issuer, proofs
}
