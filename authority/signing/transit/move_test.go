package transit

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/tenants"
	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
)

// A Brand moves from the local keyring to a Vault, and from there to another,
// while a verifier keeps each JWKS for its full max-age and asks no sooner: it
// never refuses a good token, and what the old stores signed stays verifiable
// after they are gone (R57, R59, B71).
func TestBrandMovesWhileVerifiersLookOn(t *testing.T) {
	w := authoritytest.New(t)
	open := func(name string) *Backend {
		server := signingtest.StartVault(t)
		c := Config{Name: name, Address: server.Addr, Auth: Token(server.RootToken), Log: slog.New(slog.DiscardHandler), Now: time.Now}
		auth, err := Setup(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		c.Auth = auth
		b, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	keyring := local.New(w.DB, w.Master, w.Clock.Now)
	first, second := open("vault"), open("vault-2")
	keys := signing.NewKeys(signing.Config{
		DB: w.DB, Backends: []signing.Backend{keyring, first, second}, Log: slog.New(slog.DiscardHandler), Now: w.Clock.Now,
	})
	const tokenLife = 15 * time.Minute
	const step = time.Minute
	var set jose.JSONWebKeySet
	var fetched time.Time
	type token struct {
		jws string
		at  time.Time
	}
	var tokens []token
	used := make(map[string]bool)
	for minute := range 135 {
		to := []string{"local", "vault", "vault-2"}[minute/45]
		if err := keys.Keep(t.Context(), w.Hotel.ID, signing.Policy{Every: 90 * 24 * time.Hour, Alg: signing.ES256, Backend: to}); err != nil {
			t.Fatal(err)
		}
		jws, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		used[jws[:strings.IndexByte(jws, '.')]] = true
		tokens = append(tokens, token{jws, w.Clock.Now()})
		if w.Clock.Now().Sub(fetched) >= signing.JWKSMaxAge {
			doc, err := keys.JWKS(t.Context(), w.Hotel.ID)
			if err != nil {
				t.Fatal(err)
			}
			set = jose.JSONWebKeySet{}
			if err := json.Unmarshal(doc.Body, &set); err != nil {
				t.Fatal(err)
			}
			fetched = w.Clock.Now()
		}
		for _, one := range tokens {
			if w.Clock.Now().Sub(one.at) < tokenLife {
				mustVerify(t, set, one.jws)
			}
		}
		w.Clock.Advance(step)
	}
	if len(used) != 3 {
		t.Fatalf("%d keys signed: the Brand has not moved", len(used))
	}
	// Long after, with the old stores gone, everything is still verifiable.
	w.Exec(t, `DELETE FROM local_keys`)
	alone := signing.NewKeys(signing.Config{DB: w.DB, Backends: []signing.Backend{second}, Log: slog.New(slog.DiscardHandler), Now: w.Clock.Now})
	doc, err := alone.JWKS(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	set = jose.JSONWebKeySet{}
	if err := json.Unmarshal(doc.Body, &set); err != nil {
		t.Fatal(err)
	}
	for _, one := range tokens {
		mustVerify(t, set, one.jws)
	}
}

func mustVerify(t *testing.T, set jose.JSONWebKeySet, compact string) {
	t.Helper()
	jws, err := jose.ParseSignedCompact(compact, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	found := set.Key(jws.Signatures[0].Header.KeyID)
	if len(found) != 1 {
		t.Fatal("a verifier with a kept JWKS does not know the key")
	}
	if _, err := jws.Verify(found[0]); err != nil {
		t.Fatal(err)
	}
}

// Secrets at rest move to Vault and under its newest key, all of them and once;
// what somebody else cannot read stays unread (decision 4).
func TestSecretsAreRewrapped(t *testing.T) {
	w := authoritytest.New(t)
	server := signingtest.StartVault(t)
	c := Config{Address: server.Addr, Auth: Token(server.RootToken), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	auth, err := Setup(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Auth = auth
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	login := tenants.LoginConnection{ID: uuid.New(), Issuer: "https://idp.example", ClientID: "c", ClientSecret: "hush", SubjectClaim: "sub", Scopes: []string{"openid"}}
	if err := tenants.SaveLogin(t.Context(), w.DB, w.Master, w.Hotel.ID, login, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	hook, _, err := tenants.CreateWebhook(t.Context(), w.Authority(nil).Editor(authority.ByOperator()), w.Master, tenants.Site{}, w.Hotel.ID, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
	if err != nil {
		t.Fatal(err)
	}
	site := tenants.Site{}
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, site)}
	edit := w.Authority(nil).Editor(authority.ByOperator())
	asked, err := asks.AskKey(t.Context(), edit, w.Hotel.ID, tenants.KeyDraft{Name: "x", Rights: []tenants.Right{"events"}}, "key", "api")
	if err != nil {
		t.Fatal(err)
	}
	sealer := b.Sealer(w.Master)
	rewrap := func(want int) {
		t.Helper()
		if n, err := tenants.RewrapChanges(t.Context(), w.DB, sealer, w.Hotel.ID); err != nil || n != want {
			t.Fatalf("%d changes rewrapped, %v; want %d", n, err, want)
		}
		if n, err := tenants.RewrapWebhooks(t.Context(), w.DB, sealer, w.Hotel.ID); err != nil || n != want {
			t.Fatalf("%d webhook secrets rewrapped, %v; want %d", n, err, want)
		}
		if _, err := tenants.NewReceivers(w.DB, sealer, w.Clock.Now).Receiver(t.Context(), w.Hotel.ID, hook.ID); err != nil {
			t.Fatal(err)
		}
		n, err := tenants.RewrapLogins(t.Context(), w.DB, sealer, w.Hotel.ID)
		if err != nil || n != want {
			t.Fatalf("%d rewrapped, %v; want %d", n, err, want)
		}
		got, err := tenants.Login(t.Context(), w.DB, sealer, w.Hotel.ID)
		if err != nil || got.ClientSecret != "hush" {
			t.Fatal(err)
		}
	}
	rewrap(1) // from the master key to Vault
	rewrap(0)
	if _, err := server.Client(t, server.RootToken).Logical().Write("transit/keys/countersign-seal/rotate", nil); err != nil {
		t.Fatal(err)
	}
	rewrap(1) // under Vault's newest key
	rewrap(0)
	if _, err := tenants.Login(t.Context(), w.DB, w.Master, w.Hotel.ID); err == nil {
		t.Error("the master key alone still opens it")
	}
	if _, err := asks.Apply(t.Context(), edit, w.Hotel.ID, asked.ID, "owner"); err == nil {
		t.Error("the master key alone still opens a change")
	}
	asks.Sealer = sealer
	if _, err := asks.Apply(t.Context(), edit, w.Hotel.ID, asked.ID, "owner"); err != nil {
		t.Errorf("what was asked for before the move is lost: %v", err)
	}
}

// B76, R59: a key that somebody deletes in Vault, or whose old versions are put
// out of reach, signs no more, with an alarm; what it signed stays verifiable,
// because public halves are ours to keep. Ids of Brands are never used again
// (tenants), so neither are names of keys.
func TestDeletedKeyStaysVerifiable(t *testing.T) {
	w := authoritytest.New(t)
	server := signingtest.StartVault(t)
	var log strings.Builder
	c := Config{Address: server.Addr, Auth: Token(server.RootToken), Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now}
	auth, err := Setup(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Auth = auth
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	w.Exec(t, `DELETE FROM signing_keys`)
	keys := signing.NewKeys(signing.Config{DB: w.DB, Backends: []signing.Backend{b}, Log: slog.New(slog.DiscardHandler), Now: w.Clock.Now})
	if err := keys.Ensure(t.Context(), w.Hotel.ID, b.Name(), signing.ES256); err != nil {
		t.Fatal(err)
	}
	token, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	before, err := keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	root := server.Client(t, server.RootToken).Logical()
	name, err := b.keyName(w.Hotel.ID, signing.ES256)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Delete("transit/keys/" + name); err == nil {
		t.Fatal("the key could be deleted just so")
	}
	if _, err := root.Write("transit/keys/"+name+"/config", map[string]any{"deletion_allowed": true}); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Delete("transit/keys/" + name); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Minute)
	if _, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`)); !errors.Is(err, signing.ErrNoKey) {
		t.Errorf("signing with a deleted key: %v", err)
	}
	if !strings.Contains(log.String(), "ALARM") {
		t.Error("no alarm")
	}
	after, err := keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil || after.ETag != before.ETag {
		t.Errorf("the JWKS changed: %v", err)
	}
	if _, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypToken, token); err != nil {
		t.Errorf("what was signed does not verify any more: %v", err)
	}
}
