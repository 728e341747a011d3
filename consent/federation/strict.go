package federation

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// longestAssertion is far above what anybody needs to say who they are.
const longestAssertion = 8 << 10

var errCompact = errors.New("not a compact JWS that is written in the one strict way")

// parts takes a compact JWS apart. go-jose is told to verify the very text; what
// is looked at beside it must not be another reading of that text, so everything
// that could be read in two ways is refused.
func parts(text string) (header, payload claims, err error) {
	if len(text) > longestAssertion || strings.Count(text, ".") != 2 {
		return nil, nil, errCompact
	}
	first, rest, _ := strings.Cut(text, ".")
	second, signature, _ := strings.Cut(rest, ".")
	if header, err = part(first); err != nil {
		return nil, nil, err
	}
	if payload, err = part(second); err != nil {
		return nil, nil, err
	}
	if _, err = unbase64(signature); err != nil {
		return nil, nil, err
	}
	return header, payload, nil
}

func part(text string) (claims, error) {
	raw, err := unbase64(text)
	if err != nil {
		return nil, err
	}
	return object(raw)
}

// unbase64 takes no padding, no left-over bits, and no line breaks, which Go's
// decoder passes over.
func unbase64(text string) ([]byte, error) {
	if text == "" || strings.ContainsAny(text, "\r\n") {
		return nil, errCompact
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errCompact
	}
	return raw, nil
}

// object reads exactly one JSON object, its members under their exact names, none
// of them twice: another parser would take the other one.
func object(raw []byte) (claims, error) {
	if !utf8.Valid(raw) {
		return nil, errCompact
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errCompact
	}
	c := claims{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, errCompact
		}
		name, _ := token.(string) // the decoder allows nothing else here
		var value any
		if err := d.Decode(&value); err != nil {
			return nil, errCompact
		}
		if _, twice := c[name]; twice {
			return nil, errCompact
		}
		c[name] = value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, errCompact
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errCompact
	}
	return c, nil
}

// text is the member as a string. Go makes U+FFFD of every lone surrogate, so two
// names would become one; they are refused.
func (c claims) text(name string) (string, bool) {
	s, ok := c[name].(string)
	return s, ok && !strings.ContainsRune(s, utf8.RuneError)
}

// whole is the member as whole seconds, as they are written in every JWT.
func (c claims) whole(name string) (int64, bool) {
	const end = 253402300799 // of the year 9999; beyond it, times wrap around
	number, ok := c[name].(json.Number)
	if !ok || strings.Trim(number.String(), "0123456789") != "" {
		return 0, false
	}
	n, err := number.Int64()
	return n, err == nil && n <= end
}
