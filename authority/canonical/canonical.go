// Package canonical writes JSON in its one canonical form (RFC 8785, JCS), so
// that two programs that hash or compare the same value agree to the byte.
package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrNoForm says that a text has no canonical form: it is not JSON, names a member
// twice, is not UTF-8, or holds a number that a program that counts in doubles
// would read as another.
var ErrNoForm = errors.New("no canonical form")

// safe is the largest integer up to which doubles tell all apart (RFC 7493 §2.2).
const safe = 1<<53 - 1

// JSON returns the canonical form of the text.
func JSON(text []byte) ([]byte, error) {
	value := jsontext.Value(bytes.Clone(text))
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("%w: not one JSON value, or a member twice", ErrNoForm)
	}
	// Both are asked: 1e20 is written out in the form, and a long integer of the
	// text is shortened in it.
	for _, t := range [][]byte{text, value} {
		if err := numbers(t); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// Of returns the canonical form of what v is as JSON.
func Of(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return JSON(text)
}

// Hash returns base64url SHA-256 of the canonical form: PACT's argsHash.
func Hash(text []byte) (string, error) {
	form, err := JSON(text)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// numbers refuses what the canonical form would round silently.
func numbers(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: not JSON", ErrNoForm)
		}
		n, ok := t.(json.Number)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(n.String(), 64)
		if err != nil || math.IsInf(f, 0) {
			return fmt.Errorf("%w: a number is too large", ErrNoForm)
		}
		if !strings.ContainsAny(n.String(), ".eE") && math.Abs(f) > safe {
			return fmt.Errorf("%w: an integer is beyond 2^53", ErrNoForm)
		}
	}
}
