package signing_test

import (
	"context"
	"crypto"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/tenants"
)

// away is a backend that can be away, or have lost its keys.
type away struct {
	signing.Backend
	name string
	err  error
}

func (a *away) Name() string { return a.name }

func (a *away) Create(ctx context.Context, b tenants.BrandID, v signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.Backend.Create(ctx, b, v, alg)
}

func (a *away) Sign(ctx context.Context, b tenants.BrandID, jobs []signing.Job) []signing.Result {
	if a.err != nil {
		return []signing.Result{{Err: a.err}}
	}
	return a.Backend.Sign(ctx, b, jobs)
}

func stores(w *authoritytest.World, names ...string) (*signing.Keys, map[string]*away) {
	all := make(map[string]*away)
	var backends []signing.Backend
	for _, name := range names {
		// Each has keys of its own: another master seals them apart, and versions
		// are kept apart by being far from each other.
		all[name] = &away{Backend: local.New(w.DB, w.Master, w.Clock.Now), name: name}
		backends = append(backends, all[name])
	}
	return signing.NewKeys(signing.Config{DB: w.DB, Backends: backends, Log: slog.New(slog.DiscardHandler), Now: w.Clock.Now}), all
}

// R58, R83: a key is revoked even while its store is away; upkeep makes another
// as soon as one answers.
func TestRevokeDoesNotWaitForTheStore(t *testing.T) {
	w := authoritytest.New(t)
	keys, all := stores(w, "local")
	all["local"].err = signing.ErrUnavailable
	list, err := keys.List(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(t.Context(), w.Hotel.ID, list[0].KID, "x", quarterly); !errors.Is(err, signing.ErrNoSuccessor) {
		t.Fatal(err)
	}
	if doc, err := keys.JWKS(t.Context(), w.Hotel.ID); err != nil || strings.Contains(string(doc.Body), list[0].KID) {
		t.Fatalf("still published: %s, %v", doc.Body, err)
	}
	if err := keys.Keep(t.Context(), w.Hotel.ID, quarterly); err == nil {
		t.Fatal("upkeep says that all is well")
	}
	all["local"].err = nil
	if err := keys.Keep(t.Context(), w.Hotel.ID, quarterly); err != nil {
		t.Fatal(err)
	}
	sign(t, w, keys)
}

// A Brand whose key could not be made gets it as soon as it can be.
func TestMissingKeyIsMadeLater(t *testing.T) {
	w := authoritytest.New(t)
	w.Exec(t, `DELETE FROM signing_keys`)
	keys, all := stores(w, "local")
	all["local"].err = signing.ErrUnavailable
	if err := keys.Ensure(t.Context(), w.Hotel.ID, "local", signing.ES256); !errors.Is(err, signing.ErrUnavailable) {
		t.Fatal(err)
	}
	all["local"].err = nil
	if err := keys.Keep(t.Context(), w.Hotel.ID, quarterly); err != nil {
		t.Fatal(err)
	}
	sign(t, w, keys)
}

// A next key that cannot sign replaces nothing: a Brand on its way to a store
// that is away goes on with the old one.
func TestNextKeyIsTriedFirst(t *testing.T) {
	w := authoritytest.New(t)
	keys, all := stores(w, "local", "other")
	to := signing.Policy{Every: quarterly.Every, Alg: signing.ES256, Backend: "other"}
	if err := keys.Keep(t.Context(), w.Hotel.ID, to); err != nil {
		t.Fatal(err)
	}
	all["other"].err = signing.ErrUnavailable
	w.Clock.Advance(signing.PublishWait)
	if err := keys.Keep(t.Context(), w.Hotel.ID, to); !errors.Is(err, signing.ErrUnavailable) {
		t.Fatal(err)
	}
	sign(t, w, keys)
	all["other"].err = nil
	if err := keys.Keep(t.Context(), w.Hotel.ID, to); err != nil {
		t.Fatal(err)
	}
	all["local"].err = signing.ErrUnavailable
	sign(t, w, keys)
}

// R86, B76: a current key that its own store has lost is replaced, and what it
// signed goes on verifying.
func TestLostKeyIsReplaced(t *testing.T) {
	w := authoritytest.New(t)
	keys, _ := stores(w, "local")
	token := sign(t, w, keys)
	w.Exec(t, `DELETE FROM local_keys WHERE brand_id = $1`, w.Hotel.ID)
	fresh, _ := stores(w, "local") // without the key in its memory
	if _, err := fresh.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`)); !errors.Is(err, signing.ErrNoKey) {
		t.Fatal(err)
	}
	if err := fresh.Keep(t.Context(), w.Hotel.ID, quarterly); err != nil {
		t.Fatal(err)
	}
	sign(t, w, fresh)
	if _, err := fresh.Verify(t.Context(), w.Hotel.ID, signing.TypToken, token); err != nil {
		t.Errorf("what the lost key signed: %v", err)
	}
}

// Whatever is done at once, a Brand keeps a current key.
func TestChangesAtOnceLeaveACurrentKey(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	for range 8 {
		next, err := keys.Prepare(t.Context(), w.Hotel.ID, "local", signing.ES256)
		if err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(signing.PublishWait)
		list, err := keys.List(t.Context(), w.Hotel.ID)
		if err != nil {
			t.Fatal(err)
		}
		var current string
		for _, k := range list {
			if k.State == "current" {
				current = k.KID
			}
		}
		var wg sync.WaitGroup
		for _, act := range []func(*signing.Keys) error{
			func(k *signing.Keys) error { return k.Activate(t.Context(), w.Hotel.ID) },
			func(k *signing.Keys) error { return k.Retire(t.Context(), w.Hotel.ID, next.KID) },
			func(k *signing.Keys) error { return k.Revoke(t.Context(), w.Hotel.ID, next.KID, "x", quarterly) },
			func(k *signing.Keys) error { return k.Revoke(t.Context(), w.Hotel.ID, current, "x", quarterly) },
			func(k *signing.Keys) error { return k.Keep(t.Context(), w.Hotel.ID, quarterly) },
		} {
			wg.Go(func() { _ = act(w.NewKeys()) })
		}
		wg.Wait()
		if err := keys.Keep(t.Context(), w.Hotel.ID, quarterly); err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(time.Second)
		sign(t, w, keys)
		if n := w.Count(t, `SELECT count(*) FROM signing_keys WHERE brand_id = $1 AND state = 'current'`, w.Hotel.ID); n != 1 {
			t.Fatalf("%d current keys", n)
		}
		w.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = $1 AND state = 'next'`, w.Hotel.ID)
		keys = w.NewKeys()
	}
}

// A version that was made and never written down, with another algorithm, does
// not stop a Brand for ever.
func TestHalfMadeKeyIsStepped(t *testing.T) {
	w := authoritytest.New(t)
	ring := local.New(w.DB, w.Master, w.Clock.Now)
	if _, err := ring.Create(t.Context(), w.Hotel.ID, 2, signing.RS256); err != nil {
		t.Fatal(err)
	}
	if _, err := w.NewKeys().Prepare(t.Context(), w.Hotel.ID, "local", signing.ES256); err != nil {
		t.Fatal(err)
	}
}
