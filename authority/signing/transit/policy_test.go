package transit_test

import (
	"crypto/ecdsa"
	"errors"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
	"github.com/hashicorp/vault/api"
)

var update = flag.Bool("update", false, "rewrite deploy/vault/countersign.hcl")

// The policy that operators install is the one that is tested here.
func TestPolicyFileIsOurPolicy(t *testing.T) {
	for name, want := range map[string]string{
		"countersign.hcl": transit.Policy("transit", "tenant-"), "destroy.hcl": transit.DestroyPolicy("transit", "tenant-"),
	} {
		file := "../../../deploy/vault/" + name
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not our policy; run this test with -update", file)
		}
	}
}

// service logs in as the service does and returns a client with its token.
func (w *world) service(t *testing.T) *api.Client {
	t.Helper()
	c := w.Client(t, "")
	secret, err := c.Logical().WriteWithContext(t.Context(), "auth/approle/login", map[string]any{"role_id": w.role.RoleID, "secret_id": w.role.SecretID})
	if err != nil {
		t.Fatal(err)
	}
	c.SetToken(secret.Auth.ClientToken)
	return c
}

// R36: whoever takes the service's token can sign while it lives, and nothing
// else: no key leaves Vault, none is destroyed, and no other mount is reached.
// Each of these works for root, so that a 403 is the policy's doing.
func TestPolicyIsTheLeast(t *testing.T) {
	w := newWorld(t)
	signingtest.Create(t, w.backend(t), signingtest.Hotel, 2, signing.ES256)
	for _, mount := range []string{"other", "transit2"} {
		if err := w.root.Sys().MountWithContext(t.Context(), mount, &api.MountInput{Type: "transit"}); err != nil {
			t.Fatal(err)
		}
		w.operator(t, mount+"/keys/tenant-harbor-hotel-es256", map[string]any{"type": "ecdsa-p256"})
	}
	w.operator(t, "transit/keys/foreign", map[string]any{"type": "aes256-gcm96"})
	const key = "transit/keys/tenant-harbor-hotel-es256"
	digest := map[string]any{"input": "AAAA", "prehashed": false}
	c := w.service(t)
	for _, tt := range []struct {
		method, path string
		body         map[string]any
	}{
		{"read", "transit/export/signing-key/tenant-harbor-hotel-es256", nil},
		{"read", "transit/export/encryption-key/countersign-seal", nil},
		{"read", "transit/backup/tenant-harbor-hotel-es256", nil},
		{"write", "transit/restore/tenant-new-es256", map[string]any{"backup": "x"}},
		{"delete", key, nil},
		{"write", key + "/config", map[string]any{"deletion_allowed": true}},
		{"write", key + "/config", map[string]any{"exportable": true}},
		{"write", key + "/config", map[string]any{"allow_plaintext_backup": true}},
		{"write", key + "/config", map[string]any{"min_decryption_version": 2}},
		{"write", key + "/config", map[string]any{"min_encryption_version": 2}},
		{"write", key + "/config", map[string]any{"auto_rotate_period": "1h"}},
		{"write", key + "/trim", map[string]any{"min_available_version": 1}},
		{"write", "transit/keys/tenant-mine-es256/import", map[string]any{"ciphertext": "x", "type": "ecdsa-p256"}},
		{"write", key + "/import_version", map[string]any{"ciphertext": "x"}},
		{"write", "transit/keys/tenant-mine-es256", map[string]any{"type": "ecdsa-p256", "exportable": true}},
		{"write", "transit/keys/tenant-mine-es256", map[string]any{"type": "ed25519"}},
		{"write", "transit/keys/foreign/rotate", nil},
		{"write", "transit/keys/countersign-seal/rotate", nil},
		{"write", "transit/keys/countersign-seal", map[string]any{"type": "aes256-gcm96"}},
		{"write", "transit/keys/countersign-seal/config", map[string]any{"deletion_allowed": true}},
		{"delete", "transit/keys/countersign-seal", nil},
		{"write", "transit/encrypt/countersign-new", map[string]any{"plaintext": "AAAA", "context": "AAAA"}},
		{"write", "transit/encrypt/tenant-mine-es256", map[string]any{"plaintext": "AAAA"}},
		{"write", "transit/decrypt/foreign", map[string]any{"ciphertext": "vault:v1:AAAA"}},
		{"write", "transit/datakey/plaintext/countersign-seal", map[string]any{"context": "AAAA"}},
		{"write", "transit/hmac/tenant-harbor-hotel-es256", map[string]any{"input": "AAAA"}},
		{"list", "transit/keys", nil},
		{"read", "transit/keys/foreign", nil},
		{"write", "transit/sign/foreign", digest},
		{"write", "other/sign/tenant-harbor-hotel-es256", digest},
		{"write", "transit2/sign/tenant-harbor-hotel-es256", digest},
		{"read", "sys/policies/acl/countersign-dev-transit", nil},
		{"write", "sys/policies/acl/countersign-dev-transit", map[string]any{"policy": `path "*" { capabilities = ["sudo"] }`}},
		{"read", "sys/mounts", nil},
		{"write", "sys/seal", nil},
		{"write", "auth/token/create", nil},
		{"write", "auth/approle/role/countersign-dev-transit/secret-id", nil},
		{"read", "cubbyhole/x", nil},
		{"write", "cubbyhole/x", map[string]any{"a": "b"}},
	} {
		var err error
		switch tt.method {
		case "read":
			_, err = c.Logical().ReadWithContext(t.Context(), tt.path)
		case "list":
			_, err = c.Logical().ListWithContext(t.Context(), tt.path)
		case "delete":
			_, err = c.Logical().DeleteWithContext(t.Context(), tt.path)
		default:
			_, err = c.Logical().WriteWithContext(t.Context(), tt.path, tt.body)
		}
		if refused, is := errors.AsType[*api.ResponseError](err); !is || refused.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s %v: %v", tt.method, tt.path, tt.body, err)
		}
	}
}

// R36: a name that climbs out of the prefix, written as no client of ours can,
// is turned away at Vault as well.
func TestPolicyHoldsAgainstClimbingNames(t *testing.T) {
	w := newWorld(t)
	w.operator(t, "transit/keys/foreign", map[string]any{"type": "ecdsa-p256"})
	token := w.service(t).Token()
	for _, name := range []string{"tenant-x/../foreign", "tenant-x%2f..%2fforeign", "tenant-x%2F%2e%2e%2Fforeign", "%74enant-x/..%2fforeign", "tenant-%2e%2e/../foreign"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.Addr+"/v1/transit/sign/"+name, strings.NewReader(`{"input":"AAAA"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Vault-Token", token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		// 400 where Vault itself sees through the escapes.
		if answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
}

// It is enough for the work, which TestVault does with it; what is left is keeping
// the token alive.
func TestPolicyIsEnough(t *testing.T) {
	w := newWorld(t)
	c := w.service(t)
	if _, err := c.Auth().Token().RenewSelfWithContext(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if _, err := c.Auth().Token().LookupSelfWithContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// dev may set the same Vault up at every start.
func TestSetupMayRunAgain(t *testing.T) {
	w := newWorld(t)
	public := signingtest.Create(t, w.backend(t), signingtest.Hotel, 1, signing.ES256)
	sealed, err := w.backend(t).Sealer(nil).Seal(t.Context(), signingtest.Hotel, "test", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	auth, err := transit.Setup(t.Context(), w.config(transit.Token(w.RootToken)))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []transit.Auth{w.role, auth} {
		b := w.backend(t, func(c *transit.Config) { c.Auth = role })
		if again := signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256); !public.(*ecdsa.PublicKey).Equal(again) {
			t.Error("another key")
		}
		if plain, err := b.Sealer(nil).Open(t.Context(), signingtest.Hotel, "test", sealed); err != nil || string(plain) != "secret" {
			t.Errorf("%q, %v", plain, err)
		}
	}
}

// What stands at our places and is not ours is left alone and named.
func TestSetupRefusesWhatIsNotOurs(t *testing.T) {
	v := signingtest.StartVault(t)
	c := transit.Config{Address: v.Addr, Auth: transit.Token(v.RootToken), Mount: "cubbyhole"}
	if _, err := transit.Setup(t.Context(), c); err == nil {
		t.Error("another engine was taken for transit")
	}
	root := v.Client(t, v.RootToken)
	c.Mount = "transit"
	if err := root.Sys().MountWithContext(t.Context(), "transit", &api.MountInput{Type: "transit"}); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Logical().WriteWithContext(t.Context(), "transit/keys/countersign-seal", map[string]any{"type": "aes256-gcm96"}); err != nil {
		t.Fatal(err)
	}
	if _, err := transit.Setup(t.Context(), c); err == nil {
		t.Error("a sealing key that is not derived was taken")
	}
}

// B76: a key is destroyed in two steps, by an operator whose policy allows that and
// nothing else; the printed path is the key's. What it signed verifies afterwards,
// since the public half is ours.
func TestAnOperatorDestroysKeysOfBrandsThatAreGone(t *testing.T) {
	w := newWorld(t)
	signingtest.Create(t, w.backend(t), signingtest.Hotel, 1, signing.ES256)
	if err := w.root.Sys().PutPolicyWithContext(t.Context(), "destroy", transit.DestroyPolicy("transit", "tenant-")); err != nil {
		t.Fatal(err)
	}
	secret, err := w.root.Auth().Token().CreateWithContext(t.Context(), &api.TokenCreateRequest{Policies: []string{"destroy"}, NoDefaultPolicy: true})
	if err != nil {
		t.Fatal(err)
	}
	c := w.Client(t, secret.Auth.ClientToken)
	path, err := transit.KeyPath("transit", signingtest.Hotel, signing.ES256)
	if err != nil {
		t.Fatal(err)
	}
	write := func(at string, body map[string]any) error {
		_, err := c.Logical().WriteWithContext(t.Context(), at, body)
		return err
	}
	for at, body := range map[string]map[string]any{
		"transit/keys/countersign-seal/config":   {"deletion_allowed": true},
		path + "/config":                         {"exportable": true},
		path + "/trim":                           {"min_available_version": 1},
		"transit/sign/tenant-harbor-hotel-es256": {"input": "AAAA"},
	} {
		var refused *api.ResponseError
		if err := write(at, body); !errors.As(err, &refused) || refused.StatusCode != http.StatusForbidden {
			t.Errorf("%s with %v: %v", at, body, err)
		}
	}
	if _, err := c.Logical().DeleteWithContext(t.Context(), path); err == nil {
		t.Error("deleted in one step")
	}
	if err := write(path+"/config", map[string]any{"deletion_allowed": true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Logical().DeleteWithContext(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if secret, err := w.root.Logical().ReadWithContext(t.Context(), path); err != nil || secret != nil {
		t.Errorf("it is still there: %v, %v", secret, err)
	}
	for _, bad := range []string{"", "../transit", "a b"} {
		if p, err := transit.KeyPath(bad, signingtest.Hotel, signing.ES256); err == nil {
			t.Errorf("mount %q: %s", bad, p)
		}
	}
}
