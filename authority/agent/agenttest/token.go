package agenttest

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are what a token says. The zero value is a good token that has just
// been made and lives for two minutes.
type Claims struct {
	Sub       string // "user-1" if empty
	Aud       string // the agent's Audience if empty
	IssuedAt  time.Time
	Expires   time.Time      // two minutes after IssuedAt if zero
	NotBefore time.Time      // left out if zero
	Extra     map[string]any // added last, and may replace the above
	Without   []string       // members left out
}

// Token makes a pa-jwt.
func (p *PA) Token(t testing.TB, c Claims) string {
	t.Helper()
	key, kid := p.Key()
	signing := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}
	signer, err := jose.NewSigner(signing, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(p.Members(c))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Members are the members of the token's payload.
func (p *PA) Members(c Claims) map[string]any {
	if c.IssuedAt.IsZero() {
		c.IssuedAt = p.Now()
	}
	if c.Expires.IsZero() {
		c.Expires = c.IssuedAt.Add(2 * time.Minute)
	}
	m := map[string]any{
		"iss": p.Issuer,
		"sub": or(c.Sub, "user-1"),
		"aud": or(c.Aud, p.Audience),
		"iat": c.IssuedAt.Unix(),
		"exp": c.Expires.Unix(),
		"jti": rand.Text(),
	}
	if !c.NotBefore.IsZero() {
		m["nbf"] = c.NotBefore.Unix()
	}
	maps.Copy(m, c.Extra)
	for _, name := range c.Without {
		delete(m, name)
	}
	return m
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
