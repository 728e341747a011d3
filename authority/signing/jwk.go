package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-jose/go-jose/v4"
)

// KID returns the RFC 7638 thumbprint of the key, base64url.
func KID(public crypto.PublicKey) (string, error) {
	sum, err := (&jose.JSONWebKey{Key: public}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// publicJWK renders the public half as verifiers will see it.
func publicJWK(public crypto.PublicKey, kid string, alg Alg) ([]byte, error) {
	jwk := jose.JSONWebKey{Key: public, KeyID: kid, Algorithm: string(alg), Use: "sig"}
	if !jwk.IsPublic() || !jwk.Valid() {
		return nil, errors.New("not a valid public key")
	}
	return json.Marshal(jwk)
}

func parsePublicJWK(raw []byte) (crypto.PublicKey, error) {
	var jwk jose.JSONWebKey
	if err := json.Unmarshal(raw, &jwk); err != nil {
		return nil, err
	}
	// The second wall against publishing a private member.
	if !jwk.IsPublic() {
		return nil, errors.New("stored key is not a public key")
	}
	return jwk.Key, nil
}

// ErrBadSignature is an alarm: a backend signed with another key or in another
// encoding than what is published.
var ErrBadSignature = errors.New("signature does not verify under the published key")

// check verifies a raw signature over the digest.
func check(public crypto.PublicKey, alg Alg, digest [sha256.Size]byte, sig []byte) error {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		if alg != ES256 || len(sig) != 64 {
			return ErrBadSignature
		}
		r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])
		if !ecdsa.Verify(key, digest[:], r, s) {
			return ErrBadSignature
		}
		return nil
	case *rsa.PublicKey:
		if alg != RS256 || rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], sig) != nil {
			return ErrBadSignature
		}
		return nil
	default:
		return ErrBadSignature
	}
}
