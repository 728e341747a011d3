package agent

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
)

const (
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192 // beyond, one signature costs us milliseconds
	minRSAExp  = 65537
	maxRSAExp  = 1<<31 - 1
	p256Bytes  = 32
)

// Why a published key set is not taken over.
var (
	errKeySet      = errors.New("answer is not a JWK set")
	errTooManyKeys = errors.New("JWK set has more than 100 keys")
	errKey         = errors.New("key cannot verify a pa-jwt")
)

// privateMembers show that somebody published a private key. It is no secret
// any more, so nothing it signs proves anything.
var privateMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// keySet is what an agent publishes, as far as it can verify a pa-jwt. It is
// never changed once made.
type keySet struct {
	keys []publicKey
}

// publicKey verifies signatures of one algorithm.
type publicKey struct {
	kid string // empty if it has none
	alg string
	id  keyID
	ec  *ecdsa.PublicKey // for ES256
	rsa *rsa.PublicKey   // for RS256
}

// keyID is the identity of a key: a hash of its material and its kid.
type keyID [sha256.Size]byte

// parseKeySet reads a JWK set. A key that cannot be used is left out and takes
// no other with it; a set that is no set at all, or too large, is an error.
func parseKeySet(raw []byte) (*keySet, error) {
	top, err := parseObject(raw)
	if err != nil {
		return nil, errKeySet
	}
	d := json.NewDecoder(bytes.NewReader(top["keys"]))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return nil, errKeySet
	}
	set := &keySet{}
	for count := 0; d.More(); count++ {
		// Counted while reading, so that a long list costs no memory.
		if count == maxKeys {
			return nil, errTooManyKeys
		}
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, errKeySet
		}
		if key, err := parseKey(one); err == nil {
			set.keys = append(set.keys, key)
		}
	}
	return set, nil
}

func parseKey(raw []byte) (publicKey, error) {
	o, err := parseObject(raw)
	if err != nil || !forVerifying(o) {
		return publicKey{}, errKey
	}
	var k publicKey
	if k.kid, err = optional(o, "kid"); err != nil {
		return publicKey{}, err
	}
	kty, _ := o.text("kty")
	var material []byte
	switch kty {
	case "EC":
		k.alg = es256
		k.ec, material, err = parseEC(o)
	case "RSA":
		k.alg = rs256
		k.rsa, material, err = parseRSA(o)
	default:
		err = errKey
	}
	if err != nil {
		return publicKey{}, err
	}
	// A key that says what it is for is used for nothing else.
	if alg, err := optional(o, "alg"); err != nil || alg != "" && alg != k.alg {
		return publicKey{}, errKey
	}
	k.id = sha256.Sum256(slices.Concat([]byte(k.alg), material, []byte(k.kid)))
	return k, nil
}

// forVerifying tells whether the key is public and meant for signatures.
func forVerifying(o object) bool {
	for _, name := range privateMembers {
		if o.has(name) {
			return false
		}
	}
	if use, err := optional(o, "use"); err != nil || o.has("use") && use != "sig" {
		return false
	}
	if !o.has("key_ops") {
		return true
	}
	var ops []string
	err := json.Unmarshal(o["key_ops"], &ops)
	return err == nil && slices.Contains(ops, "verify")
}

func parseEC(o object) (*ecdsa.PublicKey, []byte, error) {
	crv, _ := o.text("crv")
	x, errX := coordinate(o, "x")
	y, errY := coordinate(o, "y")
	if crv != "P-256" || errX != nil || errY != nil {
		return nil, nil, errKey
	}
	point := slices.Concat([]byte{4}, x, y)
	// Checks that the point is on the curve.
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, nil, errKey
	}
	return key, point, nil
}

// coordinate has its full length, leading zeros included (RFC 7518 §6.2.1.2).
func coordinate(o object, name string) ([]byte, error) {
	raw, err := number(o, name)
	if err != nil || len(raw) != p256Bytes {
		return nil, errKey
	}
	return raw, nil
}

func parseRSA(o object) (*rsa.PublicKey, []byte, error) {
	n, errN := number(o, "n")
	e, errE := number(o, "e")
	if errN != nil || errE != nil || len(n) > maxRSABits/8+1 || len(e) > 8 {
		return nil, nil, errKey
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	bits := modulus.BitLen()
	switch {
	case bits < minRSABits || bits > maxRSABits || modulus.Bit(0) == 0:
		return nil, nil, errKey
	case !exponent.IsInt64() || exponent.Int64() < minRSAExp || exponent.Int64() > maxRSAExp || exponent.Bit(0) == 0:
		return nil, nil, errKey
	}
	key := &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}
	return key, slices.Concat(modulus.Bytes(), exponent.Bytes()), nil
}

func number(o object, name string) ([]byte, error) {
	text, ok := o.text(name)
	if !ok || strings.ContainsAny(text, "\r\n") {
		return nil, errKey
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

func optional(o object, name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	text, ok := o.text(name)
	if !ok {
		return "", errKey
	}
	return text, nil
}

// prove finds the published key that signed t: the one with its kid, or else
// any of them. Several keys may bear one kid; those of the right kind are tried.
func (s *keySet) prove(t token) (keyID, error) {
	refusal := ErrUnknownKey
	digest := sha256.Sum256([]byte(t.signed))
	for i := range s.keys {
		k := &s.keys[i]
		if t.kid != "" && t.kid != k.kid {
			continue
		}
		if k.alg != t.alg {
			if t.kid != "" && refusal == ErrUnknownKey {
				refusal = ErrWrongKey
			}
			continue
		}
		if k.verifies(digest[:], t.signature) {
			return k.id, nil
		}
		// Without a kid the key may be one that we have not fetched yet.
		if t.kid != "" {
			refusal = ErrSignature
		}
	}
	return keyID{}, refusal
}

func (s *keySet) holds(id keyID) bool {
	for i := range s.keys {
		if s.keys[i].id == id {
			return true
		}
	}
	return false
}

func (k *publicKey) verifies(digest, signature []byte) bool {
	if k.rsa != nil {
		return rsa.VerifyPKCS1v15(k.rsa, crypto.SHA256, digest, signature) == nil
	}
	if len(signature) != 2*p256Bytes {
		return false
	}
	r := new(big.Int).SetBytes(signature[:p256Bytes])
	s := new(big.Int).SetBytes(signature[p256Bytes:])
	return ecdsa.Verify(k.ec, digest, r, s)
}
