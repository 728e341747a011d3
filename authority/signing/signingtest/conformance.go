package signingtest

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/go-jose/go-jose/v4"
)

// The Brands of the suite. Where a backend needs to know its Brands, these two
// must be known; Nobody must not.
const (
	Hotel  tenants.BrandID = "harbor-hotel"
	Shop   tenants.BrandID = "fern-and-fell"
	Nobody tenants.BrandID = "no-such-brand"
)

// far is a version that nobody makes.
const far signing.Version = 60

// Conformance checks what signing.Backend promises. fresh returns a backend of
// its own for each claim; what they made may be shared.
func Conformance(t *testing.T, fresh func(testing.TB) signing.Backend) {
	for _, claim := range []struct {
		name string
		of   func(*testing.T, signing.Backend)
	}{
		{"create finds what it made", createIsIdempotent},
		{"concurrent creates make one key", createIsIdempotentConcurrently},
		{"versions are kept apart", versionsAreApart},
		{"brands are kept apart", brandsAreApart},
		{"a key nobody made is ErrNoKey", unknownKeys},
		{"a name that is no brand reaches no key (R36)", strangeBrands},
		{"ES256 is 64 bytes that verify (R33, B73)", es256},
		{"RS256 is PKCS #1 v1.5 that verifies (B73)", rs256},
		{"each job has its own answer at its own place", answersByJob},
		{"both algorithms under one version count (B70)", algorithmsSideBySide},
		{"a deadline that has passed ends the call", deadlines},
		{"many callers at once", concurrently},
	} {
		t.Run(claim.name, func(t *testing.T) { claim.of(t, fresh(t)) })
	}
}

// Create makes the key or fails the test.
func Create(t testing.TB, b signing.Backend, brand tenants.BrandID, v signing.Version, alg signing.Alg) crypto.PublicKey {
	t.Helper()
	public, err := b.Create(t.Context(), brand, v, alg)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// signable is a JWS without its signature.
type signable struct {
	input string
	alg   signing.Alg
}

func newSignable(alg signing.Alg, n int) signable {
	header := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":%q}`, alg))
	return signable{header + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"n":%d}`, n)), alg}
}

func (s signable) job(v signing.Version) signing.Job {
	return signing.Job{Version: v, Alg: s.alg, Digest: sha256.Sum256([]byte(s.input))}
}

// verify lets a JOSE library that is not ours look at the whole JWS.
func (s signable) verify(public crypto.PublicKey, r signing.Result) error {
	if r.Err != nil {
		return r.Err
	}
	jws, err := jose.ParseSignedCompact(s.input+"."+base64.RawURLEncoding.EncodeToString(r.Signature), []jose.SignatureAlgorithm{jose.SignatureAlgorithm(s.alg)})
	if err != nil {
		return err
	}
	_, err = jws.Verify(public)
	return err
}

func same(a, b crypto.PublicKey) bool {
	x, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && x.Equal(b)
}

func createIsIdempotent(t *testing.T, b signing.Backend) {
	for _, alg := range []signing.Alg{signing.ES256, signing.RS256} {
		v := signing.Version(1)
		if alg == signing.RS256 {
			v = 2
		}
		if first, again := Create(t, b, Hotel, v, alg), Create(t, b, Hotel, v, alg); !same(first, again) {
			t.Errorf("%s: a second create made another key", alg)
		}
	}
	if _, err := b.Create(t.Context(), Hotel, 1, "HS256"); err == nil {
		t.Error("a key of an algorithm that is not ours was made")
	}
}

func createIsIdempotentConcurrently(t *testing.T, b signing.Backend) {
	made := make([]crypto.PublicKey, 8)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			var err error
			if made[i], err = b.Create(t.Context(), Shop, 3, signing.ES256); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, public := range made {
		if public == nil || !same(public, made[0]) {
			t.Fatal("callers were told of different keys")
		}
	}
}

func versionsAreApart(t *testing.T, b signing.Backend) {
	old, young := Create(t, b, Hotel, 1, signing.ES256), Create(t, b, Hotel, 4, signing.ES256)
	if same(old, young) {
		t.Fatal("two versions are one key")
	}
	s := newSignable(signing.ES256, 0)
	// The older one goes on signing: a rotation publishes long before it switches.
	for v, public := range map[signing.Version]crypto.PublicKey{1: old, 4: young} {
		if err := s.verify(public, b.Sign(t.Context(), Hotel, []signing.Job{s.job(v)})[0]); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
}

func brandsAreApart(t *testing.T, b signing.Backend) {
	hotel, shop := Create(t, b, Hotel, 1, signing.ES256), Create(t, b, Shop, 1, signing.ES256)
	if same(hotel, shop) {
		t.Fatal("two Brands share a key")
	}
	s := newSignable(signing.ES256, 0)
	r := b.Sign(t.Context(), Hotel, []signing.Job{s.job(1)})[0]
	if err := s.verify(shop, r); err == nil {
		t.Error("one Brand's signature verifies under another's key")
	}
	if err := s.verify(hotel, r); err != nil {
		t.Error(err)
	}
}

func unknownKeys(t *testing.T, b signing.Backend) {
	Create(t, b, Hotel, 1, signing.ES256)
	s := newSignable(signing.ES256, 0)
	for _, tt := range []struct {
		name  string
		brand tenants.BrandID
		v     signing.Version
	}{
		{"a version not made", Hotel, far},
		{"no version", Hotel, 0},
		{"a negative version", Hotel, -1},
		{"an unknown Brand", Nobody, 1},
	} {
		r := b.Sign(t.Context(), tt.brand, []signing.Job{s.job(tt.v)})[0]
		if !errors.Is(r.Err, signing.ErrNoKey) || r.Signature != nil {
			t.Errorf("%s: %+v", tt.name, r)
		}
		if errors.Is(r.Err, signing.ErrUnavailable) {
			t.Errorf("%s is said to be worth another try", tt.name)
		}
	}
}

func strangeBrands(t *testing.T, b signing.Backend) {
	Create(t, b, Hotel, 1, signing.ES256)
	s := newSignable(signing.ES256, 0)
	for _, brand := range []tenants.BrandID{"", ".", "..", "../harbor-hotel", "x/../harbor-hotel", "%2e%2e%2fharbor-hotel", "harbor-hotel%2f..", "harbor-hotel?", "Harbor-Hotel", "*"} {
		r := b.Sign(t.Context(), brand, []signing.Job{s.job(1)})[0]
		if !errors.Is(r.Err, signing.ErrNoKey) || r.Signature != nil {
			t.Errorf("%q: %+v", brand, r)
		}
	}
}

func es256(t *testing.T, b signing.Backend) {
	public := Create(t, b, Hotel, 1, signing.ES256)
	const signatures, batch = 1000, 100
	for n := 0; n < signatures; n += batch {
		signAndVerify(t, b, public, signing.ES256, 1, n, batch)
	}
}

func rs256(t *testing.T, b signing.Backend) {
	signAndVerify(t, b, Create(t, b, Hotel, 2, signing.RS256), signing.RS256, 2, 0, 20)
}

func signAndVerify(t *testing.T, b signing.Backend, public crypto.PublicKey, alg signing.Alg, v signing.Version, from, n int) {
	t.Helper()
	size := map[signing.Alg]int{signing.ES256: 64, signing.RS256: 256}[alg]
	texts, jobs := make([]signable, n), make([]signing.Job, n)
	for i := range texts {
		texts[i] = newSignable(alg, from+i)
		jobs[i] = texts[i].job(v)
	}
	for i, r := range b.Sign(t.Context(), Hotel, jobs) {
		if err := texts[i].verify(public, r); err != nil {
			t.Fatalf("signature %d: %v", from+i, err)
		}
		if len(r.Signature) != size {
			t.Fatalf("signature %d has %d bytes", from+i, len(r.Signature))
		}
	}
}

func answersByJob(t *testing.T, b signing.Backend) {
	public := Create(t, b, Hotel, 1, signing.ES256)
	if n := len(b.Sign(t.Context(), Hotel, nil)); n != 0 {
		t.Errorf("%d answers to nothing", n)
	}
	texts, jobs := make([]signable, 40), make([]signing.Job, 40)
	for i := range jobs {
		texts[i] = newSignable(signing.ES256, i)
		jobs[i] = texts[i].job(1)
		if i%4 == 3 {
			jobs[i].Version = far
		}
	}
	results := b.Sign(t.Context(), Hotel, jobs)
	if len(results) != len(jobs) {
		t.Fatalf("%d answers to %d jobs", len(results), len(jobs))
	}
	for i, r := range results {
		err := texts[i].verify(public, r)
		if i%4 == 3 && !errors.Is(err, signing.ErrNoKey) {
			t.Errorf("job %d without a key: %v", i, err)
		}
		if i%4 != 3 && err != nil {
			t.Errorf("job %d: %v", i, err)
		}
	}
}

func algorithmsSideBySide(t *testing.T, b signing.Backend) {
	es, rs := Create(t, b, Shop, 5, signing.ES256), Create(t, b, Shop, 6, signing.RS256)
	a, c := newSignable(signing.ES256, 0), newSignable(signing.RS256, 0)
	r := b.Sign(t.Context(), Shop, []signing.Job{a.job(5), c.job(6), c.job(5)})
	if err := a.verify(es, r[0]); err != nil {
		t.Error(err)
	}
	if err := c.verify(rs, r[1]); err != nil {
		t.Error(err)
	}
	if r[2].Err == nil && c.verify(rs, r[2]) == nil {
		t.Error("version 5 signed as RS256, with the key of version 6")
	}
}

// A backend that has what it needs at hand may sign all the same; it may not
// hang, and whatever it answers is whole.
func deadlines(t *testing.T, b signing.Backend) {
	public := Create(t, b, Hotel, 1, signing.ES256)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	s := newSignable(signing.ES256, 0)
	r := b.Sign(ctx, Hotel, []signing.Job{s.job(1)})[0]
	if err := s.verify(public, r); err != nil && !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("a passed deadline is not worth another try: %v", err)
	}
}

func concurrently(t *testing.T, b signing.Backend) {
	publics := map[tenants.BrandID]crypto.PublicKey{
		Hotel: Create(t, b, Hotel, 1, signing.ES256),
		Shop:  Create(t, b, Shop, 1, signing.ES256),
	}
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			brand := Hotel
			if n%2 == 1 {
				brand = Shop
			}
			for i := range 5 {
				s := newSignable(signing.ES256, n*5+i)
				if err := s.verify(publics[brand], b.Sign(t.Context(), brand, []signing.Job{s.job(1)})[0]); err != nil {
					t.Errorf("caller %d: %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
