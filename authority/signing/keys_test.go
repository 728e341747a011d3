package signing_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/tenants"
	"github.com/go-jose/go-jose/v4"
)

// verify checks a compact JWS with a JOSE library against the published set.
func verify(t *testing.T, jwks []byte, compact string) (header jose.Header, payload []byte) {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(jwks, &set); err != nil {
		t.Fatal(err)
	}
	jws, err := jose.ParseSignedCompact(compact, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	header = jws.Signatures[0].Header
	keys := set.Key(header.KeyID)
	if len(keys) != 1 {
		t.Fatalf("%d published keys with kid %s", len(keys), header.KeyID)
	}
	payload, err = jws.Verify(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	return header, payload
}

// R33, P28: always 64 bytes r‖s, leading zeros kept, typ and kid named; verified
// by a library that is not ours, many times, since one signature in 128 begins
// with a zero byte.
func TestSignaturesVerify(t *testing.T) {
	w := authoritytest.New(t)
	doc, err := w.Keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for range 1000 {
		jws, err := w.Keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		header, payload := verify(t, doc.Body, jws)
		if string(payload) != `{"a":1}` || header.ExtraHeaders[jose.HeaderType] != "at+jwt" || header.Algorithm != "ES256" {
			t.Fatalf("%+v %s", header, payload)
		}
		if sig := jws[strings.LastIndexByte(jws, '.')+1:]; len(sig) != 86 {
			t.Fatalf("signature of %d characters", len(sig))
		} else if sig[0] == 'A' && sig[1] <= 'D' {
			zeros++
		}
	}
	if zeros == 0 {
		t.Log("no leading zero byte came up") // about once in 10⁵ runs
	}
	if _, err := w.Keys.Sign(t.Context(), w.Hotel.ID, "JWT", []byte(`{}`)); err == nil {
		t.Error("a typ nobody knows was signed")
	}
}

// RS256 where a Brand asks for it; alg follows the key.
func TestRS256(t *testing.T) {
	w := authoritytest.New(t)
	w.Exec(t, `DELETE FROM signing_keys WHERE brand_id = $1`, w.Shop.ID)
	w.Exec(t, `DELETE FROM local_keys WHERE brand_id = $1`, w.Shop.ID)
	keys := w.NewKeys()
	if err := keys.Ensure(t.Context(), w.Shop.ID, "local", signing.RS256); err != nil {
		t.Fatal(err)
	}
	jws, err := keys.Sign(t.Context(), w.Shop.ID, signing.TypReceipt, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := keys.JWKS(t.Context(), w.Shop.ID)
	if err != nil {
		t.Fatal(err)
	}
	if header, _ := verify(t, doc.Body, jws); header.Algorithm != "RS256" {
		t.Fatal(header.Algorithm)
	}
}

// One key per Brand, also when many instances start at once; never one Brand's
// key in another's set (R37 in part).
func TestEnsureMakesOneKey(t *testing.T) {
	w := authoritytest.New(t)
	w.Exec(t, `DELETE FROM signing_keys`)
	w.Exec(t, `DELETE FROM local_keys`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, b := range []tenants.BrandID{w.Hotel.ID, w.Shop.ID} {
				if err := w.NewKeys().Ensure(t.Context(), b, "local", signing.ES256); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := w.Count(t, `SELECT count(*) FROM signing_keys`); n != 2 {
		t.Fatalf("%d keys for two Brands", n)
	}
	if n := w.Count(t, `SELECT count(DISTINCT kid) FROM signing_keys`); n != 2 {
		t.Fatal("two Brands share a key")
	}
}

// P37 (in part), wire.md §2: next, current and retired keys are published, a
// compromised one leaves at once.
func TestJWKSHoldsWhatMayBeTrusted(t *testing.T) {
	w := authoritytest.New(t)
	published := func() int {
		t.Helper()
		doc, err := w.NewKeys().JWKS(t.Context(), w.Hotel.ID)
		if err != nil {
			t.Fatal(err)
		}
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal(doc.Body, &set); err != nil {
			t.Fatal(err)
		}
		return len(set.Keys)
	}
	for i, state := range []string{"next", "retired", "revoked"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		kid, err := signing.KID(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		jwk, err := json.Marshal(jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"})
		if err != nil {
			t.Fatal(err)
		}
		w.Exec(t, `INSERT INTO signing_keys VALUES ($1, $2, 'local', $3, 'ES256', $4, $5, now(), now(),
			CASE $4 WHEN 'revoked' THEN 'lost' END)`, w.Hotel.ID, kid, 10+i, state, jwk)
	}
	if n := published(); n != 3 {
		t.Fatalf("%d keys are published", n)
	}
	// A private half that found its way into the table is not published.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jwk, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: "x", Algorithm: "ES256", Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO signing_keys VALUES ($1, 'x', 'local', 99, 'ES256', 'retired', $2, now(), now())`, w.Hotel.ID, jwk)
	if doc, err := w.NewKeys().JWKS(t.Context(), w.Hotel.ID); err == nil {
		t.Fatalf("published %s", doc.Body)
	}
}

// foul is a backend that does not do what it should.
type foul struct {
	signing.Backend
	sign func(context.Context, tenants.BrandID, []signing.Job) []signing.Result
}

func (f foul) Sign(ctx context.Context, b tenants.BrandID, jobs []signing.Job) []signing.Result {
	return f.sign(ctx, b, jobs)
}

// R35: a signature by another Brand's key, by none, or in another encoding never
// leaves, and is an alarm.
func TestWrongSignatureIsAnAlarm(t *testing.T) {
	w := authoritytest.New(t)
	real := local.New(w.DB, w.Master, w.Clock.Now)
	for name, sign := range map[string]func(context.Context, tenants.BrandID, []signing.Job) []signing.Result{
		"another Brand's key": func(ctx context.Context, _ tenants.BrandID, jobs []signing.Job) []signing.Result {
			return real.Sign(ctx, w.Shop.ID, jobs)
		},
		"zeros": func(context.Context, tenants.BrandID, []signing.Job) []signing.Result {
			return []signing.Result{{Signature: make([]byte, 64)}}
		},
		"ASN.1": func(context.Context, tenants.BrandID, []signing.Job) []signing.Result {
			return []signing.Result{{Signature: make([]byte, 71)}}
		},
		"nothing": func(context.Context, tenants.BrandID, []signing.Job) []signing.Result {
			return []signing.Result{{}}
		},
		"too many": func(ctx context.Context, b tenants.BrandID, jobs []signing.Job) []signing.Result {
			return append(real.Sign(ctx, b, jobs), real.Sign(ctx, b, jobs)...)
		},
	} {
		var log bytes.Buffer
		keys := signing.NewKeys(signing.Config{
			DB: w.DB, Backends: []signing.Backend{foul{real, sign}}, Now: w.Clock.Now,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		jws, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`))
		if err == nil || jws != "" {
			t.Errorf("%s: left the house", name)
		}
		if name != "too many" && !strings.Contains(log.String(), "ALARM") {
			t.Errorf("%s: no alarm", name)
		}
	}
}

// A backend that fails is an error of its own kind, and one that is not
// configured is unavailable.
func TestUnavailableBackend(t *testing.T) {
	w := authoritytest.New(t)
	w.Exec(t, `UPDATE signing_keys SET backend = 'vault'`)
	if _, err := w.NewKeys().Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`)); !errors.Is(err, signing.ErrUnavailable) {
		t.Fatal(err)
	}
	if _, err := w.NewKeys().JWKS(t.Context(), w.Hotel.ID); err != nil {
		t.Errorf("the keys cannot be read either: %v", err)
	}
	if _, err := w.NewKeys().JWKS(t.Context(), "nobody"); !errors.Is(err, signing.ErrNoKey) {
		t.Errorf("a Brand that does not exist: %v", err)
	}
}

// B77, B68 (in part): a JWKS is served from memory, is right within two seconds
// of a change, and outlives an outage of the database.
func TestJWKSFromMemory(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	first, err := keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE signing_keys SET public_jwk = jsonb_set(public_jwk, '{use}', '"sig"') || '{"note": "changed"}'`)
	if same, _ := keys.JWKS(t.Context(), w.Hotel.ID); same.ETag != first.ETag {
		t.Error("not from memory")
	}
	w.Clock.Advance(2 * time.Second)
	if later, _ := keys.JWKS(t.Context(), w.Hotel.ID); later.ETag == first.ETag {
		t.Error("two seconds later it is still the old one")
	}
	w.DB.Pool().Close()
	w.Clock.Advance(time.Minute)
	if _, err := keys.JWKS(t.Context(), w.Hotel.ID); err != nil {
		t.Errorf("without a database: %v", err)
	}
}

// The keyring's private halves rest sealed; another master opens nothing.
func TestKeyringIsSealed(t *testing.T) {
	w := authoritytest.New(t)
	other := local.New(w.DB, signing.NewMaster(), w.Clock.Now)
	res := other.Sign(t.Context(), w.Hotel.ID, []signing.Job{{Version: 1, Alg: signing.ES256, Digest: sha256.Sum256(nil)}})
	if res[0].Err == nil {
		t.Fatal("another master key opened the keyring")
	}
	w.Exec(t, `UPDATE local_keys a SET sealed = b.sealed FROM local_keys b WHERE a.brand_id <> b.brand_id`)
	mine := local.New(w.DB, w.Master, w.Clock.Now)
	if res := mine.Sign(t.Context(), w.Hotel.ID, []signing.Job{{Version: 1, Alg: signing.ES256, Digest: sha256.Sum256(nil)}}); res[0].Err == nil {
		t.Fatal("one Brand's key signs for another")
	}
	if res := mine.Sign(t.Context(), w.Hotel.ID, []signing.Job{{Version: 7, Alg: signing.ES256}}); !errors.Is(res[0].Err, signing.ErrNoKey) {
		t.Fatal(res[0].Err)
	}
}

// R34: a digest of another length than SHA-256's cannot be asked for: the type
// says so, and nothing has to be checked before Vault, which would sign it.
func TestDigestLengthIsInTheType(t *testing.T) {
	if n := len(signing.Job{}.Digest); n != sha256.Size {
		t.Fatalf("a job's digest has %d bytes", n)
	}
}

// KID is the RFC 7638 thumbprint: the RFC's own example.
func TestKIDIsTheThumbprint(t *testing.T) {
	const example = `{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB"}`
	var jwk jose.JSONWebKey
	if err := json.Unmarshal([]byte(example), &jwk); err != nil {
		t.Fatal(err)
	}
	kid, err := signing.KID(jwk.Key.(crypto.PublicKey))
	if err != nil || kid != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" {
		t.Fatal(kid, err)
	}
}

// R106 (in part): the master key file is made once with mode 0600, read again,
// and refused when others can read it.
func TestMasterKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "master.key")
	var wg sync.WaitGroup
	made := make([]*signing.Master, 8)
	for i := range made {
		wg.Go(func() {
			m, err := signing.LoadMaster(path)
			if err != nil {
				t.Error(err)
			}
			made[i] = m
		})
	}
	wg.Wait()
	want, err := made[0].MAC(1, "b", "p", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range made[1:] {
		if got, _ := m.MAC(1, "b", "p", []byte("x")); !bytes.Equal(got, want) {
			t.Fatal("two first starts made two masters")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := signing.LoadMaster(path); err == nil || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	for _, bad := range []string{"", "{}", `{"current":1,"keys":{"1":"c2hvcnQ="}}`, `{"current":2,"keys":{}}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := signing.LoadMaster(path); err == nil {
			t.Errorf("read %q", bad)
		}
	}
	if s := made[0].String(); strings.Contains(s, "1") || made[0].LogValue().String() != "[hidden]" {
		t.Errorf("the master shows itself: %s", s)
	}
}

// What is sealed opens for its Brand and purpose only, and not when changed.
func TestSealing(t *testing.T) {
	m := signing.NewMaster()
	ctx := t.Context()
	sealed, err := m.Seal(ctx, "a", "p", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := m.Open(ctx, "a", "p", sealed); err != nil || string(plain) != "secret" {
		t.Fatal(err)
	}
	if _, err := m.Open(ctx, "b", "p", sealed); err == nil {
		t.Error("opens for another Brand")
	}
	if _, err := m.Open(ctx, "a", "q", sealed); err == nil {
		t.Error("opens for another purpose")
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := m.Open(ctx, "a", "p", bad); err == nil {
			t.Fatalf("opens with byte %d changed", i)
		}
	}
	for n := range len(sealed) {
		if _, err := m.Open(ctx, "a", "p", sealed[:n]); err == nil {
			t.Fatalf("opens when cut to %d", n)
		}
	}
	again, _ := m.Seal(ctx, "a", "p", []byte("secret"))
	if bytes.Equal(sealed, again) {
		t.Error("sealed twice alike")
	}
	x, _ := m.MAC(1, "a", "b c", []byte("d"))
	y, _ := m.MAC(1, "a b", "c", []byte("d"))
	if bytes.Equal(x, y) {
		t.Error("Brand and purpose run into each other")
	}
}
