package tryout

import (
	"crypto"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Agent is the test agent. It may be used by many goroutines at once.
type Agent struct {
	Issuer string
	http   *http.Client
	now    func() time.Time
	key    jose.JSONWebKey
}

// Config is what an Agent needs.
type Config struct {
	Issuer string // where its keys stand, and who it is to Brands
	Key    *ecdsa.PrivateKey
	HTTP   *http.Client // to addresses that Brands name
	Now    func() time.Time
}

// New returns an Agent.
func New(c Config) (*Agent, error) {
	key := jose.JSONWebKey{Key: c.Key, Algorithm: string(jose.ES256), Use: "sig"}
	thumb, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("name the test agent's key: %w", err)
	}
	key.KeyID = base64.RawURLEncoding.EncodeToString(thumb)
	return &Agent{Issuer: c.Issuer, http: c.HTTP, now: c.Now, key: key}, nil
}

// JWKSURI is where JWKS belongs.
func (a *Agent) JWKSURI() string { return a.Issuer + "/jwks.json" }

// JWKS is the agent's public key.
func (a *Agent) JWKS() ([]byte, error) {
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{a.key.Public()}})
}

// proof is a pa-jwt (PACT §3) for the audience, in the name of the agent's user.
func (a *Agent) proof(audience, user string) (string, error) {
	const life = 2 * time.Minute
	now := a.now()
	claims, err := json.Marshal(map[string]any{
		"iss": a.Issuer, "sub": user, "aud": audience, "iat": now.Unix(), "exp": now.Add(life).Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("sign the test agent's proof: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: a.key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign the test agent's proof: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("sign the test agent's proof: %w", err)
	}
	return signed.CompactSerialize()
}
