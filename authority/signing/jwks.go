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
