package federation

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionLife = time.Minute
)

// assertion proves to the provider's token endpoint that it is us (OpenID Connect
// Core, 9). Its audience is the issuer alone: naming the token endpoint would let a
// malicious provider have assertions made that an honest one accepts.
func (c Connection) assertion(now time.Time) (string, error) {
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: c.Key.Private, KeyID: c.Key.ID}},
		new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign client assertion: %w", err)
	}
	claims, err := json.Marshal(map[string]any{
		"iss": c.ClientID, "sub": c.ClientID, "aud": c.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("sign client assertion: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("sign client assertion: %w", err)
	}
	return signed.CompactSerialize()
}
