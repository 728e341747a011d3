package conformance

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Libraries refuse to make most of what a forger sends, so tokens are made and
// read here by hand.

// object is a JSON object under construction.
type object map[string]any

// with returns a copy with changes; a nil value takes the member out.
func (o object) with(changes object) object {
	out := object{}
	for name, value := range o {
		out[name] = value
	}
	for name, value := range changes {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

func part(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // ours alone
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// seal makes a compact JWS with the algorithm that the header names.
func seal(header object, claims, key any) string {
	signed := part(header) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	var signature []byte
	var err error
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		var r, s *big.Int
		if r, s, err = ecdsa.Sign(rand.Reader, k, digest[:]); err == nil {
			const half = 32
			signature = append(r.FillBytes(make([]byte, half)), s.FillBytes(make([]byte, half))...)
		}
	case *rsa.PrivateKey:
		if header["alg"] == "PS256" {
			signature, err = rsa.SignPSS(rand.Reader, k, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
			break
		}
		signature, err = rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, digest[:])
	case []byte: // HS256
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte(signed))
		signature = mac.Sum(nil)
	case nil: // alg none
	}
	if err != nil {
		panic(fmt.Errorf("sign: %w", err)) // our own keys do not fail
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// unsealed is a JWS read without believing it.
type unsealed struct {
	header, claims map[string]any
	payload        []byte
	signed         string
	signature      []byte
}

func unseal(token string) (unsealed, error) {
	var u unsealed
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return u, errors.New("not three parts")
	}
	header, err1 := base64.RawURLEncoding.Strict().DecodeString(parts[0])
	payload, err2 := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	signature, err3 := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		return u, err
	}
	u.payload, u.signature, u.signed = payload, signature, parts[0]+"."+parts[1]
	return u, errors.Join(json.Unmarshal(header, &u.header), json.Unmarshal(payload, &u.claims))
}

// verify demands one of the published keys, of the kid and the algorithm that
// the header names.
func (u unsealed) verify(jwks []byte) error {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(jwks, &set); err != nil {
		return fmt.Errorf("read the JWKS: %w", err)
	}
	kid, _ := u.header["kid"].(string)
	found := set.Key(kid)
	if kid == "" || len(found) != 1 {
		return fmt.Errorf("%d published keys have the kid %q", len(found), kid)
	}
	digest := sha256.Sum256([]byte(u.signed))
	good := false
	switch k := found[0].Key.(type) {
	case *ecdsa.PublicKey:
		half := len(u.signature) / 2
		r, s := new(big.Int).SetBytes(u.signature[:half]), new(big.Int).SetBytes(u.signature[half:])
		good = u.header["alg"] == "ES256" && len(u.signature) == 64 && ecdsa.Verify(k, digest[:], r, s)
	case *rsa.PublicKey:
		good = u.header["alg"] == "RS256" && rsa.VerifyPKCS1v15(k, crypto.SHA256, digest[:], u.signature) == nil
	}
	if !good {
		return fmt.Errorf("the published key %q did not make this signature", kid)
	}
	return nil
}
