package federation

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"

	jose "github.com/go-jose/go-jose/v4"
)

const (
	mostKeys     = 100
	smallestRSA  = 2048 // bits
	errSignature = "the ID token's signature does not verify"
)

type publicKey = jose.JSONWebKey

// signatures verifies for one login. It implements oidc.KeySet, and keeps the error,
// which go-oidc turns into text: a provider that cannot be reached must not look like
// a forged token.
type signatures struct {
	provider   *provider
	address    string
	algorithms []string
	err        error
}

// VerifySignature returns the payload of a token that one of the provider's keys has
// signed. When none of the known ones has, the keys are fetched once more, since they
// may have been rotated since (R70).
func (s *signatures) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := s.verify(ctx, token)
	s.err = err
	return payload, err
}

func (s *signatures) verify(ctx context.Context, token string) ([]byte, error) {
	algorithms := make([]jose.SignatureAlgorithm, len(s.algorithms))
	for i, alg := range s.algorithms {
		algorithms[i] = jose.SignatureAlgorithm(alg)
	}
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, invalid("the ID token is malformed")
	}
	after := 0
	for range 2 {
		keys, number, err := s.keys(ctx, after)
		if err != nil {
			return nil, err
		}
		if payload, ok := verifyWith(keys, jws); ok {
			return payload, nil
		}
		after = number
	}
	return nil, invalid(errSignature)
}

func (s *signatures) keys(ctx context.Context, after int) ([]publicKey, int, error) {
	p := s.provider
	return p.keys.get(ctx, p.limits(keysLife), after, func(ctx context.Context) ([]publicKey, error) {
		return p.client.fetchKeys(ctx, s.address)
	})
}

func verifyWith(keys []publicKey, jws *jose.JSONWebSignature) ([]byte, bool) {
	header := jws.Signatures[0].Header
	for _, key := range keys {
		if header.KeyID != "" && key.KeyID != header.KeyID {
			continue
		}
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := jws.Verify(&key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// fetchKeys reads a JWKS. Keys that we cannot use are passed over (RFC 7517, 5): one
// exotic key must not lock a Brand out.
func (c *Client) fetchKeys(ctx context.Context, address string) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := c.getJSON(ctx, "the key set", address, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > mostKeys {
		return nil, misconfigured("the key set holds too many keys")
	}
	var keys []publicKey
	for _, text := range set.Keys {
		if key, err := parseKey(text); err == nil {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, misconfigured("the key set holds no usable key")
	}
	return keys, nil
}

func parseKey(text []byte) (publicKey, error) {
	var key publicKey
	if err := json.Unmarshal(text, &key); err != nil {
		return publicKey{}, err
	}
	// IsPublic also turns secret ("oct") keys away.
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return publicKey{}, errors.New("not a public signing key")
	}
	if k, ok := key.Key.(*rsa.PublicKey); ok && k.N.BitLen() < smallestRSA {
		return publicKey{}, errors.New("too small")
	}
	return key, nil
}
