package words

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"countersign.dev/web/ui"
)

// An Agent is who asks, as far as we know.
type Agent struct {
	Name         string // may be empty
	NameVerified bool   // somebody registered the name here; otherwise it is the agent's own claim
	Host         string // of its issuer, whose keys signed the request: verified
}

// called is what a sentence may call the agent: a name nobody checked would
// let an agent put "Harbor Hotel" into our own heading.
func (a Agent) called() string {
	if a.Name != "" && a.NameVerified {
		return a.Name
	}
	return a.host()
}

// host is the address as machines compare it, so that a letter that only looks
// like another shows as what it is.
func (a Agent) host() string {
	ascii, err := idna.Punycode.ToASCII(a.Host)
	if err != nil {
		return a.Host
	}
	return ascii
}

// shown is the address as some browsers draw it, where that differs.
func (a Agent) shown() (string, bool) {
	drawn, err := idna.Punycode.ToUnicode(a.host())
	return drawn, err == nil && drawn != a.host()
}

// warnings are plain words about an agent nobody vouches for, and about a name
// or address that can be taken for another. An agent without any words of its
// own is never a blank (R12).
func (c Common) warnings(a Agent) []ui.Notice {
	var w []ui.Notice
	if a.Name == "" || !a.NameVerified {
		w = append(w, c.warning("ask.warning.unverified"))
	}
	if shown, differs := a.shown(); differs {
		w = append(w, c.warning("ask.warning.letters", "host", a.host(), "shown", shown))
	}
	if resembles(a.Name, c.BrandName) {
		w = append(w, c.warning("ask.warning.name", "agent", a.Name, "host", a.host()))
	}
	return w
}

// resembles tells whether one name stands within the other once case, spacing
// and the commonest tricks of spelling are taken away. It is not meant to catch
// everything: the verified host is always there to be read.
func resembles(agent, brand string) bool {
	a, b := skeleton(agent), skeleton(brand)
	const tooShort = 4
	if len(a) < tooShort || len(b) < tooShort {
		return false
	}
	return strings.Contains(a, b) || strings.Contains(b, a)
}

var tricks = strings.NewReplacer("0", "o", "1", "l", "i", "l", "5", "s", "rn", "m", "vv", "w",
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x") // Cyrillic

func skeleton(name string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	return tricks.Replace(letters)
}
