// Package local is the development keyring: a signing backend whose private
// keys rest in our own database, sealed under the master key file.
//
// It keeps the promise of its interface, not that of a vault: whoever holds the
// database and the master key file holds the keys.
package local

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Keyring implements signing.Backend.
type Keyring struct {
	db     *tenants.DB
	sealer tenants.Sealer
	memo   tenants.Memo[keyName, crypto.Signer]
}

type keyName struct {
	brand   tenants.BrandID
	version signing.Version
}

const purpose = "local-signing-key"

// New returns a Keyring whose keys rest in db, sealed by sealer.
func New(db *tenants.DB, sealer tenants.Sealer, now func() time.Time) *Keyring {
	k := &Keyring{db: db, sealer: sealer}
	// A private key never changes under its name, so it may stay in memory.
	const keep = time.Hour
	k.memo = tenants.Memo[keyName, crypto.Signer]{Fresh: keep, Stale: 24 * keep, Now: now, Load: k.load}
	return k
}

// Name implements signing.Backend.
func (k *Keyring) Name() string { return "local" }

// Create implements signing.Backend.
func (k *Keyring) Create(ctx context.Context, brand tenants.BrandID, version signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	fresh, err := generate(alg)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(fresh)
	if err != nil {
		return nil, fmt.Errorf("encode new key: %w", err)
	}
	sealed, err := k.sealer.Seal(ctx, brand, purpose, der)
	if err != nil {
		return nil, fmt.Errorf("seal new key: %w", err)
	}
	// The first writer wins; everybody then reads what stands.
	const q = `
		INSERT INTO local_keys (brand_id, version, alg, sealed)
		VALUES (@brand, @version, @alg, @sealed)
		ON CONFLICT DO NOTHING`
	_, err = k.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "version": int(version), "alg": string(alg), "sealed": sealed})
	if err != nil {
		return nil, fmt.Errorf("store new key: %w", err)
	}
	key, err := k.memo.Get(ctx, keyName{brand, version})
	if err != nil {
		return nil, err
	}
	if algOf(key) != alg {
		return nil, fmt.Errorf("key %d of %s: %w", version, brand, signing.ErrOtherAlg)
	}
	return key.Public(), nil
}

func generate(alg signing.Alg) (crypto.Signer, error) {
	switch alg {
	case signing.ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case signing.RS256:
		return rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, fmt.Errorf("no keys of algorithm %q", alg)
	}
}

func algOf(key crypto.Signer) signing.Alg {
	if _, ok := key.(*ecdsa.PrivateKey); ok {
		return signing.ES256
	}
	return signing.RS256
}

// Sign implements signing.Backend.
func (k *Keyring) Sign(ctx context.Context, brand tenants.BrandID, jobs []signing.Job) []signing.Result {
	out := make([]signing.Result, len(jobs))
	for i, job := range jobs {
		out[i].Signature, out[i].Err = k.sign(ctx, brand, job)
	}
	return out
}

func (k *Keyring) sign(ctx context.Context, brand tenants.BrandID, job signing.Job) ([]byte, error) {
	key, err := k.memo.Get(ctx, keyName{brand, job.Version})
	if err != nil {
		return nil, err
	}
	if algOf(key) != job.Alg {
		return nil, fmt.Errorf("key %d of %s is not %s", job.Version, brand, job.Alg)
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, job.Digest[:])
		if err != nil {
			return nil, err
		}
		sig := make([]byte, 64)
		r.FillBytes(sig[:32]) // padded: a leading zero byte belongs to the signature
		s.FillBytes(sig[32:])
		return sig, nil
	case *rsa.PrivateKey:
		return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, job.Digest[:])
	default:
		return nil, errors.New("unknown kind of key")
	}
}

func (k *Keyring) load(ctx context.Context, name keyName) (crypto.Signer, error) {
	const q = `SELECT sealed FROM local_keys WHERE brand_id = @brand AND version = @version`
	row, err := tenants.One[struct{ Sealed []byte }](ctx, k.db, name.brand, q, pgx.NamedArgs{"brand": name.brand, "version": int(name.version)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("key %d of %s: %w", name.version, name.brand, signing.ErrNoKey)
	}
	if err != nil {
		return nil, fmt.Errorf("load key %d of %s: %w: %w", name.version, name.brand, signing.ErrUnavailable, err)
	}
	der, err := k.sealer.Open(ctx, name.brand, purpose, row.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open key %d of %s: %w", name.version, name.brand, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("decode key %d of %s: %w", name.version, name.brand, err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("stored key cannot sign")
	}
	return key, nil
}
