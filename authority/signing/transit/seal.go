package transit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/hashicorp/vault/api"
)

// Sealer encrypts secrets at rest with a key that never leaves Vault. Each Brand
// and purpose has a key derived from it, so that a row copied to another Brand
// does not open. It implements tenants.Sealer.
//
// The key is made by whoever sets Vault up (see Setup and deploy/vault), since
// the service's own policy does not let it make or change one.
type Sealer struct {
	backend  *Backend
	previous tenants.Sealer
	checked  atomic.Bool
}

// Sealer returns a Sealer over this Vault. What it did not seal itself is opened
// by previous, if there is one: secrets from before the move to this Vault go on
// working until Rewrap has been over them. A move from one Vault to another is
// second.Sealer(first.Sealer(master)).
func (b *Backend) Sealer(previous tenants.Sealer) *Sealer {
	return &Sealer{backend: b, previous: previous}
}

// Seal implements tenants.Sealer.
func (s *Sealer) Seal(ctx context.Context, brand tenants.BrandID, purpose string, plain []byte) ([]byte, error) {
	if err := s.check(ctx); err != nil {
		return nil, fmt.Errorf("%s: seal: %w", s.backend.name, err)
	}
	return s.transform(ctx, "encrypt", brand, purpose, map[string]any{
		"plaintext": base64.StdEncoding.EncodeToString(plain),
	})
}

// Open implements tenants.Sealer.
func (s *Sealer) Open(ctx context.Context, brand tenants.BrandID, purpose string, sealed []byte) ([]byte, error) {
	if _, _, ours := parseMark(string(sealed)); !ours {
		if s.previous == nil {
			return nil, errors.New("value was not sealed by vault")
		}
		return s.previous.Open(ctx, brand, purpose, sealed)
	}
	encoded, err := s.transform(ctx, "decrypt", brand, purpose, map[string]any{"ciphertext": string(sealed)})
	if kindOf(err) == foreign {
		return s.openForeign(ctx, brand, purpose, sealed, err)
	}
	if err != nil {
		return nil, err
	}
	plain, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("%s: open: %w", s.backend.name, err)
	}
	return plain, nil
}

// openForeign opens what bears Vault's mark and is refused by ours: every Vault
// writes the same mark, so only the try tells whose it is. Both errors are kept,
// since an outage of the previous store must not read as a broken secret.
func (s *Sealer) openForeign(ctx context.Context, brand tenants.BrandID, purpose string, sealed []byte, refusal error) ([]byte, error) {
	plain, err := s.previous.Open(ctx, brand, purpose, sealed)
	if err != nil {
		return nil, errors.Join(refusal, fmt.Errorf("open with the previous sealer: %w", err))
	}
	return plain, nil
}

// Rewrap returns the secret sealed under the newest version of the key, and
// whether that differs from what was given. A secret that is Vault's already is
// not seen by us.
func (s *Sealer) Rewrap(ctx context.Context, brand tenants.BrandID, purpose string, sealed []byte) (fresh []byte, changed bool, err error) {
	before, _, ours := parseMark(string(sealed))
	if !ours {
		return s.move(ctx, brand, purpose, sealed)
	}
	fresh, err = s.transform(ctx, "rewrap", brand, purpose, map[string]any{"ciphertext": string(sealed)})
	if kindOf(err) == foreign {
		return s.move(ctx, brand, purpose, sealed)
	}
	if err != nil {
		return nil, false, err
	}
	if after, _, _ := parseMark(string(fresh)); after == before {
		return sealed, false, nil
	}
	return fresh, true, nil
}

// move seals anew what another store sealed.
func (s *Sealer) move(ctx context.Context, brand tenants.BrandID, purpose string, sealed []byte) (fresh []byte, changed bool, err error) {
	plain, err := s.Open(ctx, brand, purpose, sealed)
	if err != nil {
		return nil, false, err
	}
	fresh, err = s.Seal(ctx, brand, purpose, plain)
	return fresh, err == nil, err
}

func (s *Sealer) transform(ctx context.Context, operation string, brand tenants.BrandID, purpose string, body map[string]any) ([]byte, error) {
	b := s.backend
	if !brandID.MatchString(string(brand)) || purpose == "" {
		return nil, fmt.Errorf("%s: %s for %q: which Brand's, and what?", b.name, operation, brand)
	}
	// The length keeps every pair of Brand and purpose apart from every other.
	derivation := fmt.Sprintf("countersign/1 %d:%s %s", len(brand), brand, purpose)
	body["context"] = base64.StdEncoding.EncodeToString([]byte(derivation))
	answer, err := b.server.call(ctx, operation, b.timeout, func(ctx context.Context) (*api.Secret, error) {
		answer, err := b.server.client.Logical().WriteWithContext(ctx, b.mount+"/"+operation+"/"+sealKey, body)
		if operation != "encrypt" && s.previous != nil && kindOf(err) == refused {
			// Usual during a move, so no alarm. An outage is never taken for it: the
			// previous store would be asked for everything just when ours is down.
			err = &failure{kind: foreign, err: err}
		}
		return answer, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %s for %s: %w", b.name, operation, brand, err)
	}
	field := "ciphertext"
	if operation == "decrypt" {
		field = "plaintext"
	}
	if answer != nil {
		if text, ok := answer.Data[field].(string); ok {
			return []byte(text), nil
		}
	}
	return nil, fmt.Errorf("%s: %s for %s: the answer holds no %s", b.name, operation, brand, field)
}

// check looks at the key before the first secret is sealed: a key that is not
// derived ignores the context, and every Brand's secrets would open for all.
func (s *Sealer) check(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	key, err := s.backend.readKey(ctx, sealKey)
	if errors.Is(err, signing.ErrNoKey) {
		return fmt.Errorf("key %s is not there; make it as deploy/vault says: %w", sealKey, err)
	}
	if err != nil {
		return err
	}
	if err := key.checkSeal(); err != nil {
		return fmt.Errorf("key %s %w", sealKey, err)
	}
	s.checked.Store(true)
	return nil
}

func (k *transitKey) checkSeal() error {
	switch {
	case k.Type != "aes256-gcm96":
		return fmt.Errorf("is of type %s, not aes256-gcm96", k.Type)
	case !k.Derived:
		return errors.New("is not derived: it would not keep Brands apart")
	case k.Exportable || k.Backup || k.Deletable || k.Imported:
		return errors.New("can leave Vault or be deleted")
	default:
		return nil
	}
}
