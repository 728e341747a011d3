package authority

import (
	"fmt"
	"io"
	"unicode"
)

// Twenty letters: no vowels, so that no code spells a word; no digits, so that
// none is taken for a letter. Eight of them are 34 bits (RFC 8628 §6.1).
const (
	userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength   = 8
)

// UserCode is the code a person compares or types, without its dash.
type UserCode string

// String returns the code as it is shown: XXXX-XXXX.
func (c UserCode) String() string {
	if len(c) != userCodeLength {
		return ""
	}
	return string(c[:4]) + "-" + string(c[4:])
}

func drawUserCode(random io.Reader) (UserCode, error) {
	// Bytes at or above the largest multiple of 20 are thrown away: taking them
	// modulo 20 would make the first letters likelier.
	const limit = 256 - 256%len(userCodeAlphabet)
	code := make([]byte, 0, userCodeLength)
	var buf [16]byte
	for {
		if _, err := io.ReadFull(random, buf[:]); err != nil {
			return "", fmt.Errorf("draw user code: %w", err)
		}
		for _, b := range buf {
			if int(b) >= limit {
				continue
			}
			code = append(code, userCodeAlphabet[int(b)%len(userCodeAlphabet)])
			if len(code) == userCodeLength {
				return UserCode(code), nil
			}
		}
	}
}

// maxUserCodeInput bounds what is looked at; pasted text is never longer.
const maxUserCodeInput = 64

// ParseUserCode reads a code as people type or paste it: any case, full-width
// letters, spaces, dashes of every kind or none. Look-alikes are refused, never
// guessed, so that no input finds another person's request.
func ParseUserCode(input string) (UserCode, bool) {
	if len(input) > maxUserCodeInput {
		return "", false
	}
	code := make([]byte, 0, userCodeLength)
	for _, r := range input {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '−' || r == '_' || r == '.' ||
			unicode.Is(unicode.Cf, r) {
			continue
		}
		if r >= 'Ａ' && r <= 'ｚ' { // full-width
			r = r - 'Ａ' + 'A'
		}
		if r >= 'a' && r <= 'z' {
			r = r - 'a' + 'A'
		}
		if r > unicode.MaxASCII || !inUserCodeAlphabet(byte(r)) || len(code) == userCodeLength {
			return "", false
		}
		code = append(code, byte(r))
	}
	if len(code) != userCodeLength {
		return "", false
	}
	return UserCode(code), true
}

func inUserCodeAlphabet(b byte) bool {
	for i := range len(userCodeAlphabet) {
		if userCodeAlphabet[i] == b {
			return true
		}
	}
	return false
}
