package transit

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/hashicorp/vault/api"
)

// farthest bounds how many rotations one Create may ask for: as many as a Brand
// that changes its algorithm may have behind it. A longer jump means that somebody
// counts wrong.
const farthest = 256

// Create implements signing.Backend. It refuses a key of the right name that is
// not as we would have made it: of another type, exportable, deletable or brought
// in from outside (R60).
func (b *Backend) Create(ctx context.Context, brand tenants.BrandID, version signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	public, err := b.create(ctx, brand, version, alg)
	if err != nil {
		return nil, fmt.Errorf("%s: create key %d of %s: %w", b.name, version, brand, err)
	}
	return public, nil
}

func (b *Backend) create(ctx context.Context, brand tenants.BrandID, version signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	name, err := b.keyName(brand, alg)
	if err != nil {
		return nil, err
	}
	if version < 1 {
		return nil, errors.New("versions start at 1")
	}
	// One at a time for this key in this process, so that two callers do not both
	// rotate. Two processes may: the version that is one too many is found by the
	// next Create, and signs for nobody before.
	leave, err := b.creating.take(ctx, name)
	if err != nil {
		return nil, &failure{kind: kindOf(err), err: fmt.Errorf("wait for another Create: %w", err)}
	}
	defer leave()
	key, err := b.readKey(ctx, name)
	if errors.Is(err, signing.ErrNoKey) {
		kind, _ := keyType(alg)
		_, err = b.server.write(ctx, "create", patience, b.mount+"/keys/"+name, map[string]any{
			"type": kind, "exportable": false, "allow_plaintext_backup": false,
		})
		if err == nil {
			// What stands may be another's: Vault answers 200 for an existing key
			// of whatever type.
			key, err = b.readKey(ctx, name)
		}
	}
	if err != nil {
		return nil, err
	}
	if int(version) > key.Latest+farthest {
		return nil, fmt.Errorf("key %s is at version %d", name, key.Latest)
	}
	for key.Latest < int(version) {
		if err := key.check(alg); err != nil {
			return nil, fmt.Errorf("key %s: %w", name, err)
		}
		if _, err := b.server.write(ctx, "rotate", patience, b.mount+"/keys/"+name+"/rotate", nil); err != nil {
			return nil, err
		}
		before := key.Latest
		if key, err = b.readKey(ctx, name); err != nil {
			return nil, err
		}
		if key.Latest <= before {
			return nil, fmt.Errorf("key %s stays at version %d", name, before)
		}
	}
	if err := key.check(alg); err != nil {
		return nil, fmt.Errorf("key %s: %w", name, err)
	}
	return key.public(version, alg)
}

// Public returns the public half of a version that Vault still shows. When it is
// signing.ErrNoKey for a key that was published, Vault's versions were trimmed or
// raised behind our back (R59).
func (b *Backend) Public(ctx context.Context, brand tenants.BrandID, version signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	name, err := b.keyName(brand, alg)
	if err != nil {
		return nil, err
	}
	key, err := b.readKey(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: read key %d of %s: %w", b.name, version, brand, err)
	}
	return key.public(version, alg)
}

// transitKey is the engine's description of a key.
type transitKey struct {
	Type       string `json:"type"`
	Latest     int    `json:"latest_version"`
	Exportable bool   `json:"exportable"`
	Backup     bool   `json:"allow_plaintext_backup"`
	Deletable  bool   `json:"deletion_allowed"`
	Derived    bool   `json:"derived"`
	Imported   bool   `json:"imported_key"`
	// Keys by version; of an encryption key the values are times.
	Keys map[string]json.RawMessage `json:"keys"`
}

func (b *Backend) readKey(ctx context.Context, name string) (*transitKey, error) {
	secret, err := b.server.read(ctx, "read key", b.mount+"/keys/"+name)
	if err != nil {
		return nil, err
	}
	return parseKey(secret, name)
}

func parseKey(secret *api.Secret, name string) (*transitKey, error) {
	if secret == nil || secret.Data == nil {
		return nil, fmt.Errorf("key %s is not there: %w", name, signing.ErrNoKey)
	}
	raw, err := json.Marshal(secret.Data)
	if err != nil {
		return nil, err
	}
	key := new(transitKey)
	if err := json.Unmarshal(raw, key); err != nil {
		return nil, fmt.Errorf("read key %s: %w", name, err)
	}
	return key, nil
}

// check refuses what would break the promise that the key never leaves Vault.
func (k *transitKey) check(alg signing.Alg) error {
	want, _ := keyType(alg)
	switch {
	case k.Type != want:
		return fmt.Errorf("is of type %s, not %s", k.Type, want)
	case k.Exportable:
		return errors.New("can be exported")
	case k.Backup:
		return errors.New("can be backed up in the clear")
	case k.Deletable:
		return errors.New("can be deleted")
	case k.Imported:
		return errors.New("was made outside of Vault")
	case k.Derived:
		return errors.New("is derived")
	default:
		return nil
	}
}

func (k *transitKey) public(version signing.Version, alg signing.Alg) (crypto.PublicKey, error) {
	raw, found := k.Keys[strconv.Itoa(int(version))]
	if !found {
		return nil, fmt.Errorf("version %d is not shown: %w", version, signing.ErrNoKey)
	}
	var entry struct {
		PublicKey string `json:"public_key"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return nil, fmt.Errorf("version %d: %w", version, err)
	}
	block, _ := pem.Decode([]byte(entry.PublicKey))
	if block == nil {
		return nil, fmt.Errorf("version %d has no public key", version)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", version, err)
	}
	switch public := parsed.(type) {
	case *ecdsa.PublicKey:
		if alg == signing.ES256 && public.Curve == elliptic.P256() {
			return public, nil
		}
	case *rsa.PublicKey:
		if alg == signing.RS256 && public.N.BitLen() >= 2048 {
			return public, nil
		}
	}
	return nil, fmt.Errorf("version %d is not a key for %s", version, alg)
}
