package alike

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Host is the address as machines compare it, so that a letter that only looks
// like another shows as what it is.
func Host(host string) string {
	ascii, err := idna.Punycode.ToASCII(host)
	if err != nil {
		return host
	}
	return ascii
}

// Drawn is the address as some browsers draw it, where that differs from Host.
func Drawn(host string) (string, bool) {
	drawn, err := idna.Punycode.ToUnicode(Host(host))
	return drawn, err == nil && drawn != Host(host)
}

// tooShort is a name that stands within many others by chance.
const tooShort = 4

// Names reports whether one name stands within the other once case, spacing and
// the commonest tricks of spelling are taken away.
func Names(one, other string) bool {
	a, b := skeleton(one), skeleton(other)
	if len(a) < tooShort || len(b) < tooShort {
		return false
	}
	return strings.Contains(a, b) || strings.Contains(b, a)
}

// Hosts reports whether two different addresses are drawn so much alike that one
// can pass for the other.
func Hosts(one, other string) bool {
	a, b := Host(one), Host(other)
	if a == b {
		return false
	}
	return look(a) == look(b)
}

// look is the skeleton of the address as it is drawn.
func look(host string) string {
	if drawn, ok := Drawn(host); ok {
		host = drawn
	}
	return skeleton(host)
}

var tricks = strings.NewReplacer("0", "o", "1", "l", "i", "l", "5", "s", "rn", "m", "vv", "w",
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і", "l") // Cyrillic

func skeleton(name string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	return tricks.Replace(letters)
}
