package agenttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"
)

// Sign makes the signature over a token's first two parts.
type Sign func(input []byte) []byte

// Forge puts a compact JWS together whatever its parts say. A header or payload
// given as []byte or string is taken as it is, anything else as JSON.
func Forge(t testing.TB, header, payload any, sign Sign) string {
	t.Helper()
	input := encode(part(t, header)) + "." + encode(part(t, payload))
	return input + "." + encode(sign([]byte(input)))
}

// ES256 signs with the agent's own key.
func (p *PA) ES256(t testing.TB) Sign {
	t.Helper()
	key, _ := p.Key()
	return ES256(t, key)
}

// ES256 signs with the key.
func ES256(t testing.TB, key *ecdsa.PrivateKey) Sign {
	return func(input []byte) []byte {
		t.Helper()
		digest := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		signature := make([]byte, 64)
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature
	}
}

// RSA signs with PKCS #1 v1.5 over the hash: SHA-256 is RS256.
func RSA(t testing.TB, key *rsa.PrivateKey, hash crypto.Hash) Sign {
	return func(input []byte) []byte {
		t.Helper()
		h := hash.New()
		h.Write(input)
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
}

// HS256 signs with a secret, such as somebody's public key.
func HS256(secret []byte) Sign {
	return func(input []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(input)
		return mac.Sum(nil)
	}
}

// Fixed is a signature that covers nothing.
func Fixed(signature []byte) Sign {
	return func([]byte) []byte { return signature }
}

func part(t testing.TB, v any) []byte {
	t.Helper()
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
