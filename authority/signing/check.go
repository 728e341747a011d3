package signing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign.dev/tenants"
)

// ErrNotOurs says that a JWS was not signed by one of the Brand's published keys
// for this purpose.
var ErrNotOurs = errors.New("not signed by the brand's keys")

const maxJWS = 8 << 10

// Verify checks a compact JWS that this Brand may have signed and returns its
// payload. The header must be, to the byte, one that we write for the typ: so
// neither algorithm nor type nor anything else is the bearer's choice. A key
// that was revoked verifies nothing.
func (k *Keys) Verify(ctx context.Context, brand tenants.BrandID, typ, compact string) ([]byte, error) {
	if len(compact) > maxJWS || strings.Count(compact, ".") != 2 {
		return nil, ErrNotOurs
	}
	set, err := k.memo.Get(ctx, brand)
	if err != nil {
		return nil, fmt.Errorf("keys of %s: %w", brand, err)
	}
	header, rest, _ := strings.Cut(compact, ".")
	body, tail, _ := strings.Cut(rest, ".")
	signature, err := base64.RawURLEncoding.Strict().DecodeString(tail)
	if err != nil {
		return nil, ErrNotOurs
	}
	for _, key := range set.published {
		if key.header[typ] != header {
			continue
		}
		if check(key.public, key.alg, sha256.Sum256([]byte(header+"."+body)), signature) != nil {
			return nil, ErrNotOurs
		}
		payload, err := base64.RawURLEncoding.Strict().DecodeString(body)
		if err != nil || !json.Valid(payload) || !bytes.HasPrefix(payload, []byte("{")) {
			return nil, ErrNotOurs
		}
		return payload, nil
	}
	return nil, ErrNotOurs
}
