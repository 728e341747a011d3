package signing_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"github.com/go-jose/go-jose/v4"
)

// verifier is a Brand that keeps a JWKS for as long as it may and asks again
// only then, not even at an unknown kid.
type verifier struct {
	set     jose.JSONWebKeySet
	fetched time.Time
}

func (v *verifier) accepts(t *testing.T, w *authoritytest.World, keys *signing.Keys, compact string) bool {
	t.Helper()
	if v.fetched.IsZero() || w.Clock.Now().Sub(v.fetched) >= signing.JWKSMaxAge {
		doc, err := keys.JWKS(t.Context(), w.Hotel.ID)
		if err != nil {
			t.Fatal(err)
		}
		v.set = jose.JSONWebKeySet{}
		if err := json.Unmarshal(doc.Body, &v.set); err != nil {
			t.Fatal(err)
		}
		v.fetched = w.Clock.Now()
	}
	jws, err := jose.ParseSignedCompact(compact, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	found := v.set.Key(jws.Signatures[0].Header.KeyID)
	if len(found) != 1 {
		return false
	}
	_, err = jws.Verify(found[0])
	return err == nil
}

func sign(t *testing.T, w *authoritytest.World, keys *signing.Keys) string {
	t.Helper()
	jws, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	return jws
}

func algOf(t *testing.T, compact string) string {
	t.Helper()
	jws, err := jose.ParseSignedCompact(compact, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	return jws.Signatures[0].Header.Algorithm
}

// B68, B70, R57, P37: rotation by schedule, and a change of algorithm, with
// verifiers that keep a JWKS for its full max-age, on two instances, over two
// periods: nobody ever refuses a good token, new or still living.
func TestRotationThatNoVerifierNotices(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.NewKeys(), w.NewKeys()
	const every = 30 * time.Minute
	const tokenLife = 15 * time.Minute
	verifiers := make([]*verifier, 3)
	type live struct {
		jws string
		at  time.Time
	}
	var tokens []live
	algs := make(map[string]bool)
	kids := make(map[string]bool)
	for step := range 720 { // 30 s each: six hours
		now := w.Clock.Now()
		alg := signing.ES256
		if step > 360 {
			alg = signing.RS256
		}
		for _, keys := range []*signing.Keys{a, b} {
			if err := keys.Keep(t.Context(), w.Hotel.ID, signing.Policy{Every: every, Alg: alg, Backend: "local"}); err != nil {
				t.Fatal(err)
			}
		}
		jws := sign(t, w, []*signing.Keys{a, b}[step%2])
		algs[algOf(t, jws)] = true
		kids[jws[:strings.IndexByte(jws, '.')]] = true
		tokens = append(tokens, live{jws, now})
		for i := range verifiers {
			if step == i*3 { // they begin at different times
				verifiers[i] = &verifier{}
			}
			if verifiers[i] == nil {
				continue
			}
			for _, token := range tokens {
				if now.Sub(token.at) < tokenLife && !verifiers[i].accepts(t, w, b, token.jws) {
					t.Fatalf("step %d: verifier %d refuses a token of %v ago", step, i, now.Sub(token.at))
				}
			}
		}
		w.Clock.Advance(30 * time.Second)
	}
	if len(kids) < 4 || !algs["ES256"] || !algs["RS256"] {
		t.Fatalf("%d keys and algorithms %v signed: nothing was rotated", len(kids), algs)
	}
	list, err := a.List(t.Context(), w.Hotel.ID)
	if err != nil || len(list) < len(kids) {
		t.Fatalf("%d keys are kept, %v", len(list), err)
	}
}

// R57: the next key is published at once and signs only after verifiers must
// have seen it; both instances switch within a second.
func TestNextKeyWaits(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.NewKeys(), w.NewKeys()
	old := sign(t, w, a)
	if err := a.Activate(t.Context(), w.Hotel.ID); !errors.Is(err, signing.ErrNoNext) {
		t.Fatal(err)
	}
	next, err := a.Prepare(t.Context(), w.Hotel.ID, "local", signing.ES256)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Prepare(t.Context(), w.Hotel.ID, "local", signing.ES256); !errors.Is(err, signing.ErrNextExists) {
		t.Fatal(err)
	}
	if doc, _ := a.JWKS(t.Context(), w.Hotel.ID); !strings.Contains(string(doc.Body), next.KID) {
		t.Fatal("the next key is not published")
	}
	w.Clock.Advance(signing.PublishWait - time.Second)
	if err := a.Activate(t.Context(), w.Hotel.ID); !errors.Is(err, signing.ErrTooEarly) {
		t.Fatal(err)
	}
	if still := sign(t, w, b); still[:strings.IndexByte(still, '.')] != old[:strings.IndexByte(old, '.')] {
		t.Fatal("another key signs already")
	}
	w.Clock.Advance(time.Second)
	if err := a.Activate(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Second) // the bound for other instances
	now := sign(t, w, b)
	if now[:strings.IndexByte(now, '.')] == old[:strings.IndexByte(old, '.')] {
		t.Fatal("the old key signs on")
	}
	if signing.PublishWait <= signing.JWKSMaxAge {
		t.Fatal("the wait is not longer than a JWKS may be kept")
	}
	if _, err := a.Verify(t.Context(), w.Hotel.ID, signing.TypToken, old); err != nil {
		t.Errorf("the old key verifies no more: %v", err)
	}
}

var quarterly = signing.Policy{Every: 90 * 24 * time.Hour, Alg: signing.ES256, Backend: "local"}

// Many instances keep the same Brand's keys at once: one next key, one switch.
func TestKeepIsForEverybody(t *testing.T) {
	w := authoritytest.New(t)
	for range 3 {
		w.Clock.Advance(100 * 24 * time.Hour)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if err := w.NewKeys().Keep(t.Context(), w.Hotel.ID, quarterly); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		w.Clock.Advance(signing.PublishWait)
		for range 6 {
			wg.Go(func() {
				if err := w.NewKeys().Keep(t.Context(), w.Hotel.ID, quarterly); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if n := w.Count(t, `SELECT count(*) FROM signing_keys WHERE brand_id = $1`, w.Hotel.ID); n != 4 {
		t.Fatalf("%d keys after three periods", n)
	}
}

// R58, wire.md §2: a compromised key is out of the JWKS at once and in the
// archive with when and why; the new one signs at once; what the old one signed
// dies; nothing private is anywhere.
func TestCompromisedKeyLeavesAtOnce(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	token := sign(t, w, keys)
	list, err := keys.List(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	bad := list[0].KID
	if err := keys.Retire(t.Context(), w.Hotel.ID, bad); !errors.Is(err, signing.ErrInUse) {
		t.Fatalf("the current key was retired: %v", err)
	}
	if err := keys.Revoke(t.Context(), w.Shop.ID, bad, "x", quarterly); !errors.Is(err, signing.ErrNoKey) {
		t.Fatalf("another Brand revoked it: %v", err)
	}
	for range 2 {
		if err := keys.Revoke(t.Context(), w.Hotel.ID, bad, "laptop stolen", quarterly); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil || strings.Contains(string(doc.Body), bad) {
		t.Fatalf("%s, %v", doc.Body, err)
	}
	archive, err := keys.Archive(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []struct {
			KID     string
			D       *string
			Revoked struct {
				At     time.Time `json:"revoked_at"`
				Reason string
			}
		}
	}
	if err := json.Unmarshal(archive.Body, &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 1 || set.Keys[0].KID != bad || set.Keys[0].D != nil || set.Keys[0].Revoked.Reason != "laptop stolen" || !set.Keys[0].Revoked.At.Equal(w.Clock.Now().Truncate(time.Second)) {
		t.Fatalf("archive: %s", archive.Body)
	}
	if _, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypToken, token); !errors.Is(err, signing.ErrNotOurs) {
		t.Errorf("a token of the compromised key still counts: %v", err)
	}
	fresh := sign(t, w, keys)
	if _, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypToken, fresh); err != nil {
		t.Error(err)
	}
}

// wire.md §2: with the current key gone and none in its place, the retired ones
// are still published; only signing has to wait.
func TestRetiredKeysArePublishedWithoutACurrentOne(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	w.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = $1`, w.Hotel.ID)
	if doc, err := keys.JWKS(t.Context(), w.Hotel.ID); err != nil || !strings.Contains(string(doc.Body), "kid") {
		t.Fatalf("%s, %v", doc.Body, err)
	}
	if _, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`)); !errors.Is(err, signing.ErrUnavailable) {
		t.Fatal(err)
	}
}

// A compromise in the middle of a rotation takes the next key, and a next key
// that shall not sign can be taken back.
func TestRevokeUsesTheNextKey(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	unwanted, err := keys.Prepare(t.Context(), w.Hotel.ID, "local", signing.RS256)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Retire(t.Context(), w.Hotel.ID, unwanted.KID); err != nil {
		t.Fatal(err)
	}
	next, err := keys.Prepare(t.Context(), w.Hotel.ID, "local", signing.ES256)
	if err != nil {
		t.Fatal(err)
	}
	list, err := keys.List(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		if k.State == "current" {
			if err := keys.Revoke(t.Context(), w.Hotel.ID, k.KID, "x", quarterly); err != nil {
				t.Fatal(err)
			}
		}
	}
	after, err := keys.List(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range after {
		if k.KID == next.KID && k.State != "current" {
			t.Errorf("the next key is %s", k.State)
		}
		if k.KID == unwanted.KID && k.State != "retired" {
			t.Errorf("the unwanted key is %s", k.State)
		}
	}
	if err := keys.Retire(t.Context(), w.Hotel.ID, "nonsense"); !errors.Is(err, signing.ErrNoKey) {
		t.Error(err)
	}
}

// Verify takes what we signed for the purpose, to the byte of its header.
func TestVerifyTakesOnlyOurOwn(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	token := sign(t, w, keys)
	payload, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypToken, token)
	if err != nil || string(payload) != "{}" {
		t.Fatal(string(payload), err)
	}
	parts := strings.Split(token, ".")
	other, err := keys.Sign(t.Context(), w.Shop.ID, signing.TypToken, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string]string{
		"another Brand's":   other,
		"another payload":   parts[0] + ".e30x." + parts[2],
		"another header":    "eyJhbGciOiJub25lIn0." + parts[1] + "." + parts[2],
		"no signature":      parts[0] + "." + parts[1] + ".",
		"two parts":         parts[0] + "." + parts[1],
		"four parts":        token + ".x",
		"padded":            token + "=",
		"very long":         token + strings.Repeat("A", 9000),
		"a receipt's place": "",
	} {
		if _, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypToken, bad); !errors.Is(err, signing.ErrNotOurs) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypReceipt, token); !errors.Is(err, signing.ErrNotOurs) {
		t.Errorf("a token passes for a receipt: %v", err)
	}
}
