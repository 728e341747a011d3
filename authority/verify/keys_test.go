package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// R28, P37: key material that must not be published, and sets built to hurt.
func TestKeySetsThatAreRefused(t *testing.T) {
	s := newSigner(t)
	many := strings.TrimSuffix(strings.Repeat(s.jwk("")+",", maxKeys+1), ",")
	for _, tt := range []struct{ name, jwks string }{
		{"private key", `{"keys":[` + s.jwk(`,"d":"AAAA"`) + `]}`},
		{"private key beside a public one", `{"keys":[` + s.jwk("") + `,` + s.jwk(`,"d":"AAAA"`) + `]}`},
		{"symmetric key", `{"keys":[{"kty":"oct","k":"AAAA"}]}`},
		{"none", `{"keys":[]}`},
		{"no list", `{}`},
		{"list of nulls", `{"keys":[null]}`},
		{"two lists", `{"keys":[],"keys":[` + s.jwk("") + `]}`},
		{"Keys", `{"Keys":[` + s.jwk("") + `]}`},
		{"encryption only", `{"keys":[` + s.jwk(`,"use":"enc"`) + `]}`},
		{"not on the curve", `{"keys":[{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `"}]}`},
		{"for another algorithm", `{"keys":[` + s.jwk(`,"alg":"ES512"`) + `]}`},
		{"P-384", `{"keys":[` + p384JWK(t) + `]}`},
		{"short RSA", `{"keys":[` + rsaJWK(t, 1024) + `]}`},
		{"too many", `{"keys":[` + many + `]}`},
		{"too big", `{"keys":[` + s.jwk(`,"note":"`+strings.Repeat("x", maxKeySet)+`"`) + `]}`},
		{"a page", `<html>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseKeys([]byte(tt.jwks)); !errors.Is(err, ErrKeys) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUnknownKindsOfKeyArePassedOver(t *testing.T) {
	s := newSigner(t)
	keys, err := ParseKeys([]byte(`{"keys":[{"kty":"XYZ","kid":"x"},` + s.jwk(`,"kid":"k1","use":"sig"`) + `]}`))
	if err != nil || len(keys.set) != 1 {
		t.Errorf("%d keys, %v", len(keys.set), err)
	}
}

// M1: which algorithm a key may sign with is the key's to say, not the token's.
func TestATokenCannotChooseAnotherReadingOfAKey(t *testing.T) {
	s := newSigner(t)
	keys := keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	token := s.sign(t, `{"alg":"RS256","kid":"k1","typ":"at+jwt"}`, marshal(t, delegationClaims()))
	_, _, err := Token(keys, token, Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	if !errors.Is(err, ErrAlgorithm) {
		t.Errorf("%v", err)
	}
}

func p384JWK(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"kty":"EC","crv":"P-384","x":%q,"y":%q}`, encode(point[1:49]), encode(point[49:]))
}

func rsaJWK(t *testing.T, bits int) string {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0") // the short key exists only to be refused
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"kty":"RSA","n":%q,"e":"AQAB"}`, encode(key.N.Bytes()))
}
