package transit_test

import (
	"context"
	"errors"
	"testing"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/tenants"
)

// counted is a sealer that knows how often it was asked to open something.
type counted struct {
	tenants.Sealer
	opened int
}

func (c *counted) Open(ctx context.Context, brand tenants.BrandID, purpose string, sealed []byte) ([]byte, error) {
	c.opened++
	return c.Sealer.Open(ctx, brand, purpose, sealed)
}

// B71: secrets survive the move from one Vault to another, though both write the
// same mark, whatever the versions of their keys; Rewrap ends the dependence on
// the first. That is no alarm: it happens at every Open until then.
func TestSecretsMoveBetweenVaults(t *testing.T) {
	for name, prepare := range map[string]func(first, second *world){
		"same versions": func(_, _ *world) {},
		"the first is ahead": func(first, _ *world) {
			first.operator(t, "transit/keys/countersign-seal/rotate", nil)
		},
		"the second is ahead": func(_, second *world) {
			second.operator(t, "transit/keys/countersign-seal/rotate", nil)
			second.operator(t, "transit/keys/countersign-seal/config", map[string]any{"min_decryption_version": 2})
		},
		"the second has trimmed its own": func(_, second *world) {
			second.operator(t, "transit/keys/countersign-seal/rotate", nil)
			second.operator(t, "transit/keys/countersign-seal/config", map[string]any{"min_decryption_version": 2, "min_encryption_version": 2})
			second.operator(t, "transit/keys/countersign-seal/trim", map[string]any{"min_available_version": 2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := newWorld(t), newWorld(t)
			prepare(one, two)
			var log book
			ctx, master := t.Context(), signing.NewMaster()
			first := one.backend(t).Sealer(master)
			second := two.backend(t, logTo(&log))
			s := second.Sealer(first)
			for from, old := range map[string]tenants.Sealer{"master": master, "first": first} {
				sealed, err := old.Seal(ctx, signingtest.Hotel, "test", []byte("hush"))
				if err != nil {
					t.Fatal(err)
				}
				if plain, err := s.Open(ctx, signingtest.Hotel, "test", sealed); err != nil || string(plain) != "hush" {
					t.Fatalf("%s: %q, %v", from, plain, err)
				}
				if plain, err := s.Open(ctx, signingtest.Shop, "test", sealed); err == nil {
					t.Errorf("%s: opened for another Brand: %q", from, plain)
				}
				fresh, changed, err := s.Rewrap(ctx, signingtest.Hotel, "test", sealed)
				if err != nil || !changed {
					t.Fatalf("%s: changed %v, %v", from, changed, err)
				}
				if plain, err := second.Sealer(nil).Open(ctx, signingtest.Hotel, "test", fresh); err != nil || string(plain) != "hush" {
					t.Errorf("%s: without the first: %q, %v", from, plain, err)
				}
				if _, changed, err := s.Rewrap(ctx, signingtest.Hotel, "test", fresh); err != nil || changed {
					t.Errorf("%s: once more: changed %v, %v", from, changed, err)
				}
			}
			if text := log.String(); text != "" {
				t.Error(text)
			}
		})
	}
}

// An outage of the new Vault is one, and is not asked of the old; an outage of the
// old does not read as a broken secret.
func TestOutageDuringTheMoveIsAnOutage(t *testing.T) {
	one, two := newWorld(t), newWorld(t)
	ctx := t.Context()
	first := &counted{Sealer: one.backend(t).Sealer(nil)}
	s := two.backend(t).Sealer(first)
	sealed, err := first.Seal(ctx, signingtest.Hotel, "test", []byte("hush"))
	if err != nil {
		t.Fatal(err)
	}
	unavailable := func(who string) {
		t.Helper()
		if _, err := s.Open(ctx, signingtest.Hotel, "test", sealed); !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("%s is sealed: open: %v", who, err)
		}
		if _, _, err := s.Rewrap(ctx, signingtest.Hotel, "test", sealed); !errors.Is(err, signing.ErrUnavailable) {
			t.Errorf("%s is sealed: rewrap: %v", who, err)
		}
	}
	one.Seal(t)
	unavailable("the first")
	one.Unseal(t)
	first.opened = 0
	two.Seal(t)
	unavailable("the second")
	if first.opened > 0 {
		t.Errorf("the first was asked %d times", first.opened)
	}
}
