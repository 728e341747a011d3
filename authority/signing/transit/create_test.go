package transit_test

import (
	"crypto"
	"crypto/ecdsa"
	"errors"
	"strings"
	"sync"
	"testing"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/tenants"
)

// R60: a key that somebody put under our name is not ours, and says what is wrong.
func TestForeignKeyUnderOurNameIsRefused(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	for brand, tt := range map[tenants.BrandID]struct {
		made, configured map[string]any
		says             string
	}{
		"edwards":    {made: map[string]any{"type": "ed25519"}, says: "ed25519"},
		"other-ec":   {made: map[string]any{"type": "ecdsa-p384"}, says: "ecdsa-p384"},
		"exportable": {made: map[string]any{"type": "ecdsa-p256", "exportable": true}, says: "exported"},
		"backup":     {made: map[string]any{"type": "ecdsa-p256", "allow_plaintext_backup": true}, says: "backed up"},
		"deletable":  {made: map[string]any{"type": "ecdsa-p256"}, configured: map[string]any{"deletion_allowed": true}, says: "deleted"},
	} {
		path := "transit/keys/tenant-" + string(brand) + "-es256"
		w.operator(t, path, tt.made)
		if tt.configured != nil {
			w.operator(t, path+"/config", tt.configured)
		}
		for _, v := range []signing.Version{1, 2} {
			_, err := b.Create(t.Context(), brand, v, signing.ES256)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s, version %d: %v", brand, v, err)
			}
		}
	}
}

// Two instances that rotate at the same time agree on every version.
func TestInstancesAgreeOnVersions(t *testing.T) {
	w := newWorld(t)
	instances := []*measured{w.backend(t), w.backend(t), w.backend(t)}
	for v := signing.Version(1); v <= 5; v++ {
		made := make([]crypto.PublicKey, len(instances))
		var wg sync.WaitGroup
		for i, b := range instances {
			wg.Go(func() {
				var err error
				if made[i], err = b.Create(t.Context(), signingtest.Hotel, v, signing.ES256); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, public := range made[1:] {
			if public == nil || !made[0].(*ecdsa.PublicKey).Equal(public) {
				t.Fatalf("version %d is not one key", v)
			}
		}
	}
}

// A jump in versions is somebody's mistake, not an order for a thousand rotations.
func TestVersionsDoNotJump(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	for _, v := range []signing.Version{1000, 0, -1} {
		if _, err := b.Create(t.Context(), signingtest.Hotel, v, signing.ES256); err == nil {
			t.Errorf("version %d was made", v)
		}
	}
}

// R36: nothing but a Brand's id ever becomes a key's name.
func TestStrangeBrandsHaveNoKeys(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	for _, brand := range []tenants.BrandID{"", "..", "../x", "%2e%2e%2fx", "a/rotate", "a?b", "a#b", "a\x00", "a b", "A", "-a", "ä", tenants.BrandID(strings.Repeat("a", 41))} {
		if _, err := b.Create(t.Context(), brand, 1, signing.ES256); err == nil {
			t.Errorf("%q has a key", brand)
		}
		if _, err := b.Sealer(nil).Seal(t.Context(), brand, "test", []byte("x")); err == nil {
			t.Errorf("%q has a secret", brand)
		}
	}
	keys, err := w.root.Logical().ListWithContext(t.Context(), "transit/keys")
	if err != nil {
		t.Fatal(err)
	}
	if names := keys.Data["keys"].([]any); len(names) != 1 {
		t.Errorf("keys beside the sealing key: %v", names)
	}
}

// R59: what an operator hides in Vault is noticed by asking, and is no outage.
func TestHiddenVersionsAreMissing(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	first := signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	signingtest.Create(t, b, signingtest.Hotel, 2, signing.ES256)
	public, err := b.Public(t.Context(), signingtest.Hotel, 1, signing.ES256)
	if err != nil || !first.(*ecdsa.PublicKey).Equal(public) {
		t.Fatalf("%v, %v", public, err)
	}
	w.operator(t, "transit/keys/tenant-harbor-hotel-es256/config", map[string]any{"min_decryption_version": 2})
	if _, err := b.Public(t.Context(), signingtest.Hotel, 1, signing.ES256); !errors.Is(err, signing.ErrNoKey) {
		t.Errorf("the public key: %v", err)
	}
	if err := b.signWith(t.Context(), 1); !errors.Is(err, signing.ErrNoKey) {
		t.Errorf("a signature: %v", err)
	}
	if err := b.signWith(t.Context(), 2); err != nil {
		t.Errorf("the other version: %v", err)
	}
}
