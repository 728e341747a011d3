package demoidp

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"

	jose "github.com/go-jose/go-jose/v4"
)

// signatureAlgorithm is the one that every provider must offer (OpenID Connect Core,
// 15.1), and so the one that most Brands' providers use.
const signatureAlgorithm = jose.RS256

// signingKey is a key pair as zitadel/oidc wants to see it.
type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

func newSigningKey() (signingKey, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return signingKey{}, fmt.Errorf("make signing key: %w", err)
	}
	return signingKey{id: rand.Text(), private: private}, nil
}

func (k signingKey) ID() string                                  { return k.id }
func (k signingKey) Key() any                                    { return k.private }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return signatureAlgorithm }

type publicKey struct{ signingKey }

func (k publicKey) Key() any                           { return &k.private.PublicKey }
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return signatureAlgorithm }
func (k publicKey) Use() string                        { return "sig" }

func (s *storage) signer() signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[len(s.keys)-1]
}
