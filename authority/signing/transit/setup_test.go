package transit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
)

// Two installations in one Vault leave each other's rights alone.
func TestInstallationsKeepApart(t *testing.T) {
	w := newWorld(t)
	for _, mount := range []string{"team/transit", "team-transit", "transit2"} {
		c := w.config(transit.Token(w.RootToken))
		c.Mount = mount
		if _, err := transit.Setup(t.Context(), c); err != nil {
			t.Fatalf("%s: %v", mount, err)
		}
	}
	signingtest.Create(t, w.backend(t), signingtest.Hotel, 1, signing.ES256)
	// The same mount with another prefix, or a policy that somebody changed.
	c := w.config(transit.Token(w.RootToken))
	c.Prefix = "brand-"
	if _, err := transit.Setup(t.Context(), c); err == nil || !strings.Contains(err.Error(), "vault policy delete countersign-dev-transit") {
		t.Errorf("another prefix: %v", err)
	}
	signingtest.Create(t, w.backend(t), signingtest.Shop, 1, signing.ES256)
	c.Mount, c.Prefix = "transit-", ""
	if _, err := transit.Setup(t.Context(), c); err == nil {
		t.Error("a role was named with a dash at its end")
	}
}

// Secret ids of dev's many starts end by themselves, but not before the token
// that the first login brought: its successor needs the same secret.
func TestSecretIDsEnd(t *testing.T) {
	w := newWorld(t)
	role, err := w.root.Logical().ReadWithContext(t.Context(), "auth/approle/role/countersign-dev-transit")
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(field string) int64 {
		n, err := role.Data[field].(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if secret, token := seconds("secret_id_ttl"), seconds("token_max_ttl"); secret <= token || token == 0 {
		t.Errorf("a secret id lives for %d s, a token for %d s", secret, token)
	}
}
