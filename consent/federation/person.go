package federation

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestSubject = 255 // bytes; OpenID Connect Core, 2
	longestAccount = 100 // characters
)

// subject is the Brand's id of the person. A token without it is not the person's
// fault: the setting names a claim that this provider does not send.
func (c claims) subject(claim string) (string, error) {
	if claim == "" {
		claim = "sub"
	}
	var subject string
	switch value := c[claim].(type) {
	case string:
		subject = value
	case json.Number:
		// Some Brands count their customers. 77 and 7.7e1 would be two people.
		subject = value.String()
		if strings.Trim(subject, "0123456789") != "" {
			subject = ""
		}
	}
	// Ids that only differ in what nobody can see would be one person to an admin.
	if subject == "" || len(subject) > longestSubject || subject != strings.TrimSpace(subject) ||
		!utf8.ValidString(subject) || strings.ContainsFunc(subject, unicode.IsControl) {
		return "", fmt.Errorf("%w: the ID token has no usable claim %q", ErrMisconfigured, claim)
	}
	return subject, nil
}

// account is what the person knows themselves by. It decides nothing.
func (c claims) account(subject string) string {
	for _, name := range []string{"email", "preferred_username", "name"} {
		text, _ := c[name].(string)
		text = strings.TrimSpace(strings.Map(func(r rune) rune {
			// Control and direction marks could make one account read as another.
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, text))
		if text == "" {
			continue
		}
		if runes := []rune(text); len(runes) > longestAccount {
			return string(runes[:longestAccount-1]) + "…"
		}
		return text
	}
	return subject
}
