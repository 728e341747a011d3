package agent

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The times of M5.
const (
	skew    = 30 * time.Second
	maxLife = 300 * time.Second
)

const (
	minURL     = 8
	maxURL     = 512 // with a sub of 1 KiB it still fits an index
	maxSubject = 256
	// The end of the year 9999: beyond it, times wrap around.
	maxSeconds = 253402300799
)

// claims are what a pa-jwt says.
type claims struct {
	issuer, subject, audience string
	issued, expires           time.Time
	notBefore                 time.Time // zero if not given
}

func readClaims(o object) (claims, error) {
	var c claims
	var ok bool
	// The database is asked for iss: what it could not hold is refused here and
	// does not become an error of the database.
	if c.issuer, ok = o.text("iss"); !ok || !plainURL(c.issuer) {
		return claims{}, ErrIssuer
	}
	if c.subject, ok = o.text("sub"); !ok || !plainSubject(c.subject) {
		return claims{}, ErrSubject
	}
	// An array, even of one, is refused: with two audiences a token could be
	// sent on from one Provider to the other.
	if c.audience, ok = o.text("aud"); !ok || c.audience == "" {
		return claims{}, ErrAudience
	}
	if c.issued, ok = o.instant("iat"); !ok {
		return claims{}, ErrTimes
	}
	if c.expires, ok = o.instant("exp"); !ok {
		return claims{}, ErrTimes
	}
	if o.has("nbf") {
		if c.notBefore, ok = o.instant("nbf"); !ok {
			return claims{}, ErrTimes
		}
	}
	return c, nil
}

// valid applies M3 and M5. It is asked again each time a token comes.
func (c claims) valid(now time.Time, audience string) error {
	life := c.expires.Sub(c.issued)
	switch {
	case c.audience != audience:
		return ErrAudience
	case c.issued.After(now.Add(skew)) || c.notBefore.After(now.Add(skew)):
		return ErrEarly
	case !c.expires.After(now.Add(-skew)):
		return ErrExpired
	case life <= 0 || life > maxLife:
		return ErrLifetime
	}
	return nil
}

func (c claims) caller() Caller {
	return Caller{Issuer: c.issuer, Subject: c.subject, Expires: c.expires}
}

// plainURL bounds what may stand in the table agents, or be looked up there.
func plainURL(s string) bool {
	if len(s) < minURL || len(s) > maxURL {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func plainSubject(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= maxSubject && !strings.ContainsFunc(s, unicode.IsControl)
}

// instant is a NumericDate: seconds, with up to nine decimals, read exactly. A
// float would move the edges of M5, and an exponent or a sign has no use here.
func (o object) instant(name string) (time.Time, bool) {
	whole, fraction, decimal := strings.Cut(string(o[name]), ".")
	if len(whole) > 12 || len(fraction) > 9 || !digits(whole) || decimal && !digits(fraction) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds > maxSeconds {
		return time.Time{}, false
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(seconds, nanos), true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
