package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// A key set beyond these bounds is somebody's attempt to make us work.
const (
	maxKeySet = 64 << 10
	maxKeys   = 100
	minRSA    = 2048 // bits
	maxRSA    = 8192 // the work of a signature grows with the square
)

// Keys are the public keys somebody published, ready to verify with. The zero
// value holds none and verifies nothing.
type Keys struct {
	set []jose.JSONWebKey
}

// ParseKeys reads a JWKS (RFC 7517 §5). Keys of kinds it does not use are passed
// over, as the RFC asks. A set that holds private or symmetric key material is
// refused as a whole: whoever publishes it has lost it already.
func ParseKeys(jwks []byte) (Keys, error) {
	keys, spoiled, err := parseKeys(jwks)
	switch {
	case err != nil:
		return Keys{}, err
	case spoiled != nil:
		return Keys{}, spoiled
	case len(keys.set) == 0:
		return Keys{}, fmt.Errorf("%w: no P-256 key and no RSA key of 2048 bits or more in it", ErrKeys)
	}
	return keys, nil
}

// parseKeys reads a set as it is published. It may hold no key: whoever withdraws
// all of them wants nobody to speak for him any more. A key that must not be there
// is left out, takes no other with it, and is what spoiled says.
func parseKeys(jwks []byte) (keys Keys, spoiled, err error) {
	if len(jwks) > maxKeySet {
		return Keys{}, nil, fmt.Errorf("%w: more than %d KiB", ErrKeys, maxKeySet>>10)
	}
	top, err := parseObject(jwks)
	if err != nil {
		return Keys{}, nil, fmt.Errorf("%w: %v", ErrKeys, err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(top["keys"], &raw); err != nil || raw == nil {
		return Keys{}, nil, fmt.Errorf("%w: no list of keys in it", ErrKeys)
	}
	if len(raw) > maxKeys {
		return Keys{}, nil, fmt.Errorf("%w: more than %d keys", ErrKeys, maxKeys)
	}
	for _, one := range raw {
		key, usable, err := parseKey(one)
		if err != nil && spoiled == nil {
			spoiled = err
		}
		if usable {
			keys.set = append(keys.set, key)
		}
	}
	return keys, spoiled, nil
}

func parseKey(raw json.RawMessage) (key jose.JSONWebKey, usable bool, err error) {
	m, err := parseObject(raw)
	if err != nil {
		return key, false, fmt.Errorf("%w: %v", ErrKeys, err)
	}
	for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, there := m[secret]; there {
			return key, false, fmt.Errorf("%w: it holds private key material (%q)", ErrKeys, secret)
		}
	}
	// A revoked key verifies nothing by itself: whoever has it chooses every time
	// that it signs (ParseArchive).
	if _, there := m["revoked"]; there {
		return key, false, nil
	}
	if _, there := m["use"]; there {
		if use, err := m.text("use"); err != nil || use != "sig" {
			return key, false, nil // a key meant for encryption never verifies (M1)
		}
	}
	if listed, there := m["key_ops"]; there {
		var ops []string
		if json.Unmarshal(listed, &ops) != nil || !slices.Contains(ops, "verify") {
			return key, false, nil
		}
	}
	if err := json.Unmarshal(raw, &key); err != nil {
		return key, false, nil
	}
	return key, fits(key, jose.ES256) || fits(key, jose.RS256), nil
}

// fits says whether this kind of key may sign with this algorithm (M1). It is
// what stops a token from choosing a weaker reading of a key.
func fits(key jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(alg) {
		return false
	}
	switch public := key.Key.(type) {
	case *ecdsa.PublicKey:
		return alg == jose.ES256 && public.Curve == elliptic.P256()
	case *rsa.PublicKey:
		return alg == jose.RS256 && public.N.BitLen() >= minRSA && public.N.BitLen() <= maxRSA
	}
	return false
}

// candidates are the keys a token with this header may have been signed with.
// Without a kid they are all that fit.
func (k Keys) candidates(kid string, alg jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	var found []jose.JSONWebKey
	known := false
	for _, key := range k.set {
		if kid != "" && key.KeyID != kid {
			continue
		}
		known = true
		if fits(key, alg) {
			found = append(found, key)
		}
	}
	switch {
	case !known:
		return nil, fmt.Errorf("%w: kid %q", ErrUnknownKey, kid)
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %s does not fit the key", ErrAlgorithm, alg)
	}
	return found, nil
}
