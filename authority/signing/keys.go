package signing

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// freshness bounds how long an instance may go on with yesterday's keys: well
// under the two seconds in which a change must show everywhere.
const freshness = time.Second

// outage is how long the JWKS and signing go on from memory while the database
// is away.
const outage = 10 * time.Minute

// Keys signs for Brands and publishes their keys.
type Keys struct {
	db       *tenants.DB
	backends map[string]Backend
	log      *slog.Logger
	now      func() time.Time
	memo     tenants.Memo[tenants.BrandID, *keySet]
}

// Config is what Keys needs.
type Config struct {
	DB *tenants.DB
	// Backends that hold keys; new keys are made in the first.
	Backends []Backend
	Log      *slog.Logger
	Now      func() time.Time
}

// key is one public key and where its private half is.
type key struct {
	kid     string
	backend string
	version Version
	alg     Alg
	state   string
	public  crypto.PublicKey
	jwk     json.RawMessage
	header  map[string]string // typ → encoded JOSE header
}

type keySet struct {
	current   *key
	published []*key
	jwks      Document
}

// NewKeys returns a Keys. It panics without a backend.
func NewKeys(c Config) *Keys {
	k := &Keys{db: c.DB, backends: make(map[string]Backend), log: c.Log, now: c.Now}
	for _, b := range c.Backends {
		k.backends[b.Name()] = b
	}
	if len(c.Backends) == 0 {
		panic("signing: no backend")
	}
	k.memo = tenants.Memo[tenants.BrandID, *keySet]{
		Fresh: freshness, Stale: outage, Now: c.Now, Load: k.load,
		Missing: func(err error) bool { return errors.Is(err, ErrNoKey) },
	}
	return k
}

// The types of JWS we sign, as their typ header.
const (
	TypToken   = "at+jwt"           // RFC 9068
	TypReceipt = "pact-receipt+jws" // PACT §5.6
)

// Sign returns the compact JWS of payload, signed with the Brand's current key.
// A backend that cannot answer now is ErrUnavailable; a backend that answers
// with a signature its published key does not verify is an alarm and an error,
// and the signature goes nowhere.
func (k *Keys) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	set, err := k.memo.Get(ctx, brand)
	if err != nil {
		return "", fmt.Errorf("keys of %s: %w", brand, err)
	}
	key := set.current
	header, ok := key.header[typ]
	if !ok {
		return "", fmt.Errorf("sign for %s: unknown typ %q", brand, typ)
	}
	input := header + "." + base64.RawURLEncoding.EncodeToString(payload)
	sig, err := k.signature(ctx, brand, key, sha256.Sum256([]byte(input)))
	if err != nil {
		return "", err
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(sig), nil
}

func (k *Keys) signature(ctx context.Context, brand tenants.BrandID, key *key, digest [32]byte) ([]byte, error) {
	backend := k.backends[key.backend]
	if backend == nil {
		return nil, fmt.Errorf("sign for %s: backend %q is not configured: %w", brand, key.backend, ErrUnavailable)
	}
	res := backend.Sign(ctx, brand, []Job{{Version: key.version, Alg: key.alg, Digest: digest}})
	if len(res) != 1 {
		return nil, fmt.Errorf("sign for %s: %d answers to one job", brand, len(res))
	}
	if res[0].Err != nil {
		return nil, fmt.Errorf("sign for %s: %w", brand, res[0].Err)
	}
	// A backend that used another version, another Brand's key or another
	// encoding would hand out tokens nobody can verify, or worse, can.
	if err := check(key.public, key.alg, digest, res[0].Signature); err != nil {
		k.log.ErrorContext(ctx, "ALARM: wrong signature from backend", "brand", string(brand), "kid", key.kid, "backend", key.backend)
		return nil, fmt.Errorf("sign for %s: %w", brand, err)
	}
	return res[0].Signature, nil
}

// Ensure gives the Brand a current key if it has none: made in the first
// backend, tried out, and only then published. It may run many times and on
// many instances; one key results.
func (k *Keys) Ensure(ctx context.Context, brand tenants.BrandID, backend string, alg Alg) error {
	if _, err := k.load(ctx, brand); !errors.Is(err, ErrNoKey) {
		return err
	}
	const first Version = 1
	b := k.backends[backend]
	if b == nil {
		return fmt.Errorf("key for %s: no backend %q", brand, backend)
	}
	public, err := b.Create(ctx, brand, first, alg)
	if err != nil {
		return fmt.Errorf("create key for %s: %w", brand, err)
	}
	kid, err := KID(public)
	if err != nil {
		return err
	}
	jwk, err := publicJWK(public, kid, alg)
	if err != nil {
		return fmt.Errorf("public key of %s: %w", brand, err)
	}
	probe := &key{kid: kid, backend: backend, version: first, alg: alg, public: public}
	if _, err := k.signature(ctx, brand, probe, sha256.Sum256([]byte("countersign key check "+kid))); err != nil {
		return fmt.Errorf("try new key of %s: %w", brand, err)
	}
	const q = `
		INSERT INTO signing_keys (brand_id, kid, backend, version, alg, state, public_jwk, created_at, changed_at)
		VALUES (@brand, @kid, @backend, @version, @alg, 'current', @jwk, @now, @now)
		ON CONFLICT DO NOTHING`
	_, err = k.db.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "kid": kid, "backend": backend, "version": int(first), "alg": string(alg), "jwk": jwk, "now": k.now(),
	})
	if err != nil {
		return fmt.Errorf("publish key of %s: %w", brand, err)
	}
	k.memo.Forget(brand)
	return nil
}

func (k *Keys) load(ctx context.Context, brand tenants.BrandID) (*keySet, error) {
	const q = `
		SELECT kid, backend, version, alg, state, public_jwk
		  FROM signing_keys
		 WHERE brand_id = @brand
		 ORDER BY created_at, kid`
	type row struct {
		KID       string `db:"kid"`
		Backend   string
		Version   int
		Alg       Alg
		State     string
		PublicJWK []byte `db:"public_jwk"`
	}
	rows, err := tenants.All[row](ctx, k.db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("load keys of %s: %w", brand, err)
	}
	set := &keySet{}
	for _, r := range rows {
		public, err := parsePublicJWK(r.PublicJWK)
		if err != nil {
			return nil, fmt.Errorf("key %s of %s: %w", r.KID, brand, err)
		}
		key := &key{
			kid: r.KID, backend: r.Backend, version: Version(r.Version), alg: r.Alg, state: r.State,
			public: public, jwk: r.PublicJWK, header: make(map[string]string),
		}
		for _, typ := range []string{TypToken, TypReceipt} {
			h, err := json.Marshal(struct {
				Alg Alg    `json:"alg"`
				KID string `json:"kid"`
				Typ string `json:"typ"`
			}{r.Alg, r.KID, typ})
			if err != nil {
				return nil, err
			}
			key.header[typ] = base64.RawURLEncoding.EncodeToString(h)
		}
		if r.State == "current" {
			set.current = key
		}
		// A compromised key leaves at once: whoever holds it chooses iat and ts.
		if r.State != "revoked" {
			set.published = append(set.published, key)
		}
	}
	if set.current == nil {
		return nil, fmt.Errorf("keys of %s: %w", brand, ErrNoKey)
	}
	set.jwks, err = newJWKS(set.published)
	return set, err
}
