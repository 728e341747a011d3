package signing

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"countersign.dev/tenants"
)

// JWKSMaxAge is how long verifiers may keep a JWKS. A new key is published for
// longer than this before it signs.
const JWKSMaxAge = 300 * time.Second

// JWKSStaleIfError is how much longer a cache may serve a JWKS when we do not
// answer.
const JWKSStaleIfError = 300 * time.Second

// Document is a public document with its strong validator.
type Document struct {
	Body []byte
	ETag string
}

func newJWKS(published []*key) (Document, error) {
	keys := make([]json.RawMessage, len(published))
	for i, k := range published {
		keys[i] = k.jwk
	}
	return newDocument(keys)
}

// archivedKey is a compromised key as the archive shows it.
type archivedKey struct {
	jwk       json.RawMessage
	revokedAt time.Time
	reason    string
}

func newArchive(archived []archivedKey) (Document, error) {
	keys := make([]json.RawMessage, len(archived))
	for i, a := range archived {
		var members map[string]any
		if err := json.Unmarshal(a.jwk, &members); err != nil {
			return Document{}, fmt.Errorf("archive: %w", err)
		}
		members["revoked"] = map[string]string{
			"revoked_at": a.revokedAt.UTC().Format(time.RFC3339), "reason": a.reason,
		}
		raw, err := json.Marshal(members)
		if err != nil {
			return Document{}, fmt.Errorf("archive: %w", err)
		}
		keys[i] = raw
	}
	return newDocument(keys)
}

func newDocument(keys []json.RawMessage) (Document, error) {
	body, err := json.Marshal(struct {
		Keys []json.RawMessage `json:"keys"`
	}{keys})
	if err != nil {
		return Document{}, err
	}
	sum := sha256.Sum256(body)
	return Document{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// JWKS returns the Brand's published keys: next, current and every retired,
// uncompromised one, because receipts outlive the key that signed them. A
// Brand without keys is ErrNoKey.
func (k *Keys) JWKS(ctx context.Context, brand tenants.BrandID) (Document, error) {
	set, err := k.memo.Get(ctx, brand)
	if err != nil {
		return Document{}, fmt.Errorf("jwks of %s: %w", brand, err)
	}
	return set.jwks, nil
}

// Archive returns the Brand's compromised keys, each with when and why. What
// they signed counts only with other proof of its time (wire.md §2).
func (k *Keys) Archive(ctx context.Context, brand tenants.BrandID) (Document, error) {
	set, err := k.memo.Get(ctx, brand)
	if err != nil {
		return Document{}, fmt.Errorf("key archive of %s: %w", brand, err)
	}
	return set.archive, nil
}
