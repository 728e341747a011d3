package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

var errObject = errors.New("not a JSON object with members that occur once")

// object is a JSON object, its members under their exact names. encoding/json
// would let "Iss" fill iss, and would take the last of two members of one name
// where another parser takes the first.
type object map[string]json.RawMessage

func parseObject(raw []byte) (object, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, errObject
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errObject
	}
	o := object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errObject
		}
		key, ok := name.(string)
		if _, twice := o[key]; !ok || twice {
			return nil, errObject
		}
		o[key] = value
	}
	return o, nil
}

func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// text is the member as a string; false if it is missing, no string, or not
// exactly representable. Go decodes every lone surrogate to U+FFFD, so that two
// different names would become one.
func (o object) text(name string) (string, bool) {
	raw, ok := o[name]
	if !ok || raw[0] != '"' {
		return "", false
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}
