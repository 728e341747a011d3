package agent

import (
	"encoding/base64"
)

// The only algorithms there are (M1). Each belongs to one kind of key.
const (
	es256 = "ES256"
	rs256 = "RS256"
)

// forbiddenMembers would let a token bring its own key, or change what its
// signature covers.
var forbiddenMembers = []string{"jwk", "jku", "x5u", "x5c", "crit", "b64"}

// token is a pa-jwt taken apart. Nothing in it is to be believed before its
// signature has verified.
type token struct {
	alg, kid  string // kid is empty if there is none
	claims    claims
	signed    string // what the signature covers
	signature []byte
}

// parse takes a compact JWS apart. One token has one way of being written:
// base64url without padding, line breaks or left-over bits.
func parse(text string) (token, error) {
	if len(text) > maxToken {
		return token{}, ErrTooLong
	}
	first, second, ok := dots(text)
	if !ok {
		return token{}, ErrMalformed
	}
	t := token{signed: text[:second]}
	header, err := decodeObject(text[:first])
	if err != nil {
		return token{}, err
	}
	if t.alg, t.kid, err = readHeader(header); err != nil {
		return token{}, err
	}
	payload, err := decodeObject(text[first+1 : second])
	if err != nil {
		return token{}, err
	}
	if t.claims, err = readClaims(payload); err != nil {
		return token{}, err
	}
	if t.signature, err = decode(text[second+1:]); err != nil {
		return token{}, err
	}
	return t, nil
}

// dots finds the two dots of a compact JWS. It looks at each byte once and
// allocates nothing: splitting a token of a million dots is an attack.
func dots(text string) (first, second int, ok bool) {
	first, second = -1, -1
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.' && first < 0:
			first = i
		case c == '.' && second < 0:
			second = i
		case c == '.':
			return 0, 0, false
		case !base64url(c):
			return 0, 0, false
		}
	}
	return first, second, second >= 0
}

// base64url is asked for each byte because Go's decoder skips line breaks.
func base64url(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func decode(part string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || len(raw) == 0 {
		return nil, ErrMalformed
	}
	return raw, nil
}

func decodeObject(part string) (object, error) {
	raw, err := decode(part)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(raw)
	if err != nil {
		return nil, ErrMalformed
	}
	return o, nil
}

func readHeader(header object) (alg, kid string, err error) {
	for _, name := range forbiddenMembers {
		if header.has(name) {
			return "", "", ErrHeader
		}
	}
	alg, ok := header.text("alg")
	if !ok || alg != es256 && alg != rs256 {
		return "", "", ErrAlgorithm
	}
	if !header.has("kid") {
		return alg, "", nil
	}
	if kid, ok = header.text("kid"); !ok || kid == "" {
		return "", "", ErrMalformed
	}
	return alg, kid, nil
}
