package pa

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxLife = 300 * time.Second // of a pa-jwt (M5)
	life    = 120 * time.Second // what this agent gives itself
	spare   = 30 * time.Second  // with less left, a new one is signed
)

// Claims of a pa-jwt. The issuer is the identity's own.
type Claims struct {
	Sub      string    // the agent's user, 1–256 characters (M4)
	Aud      string    // the one audience assigned by the Brand's Provider (M3)
	IssuedAt time.Time // zero: now
	Expires  time.Time // zero: 120 s after IssuedAt; at most 300 s (M5)
}

// Sign makes a pa-jwt: a compact ES256 JWS. It has no jti, since the same one is
// sent on many calls (M6). Claims that a Brand would refuse are not signed.
func (id *Identity) Sign(c Claims) (string, error) {
	if c.IssuedAt.IsZero() {
		c.IssuedAt = time.Now()
	}
	if c.Expires.IsZero() {
		c.Expires = c.IssuedAt.Add(life)
	}
	issued, expires := c.IssuedAt.Unix(), c.Expires.Unix()
	switch n := utf8.RuneCountInString(c.Sub); {
	case n < 1 || n > 256:
		return "", fmt.Errorf("sign a pa-jwt: sub has %d characters, not 1 to 256", n)
	case c.Aud == "":
		return "", fmt.Errorf("sign a pa-jwt: no audience; the Brand's Provider assigns one (--aud)")
	case expires <= issued:
		return "", fmt.Errorf("sign a pa-jwt: it would end before it begins")
	case expires-issued > int64(maxLife/time.Second):
		return "", fmt.Errorf("sign a pa-jwt: a life of %d s is more than %s", expires-issued, maxLife)
	}
	payload, err := json.Marshal(map[string]any{
		"iss": id.Issuer, "sub": c.Sub, "aud": c.Aud, "iat": issued, "exp": expires,
	})
	if err != nil {
		return "", fmt.Errorf("sign a pa-jwt: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: id.key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign a pa-jwt: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign a pa-jwt: %w", err)
	}
	return signed.CompactSerialize()
}

// credential is a pa-jwt that is used again for as long as it has life to spare.
type credential struct {
	identity *Identity
	sub, aud string
	now      func() time.Time

	current string
	expires time.Time
}

func (c *credential) bearer() (string, error) {
	now := c.now()
	if c.current != "" && c.expires.Sub(now) >= spare {
		return c.current, nil
	}
	signed, err := c.identity.Sign(Claims{Sub: c.sub, Aud: c.aud, IssuedAt: now, Expires: now.Add(life)})
	if err != nil {
		return "", err
	}
	c.current, c.expires = signed, now.Add(life)
	return signed, nil
}
