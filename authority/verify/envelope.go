package verify

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// maxToken bounds the work a stranger can cause: a longer token is refused
// before anything in it is parsed.
const maxToken = 8 << 10

// envelope is a compact JWS taken apart. Nothing in it is believed yet.
type envelope struct {
	header, claims members
	alg            jose.SignatureAlgorithm
	kid            string // empty when the header has none
	jws            *jose.JSONWebSignature
}

// open takes a token of at most so many bytes apart strictly: one token has one
// reading.
func open(token string, most int) (envelope, error) {
	if len(token) > most {
		return envelope{}, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(token), most)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return envelope{}, fmt.Errorf("%w: %d parts instead of 3", ErrMalformed, len(parts))
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = decodePart(part); err != nil {
			return envelope{}, fmt.Errorf("%w: part %d: %v", ErrMalformed, i+1, err)
		}
	}
	var e envelope
	var err error
	if e.header, err = parseObject(decoded[0]); err != nil {
		return envelope{}, fmt.Errorf("%w: header: %v", ErrMalformed, err)
	}
	if e.claims, err = parseObject(decoded[1]); err != nil {
		return envelope{}, fmt.Errorf("%w: claims: %v", ErrMalformed, err)
	}
	return e, nil
}

// decodePart is base64url without padding, line breaks or left-over bits; Go's
// decoder skips line breaks, so one token could be written in many ways.
func decodePart(part string) ([]byte, error) {
	if part == "" {
		return nil, fmt.Errorf("empty")
	}
	if strings.ContainsAny(part, "\r\n") {
		return nil, fmt.Errorf("line break in it")
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return nil, fmt.Errorf("not base64url")
	}
	return data, nil
}

// forbidden header members either let a token bring its own key or change what
// its signature covers (M1).
var forbidden = []string{"jwk", "jku", "x5u", "x5c", "crit", "b64"}

// readHeader applies M1 to the header and hands the token to go-jose.
func (e *envelope) readHeader(token string) error {
	for _, name := range forbidden {
		if _, there := e.header[name]; there {
			return fmt.Errorf("%w: %s", ErrHeader, name)
		}
	}
	alg, err := e.header.text("alg")
	if err != nil {
		return fmt.Errorf("%w: %v", ErrAlgorithm, err)
	}
	e.alg = jose.SignatureAlgorithm(alg)
	if e.alg != jose.ES256 && e.alg != jose.RS256 {
		return fmt.Errorf("%w: %q", ErrAlgorithm, alg)
	}
	if _, there := e.header["kid"]; there {
		if e.kid, err = e.header.text("kid"); err != nil {
			return err
		}
	}
	e.jws, err = jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return nil
}

// verifyWith tries the candidates. A verified envelope's claims may be believed.
func (e *envelope) verifyWith(candidates []jose.JSONWebKey) error {
	for _, key := range candidates {
		if _, err := e.jws.Verify(key.Key); err == nil {
			return nil
		}
	}
	return ErrSignature
}
