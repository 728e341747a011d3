package logintest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// Key signs assertions.
type Key struct {
	ID      string
	Alg     string
	private crypto.Signer
}

// JWK is the private key, for whoever plays the page's part.
func (k Key) JWK() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private, KeyID: k.ID, Algorithm: k.Alg}
}

// NewKey makes a key for ES256.
func NewKey(id string) Key {
	return Key{id, "ES256", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
}

// NewRSAKey makes a key for RS256.
func NewRSAKey(id string, bits int) Key {
	return Key{id, "RS256", must(rsa.GenerateKey(rand.Reader, bits))}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (k Key) public() any {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.ID, Use: "sig"}
}

// Claims are those of an honest assertion.
func (p *Page) Claims(audience string, u User, userCode string) map[string]any {
	now := p.config.Now()
	c := map[string]any{
		"iss": p.Issuer(), "aud": audience, "sub": u.Subject, "email": u.Email, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(),
	}
	if userCode != "" {
		c["user_code"] = userCode
	}
	return c
}

// Assert signs an assertion; edit may change its claims first, and take some away.
func (p *Page) Assert(audience string, u User, userCode string, edit func(map[string]any)) string {
	c := p.Claims(audience, u, userCode)
	if edit != nil {
		edit(c)
	}
	return p.Key().Sign(map[string]any{}, c)
}

// Sign signs claims under the header, to which alg and kid are added where it does
// not name them.
func (k Key) Sign(header, claims map[string]any) string {
	for name, value := range map[string]any{"alg": k.Alg, "kid": k.ID} {
		if _, ok := header[name]; !ok {
			header[name] = value
		}
	}
	return k.SignText(string(must(json.Marshal(header))), string(must(json.Marshal(claims))))
}

// SignText signs what is no longer a map: members twice, for one.
func (k Key) SignText(header, claims string) string {
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	digest := sha256.Sum256([]byte(signed))
	if key, ok := k.private.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		must(r, err)
		return signed + "." + encode(append(fill(r), fill(s)...))
	}
	return signed + "." + encode(must(k.private.Sign(rand.Reader, digest[:], crypto.SHA256)))
}

func fill(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// Unsigned is the assertion with alg none.
func Unsigned(assertion string) string {
	_, rest, _ := strings.Cut(assertion, ".")
	payload, _, _ := strings.Cut(rest, ".")
	return encode([]byte(`{"alg":"none"}`)) + "." + payload + "."
}
