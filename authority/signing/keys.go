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
	"sync"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// freshness bounds how long an instance may go on with yesterday's keys: well
// under the two seconds in which a change must show everywhere.
const freshness = time.Second

// outage is how long the JWKS and signing go on from memory while the database
// is away; see PublishWait, which is longer.
const outage = 10 * time.Minute

// Keys signs for Brands and publishes their keys.
type Keys struct {
	db       *tenants.DB
	backends map[string]Backend
	log      *slog.Logger
	now      func() time.Time
	note     Note
	memo     *tenants.Memo[tenants.BrandID, *keySet]
	lost     *sync.Map // BrandID → struct{}: its store said that it does not hold the current key
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
	archive   Document
}

// NewKeys returns a Keys. It panics without a backend, or with two of one
// name.
func NewKeys(c Config) *Keys {
	k := &Keys{db: c.DB, backends: make(map[string]Backend), log: c.Log, now: c.Now, lost: new(sync.Map)}
	for _, b := range c.Backends {
		if k.backends[b.Name()] != nil {
			panic("signing: two backends are called " + b.Name())
		}
		k.backends[b.Name()] = b
	}
	if len(c.Backends) == 0 {
		panic("signing: no backend")
	}
	k.memo = &tenants.Memo[tenants.BrandID, *keySet]{
		Fresh: freshness, Stale: outage, Now: c.Now, Load: k.load,
		Missing: func(err error) bool { return errors.Is(err, ErrNoKey) },
	}
	return k
}

// The types of JWS we sign, as their typ header.
const (
	TypToken         = "at+jwt"           // RFC 9068
	TypReceipt       = "pact-receipt+jws" // PACT §5.6
	TypStatusList    = "statuslist+jwt"   // Token Status List
	TypSecurityEvent = "secevent+jwt"     // RFC 8417
	// Of the log of receipts (authority/receiptlog).
	TypTaskReceipt = "pact-task-receipt+jws"
	TypCheckpoint  = "countersign-checkpoint+jws"
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
	if key == nil {
		return "", fmt.Errorf("sign for %s: no current key: %w", brand, ErrUnavailable)
	}
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
	if errors.Is(res[0].Err, ErrNoKey) && key.state == "current" {
		k.lost.Store(brand, struct{}{}) // upkeep looks into it
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

// SelfTest signs something with the Brand's current key and checks it, so that a
// keyring that does not open is noticed at the start and not at a payment. A
// Brand without a key passes.
func (k *Keys) SelfTest(ctx context.Context, brand tenants.BrandID) error {
	set, err := k.memo.Get(ctx, brand)
	if errors.Is(err, ErrNoKey) || err == nil && set.current == nil {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = k.signature(ctx, brand, set.current, sha256.Sum256([]byte("countersign self-test")))
	return err
}

// Ensure gives the Brand a current key if it has none: made in the backend,
// tried out, and only then published. It may run many times and on
// many instances; one key results.
func (k *Keys) Ensure(ctx context.Context, brand tenants.BrandID, backend string, alg Alg) error {
	return k.heal(ctx, brand, Policy{Alg: alg, Backend: backend})
}

func (k *Keys) load(ctx context.Context, brand tenants.BrandID) (*keySet, error) {
	const q = `
		SELECT kid, backend, version, alg, state, public_jwk, changed_at, reason
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
		ChangedAt time.Time
		Reason    *string
	}
	rows, err := tenants.All[row](ctx, k.db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("load keys of %s: %w", brand, err)
	}
	set := &keySet{}
	var archived []archivedKey
	for _, r := range rows {
		public, err := parsePublicJWK(r.PublicJWK)
		if err != nil {
			return nil, fmt.Errorf("key %s of %s: %w", r.KID, brand, err)
		}
		key := &key{
			kid: r.KID, backend: r.Backend, version: Version(r.Version), alg: r.Alg, state: r.State,
			public: public, jwk: r.PublicJWK, header: make(map[string]string),
		}
		for _, typ := range []string{TypToken, TypReceipt, TypStatusList, TypSecurityEvent, TypTaskReceipt, TypCheckpoint} {
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
		if r.State == "revoked" {
			archived = append(archived, archivedKey{key.jwk, r.ChangedAt, *r.Reason})
		} else {
			set.published = append(set.published, key)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("keys of %s: %w", brand, ErrNoKey)
	}
	if set.jwks, err = newJWKS(set.published); err != nil {
		return nil, err
	}
	set.archive, err = newArchive(archived)
	return set, err
}
