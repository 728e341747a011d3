package transit_test

import (
	"bytes"
	"errors"
	"testing"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
	"countersign.dev/tenants"
)

var _ tenants.Sealer = (*transit.Sealer)(nil)

// Secrets at rest open for the Brand and purpose they were sealed for, and for
// no other: a row copied to another Brand is worth nothing.
func TestSecretsOpenInTheirPlaceOnly(t *testing.T) {
	w := newWorld(t)
	s := w.backend(t).Sealer(nil)
	ctx := t.Context()
	sealed, err := s.Seal(ctx, signingtest.Hotel, "webhook-secret", []byte("hush"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("hush")) {
		t.Fatal("not sealed")
	}
	if plain, err := s.Open(ctx, signingtest.Hotel, "webhook-secret", sealed); err != nil || string(plain) != "hush" {
		t.Errorf("%q, %v", plain, err)
	}
	for _, tt := range []struct {
		brand   tenants.BrandID
		purpose string
	}{{signingtest.Shop, "webhook-secret"}, {signingtest.Hotel, "login-connection-secret"}, {signingtest.Hotel, ""}, {"", "webhook-secret"}} {
		if plain, err := s.Open(ctx, tt.brand, tt.purpose, sealed); err == nil {
			t.Errorf("%q as %q opened: %q", tt.brand, tt.purpose, plain)
		}
	}
	if _, err := s.Open(ctx, signingtest.Hotel, "webhook-secret", []byte("something else")); err == nil {
		t.Error("something else opened")
	}
	if empty, err := s.Seal(ctx, signingtest.Hotel, "webhook-secret", nil); err != nil {
		t.Error(err)
	} else if plain, err := s.Open(ctx, signingtest.Hotel, "webhook-secret", empty); err != nil || len(plain) != 0 {
		t.Errorf("%q, %v", plain, err)
	}
}

// Moving to Vault: old secrets open as before, and Rewrap moves them; after a
// rotation of the key Rewrap renews them, once (B71).
func TestRewrap(t *testing.T) {
	w := newWorld(t)
	master := signing.NewMaster()
	s := w.backend(t).Sealer(master)
	ctx := t.Context()
	old, err := master.Seal(ctx, signingtest.Hotel, "test", []byte("hush"))
	if err != nil {
		t.Fatal(err)
	}
	sealed := old
	rewrap := func(wantChanged bool) {
		t.Helper()
		fresh, changed, err := s.Rewrap(ctx, signingtest.Hotel, "test", sealed)
		if err != nil || changed != wantChanged || changed == bytes.Equal(fresh, sealed) {
			t.Fatalf("changed %v, %v", changed, err)
		}
		if plain, err := s.Open(ctx, signingtest.Hotel, "test", fresh); err != nil || string(plain) != "hush" {
			t.Fatalf("%q, %v", plain, err)
		}
		sealed = fresh
	}
	if plain, err := s.Open(ctx, signingtest.Hotel, "test", old); err != nil || string(plain) != "hush" {
		t.Fatalf("%q, %v", plain, err)
	}
	rewrap(true)  // into Vault
	rewrap(false) // nothing to do
	before := sealed
	w.operator(t, "transit/keys/countersign-seal/rotate", nil)
	if plain, err := s.Open(ctx, signingtest.Hotel, "test", before); err != nil || string(plain) != "hush" {
		t.Fatalf("after a rotation: %q, %v", plain, err)
	}
	rewrap(true)
	rewrap(false)
	w.operator(t, "transit/keys/countersign-seal/config", map[string]any{"min_decryption_version": 2})
	if _, err := s.Open(ctx, signingtest.Hotel, "test", before); err == nil {
		t.Error("the old version still opens")
	}
	rewrap(false)
	// A master key that is gone: only what was not moved is lost, and says so.
	if _, err := w.backend(t).Sealer(nil).Open(ctx, signingtest.Hotel, "test", old); err == nil {
		t.Error("opened without the master key")
	}
}

// A sealing key that does not derive ignores whose secret it is; one that is not
// there is not made on the way.
func TestSealingKeyIsChecked(t *testing.T) {
	w := newWorld(t)
	const path = "transit/keys/countersign-seal"
	remove := func() {
		w.operator(t, path+"/config", map[string]any{"deletion_allowed": true})
		if _, err := w.root.Logical().DeleteWithContext(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	s := w.backend(t).Sealer(nil)
	if _, err := s.Seal(t.Context(), signingtest.Hotel, "test", []byte("x")); !errors.Is(err, signing.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	w.operator(t, path, map[string]any{"type": "aes256-gcm96", "derived": false})
	if _, err := s.Seal(t.Context(), signingtest.Hotel, "test", []byte("x")); err == nil {
		t.Error("sealed with a key that keeps nobody apart")
	}
	remove()
	w.operator(t, path, map[string]any{"type": "aes256-gcm96", "derived": true})
	if _, err := s.Seal(t.Context(), signingtest.Hotel, "test", []byte("x")); err != nil {
		t.Errorf("with the right key: %v", err)
	}
}
