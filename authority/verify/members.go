package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// members are the members of a JSON object under their exact names.
//
// Decoding into a struct would not do: encoding/json takes "Iss" for "iss" and
// the last of two members of one name, so two parsers could read two different
// issuers out of one signed token.
type members map[string]json.RawMessage

// parseObject reads exactly one JSON object and refuses a member that occurs
// twice, at any depth.
func parseObject(data []byte) (members, error) {
	// Go replaces broken UTF-8 silently, which would make unequal names equal.
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	var m members
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, errors.New("not a JSON object")
	}
	if m == nil {
		return nil, errors.New("null instead of a JSON object")
	}
	return m, refuseDuplicates(data)
}

// refuseDuplicates walks valid JSON. It keeps its own stack, so that deep
// nesting costs memory in proportion to the input and nothing else.
func refuseDuplicates(data []byte) error {
	type level struct {
		seen    map[string]bool // nil inside an array
		wantKey bool
	}
	var stack []level
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("not a JSON object")
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if top := len(stack) - 1; top >= 0 && stack[top].seen != nil {
			if stack[top].wantKey {
				name := token.(string) // the decoder allows nothing else here
				if stack[top].seen[name] {
					return fmt.Errorf("member %q occurs twice", name)
				}
				stack[top].seen[name], stack[top].wantKey = true, false
				continue
			}
			stack[top].wantKey = true
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{seen: map[string]bool{}, wantKey: true})
		case json.Delim('['):
			stack = append(stack, level{})
		}
	}
}

// text is a member that must be there and be a string with something in it.
func (m members) text(name string) (string, error) {
	raw, there := m[name]
	if !there {
		return "", fmt.Errorf("%w: %s", ErrIncomplete, name)
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", fmt.Errorf("%w: %s is not a string", ErrMalformed, name)
	}
	// Go reads every half of a surrogate pair as U+FFFD: two names would become one.
	if strings.ContainsRune(*s, utf8.RuneError) {
		return "", fmt.Errorf("%w: %s cannot be written exactly", ErrMalformed, name)
	}
	if *s == "" {
		return "", fmt.Errorf("%w: %s is empty", ErrIncomplete, name)
	}
	return *s, nil
}

// maxSeconds is the end of the year 9999; beyond it, a far future could turn into
// the past.
const maxSeconds = 253402300799

// instant is a NumericDate (RFC 7519 §2): seconds, with up to nine decimals, read
// exactly. A float would move the edges of a token's life, and an exponent or a
// sign has no use here. A number written as a string is refused.
func (m members) instant(name string) (time.Time, error) {
	raw, there := m[name]
	if !there {
		return time.Time{}, fmt.Errorf("%w: %s", ErrIncomplete, name)
	}
	bad := fmt.Errorf("%w: %s is not a time", ErrMalformed, name)
	whole, fraction, decimal := strings.Cut(string(raw), ".")
	if len(whole) > 12 || len(fraction) > 9 || !digits(whole) || decimal && !digits(fraction) {
		return time.Time{}, bad
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds > maxSeconds {
		return time.Time{}, bad
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return time.Time{}, bad
	}
	return time.Unix(seconds, nanos).UTC(), nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// count is a member that must be there and be a whole number from 0 on, written
// as one.
func (m members) count(name string) (int, error) {
	raw, there := m[name]
	if !there {
		return 0, fmt.Errorf("%w: %s", ErrIncomplete, name)
	}
	n, err := strconv.ParseUint(string(raw), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is not a count", ErrMalformed, name)
	}
	return int(n), nil
}

// object is a member that must be there and be an object.
func (m members) object(name string) (members, error) {
	raw, there := m[name]
	if !there {
		return nil, fmt.Errorf("%w: %s", ErrIncomplete, name)
	}
	inner, err := parseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrMalformed, name, err)
	}
	return inner, nil
}
