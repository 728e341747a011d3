package verify

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxLife of a pa-jwt (M5).
const maxLife = 300 * time.Second

// Agent is a personal agent that proved who it is. The pair is the agent's user
// as the Brand knows him before any delegation (M4).
type Agent struct {
	Issuer  string    `json:"iss"`
	Subject string    `json:"sub"`
	Expires time.Time `json:"expires_at"`
}

// PAJWT verifies the pa-jwt of a personal agent whose published keys are given
// (PACT §3, M1 and M3–M5). The audience is the one the Brand's Provider assigned.
//
// It does not know which agents the Brand accepts (M2): the caller compares
// Agent.Issuer with the one whose keys it passed in.
func PAJWT(keys Keys, token, audience string, now time.Time) (Agent, Report, error) {
	var report Report
	if audience == "" {
		return Agent{}, nil, fmt.Errorf("%w: the Provider's audience must be given", ErrOptions)
	}
	if now.IsZero() {
		now = time.Now()
	}
	e, err := unseal(&report, keys, token, maxToken, func(envelope) error { return nil })
	if err != nil {
		return Agent{}, report, err
	}
	agent, err := readAgent(&report, e.claims, audience, now)
	if err != nil {
		return Agent{}, report, err
	}
	return agent, report, nil
}

// readAgent judges every claim and returns the first broken rule.
func readAgent(report *Report, claims members, audience string, now time.Time) (Agent, error) {
	var a Agent
	var first error
	judge := func(name string, err error, detail string) {
		if report.judge(name, err, detail); err != nil && first == nil {
			first = err
		}
	}
	var err error

	a.Issuer, err = claims.text("iss")
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrIssuer, err)
	}
	judge("iss", err, a.Issuer)

	err = exactly(claims, "aud", audience, ErrAudience)
	judge("aud", err, audience)

	a.Subject, err = claims.text("sub")
	if err == nil && utf8.RuneCountInString(a.Subject) > 256 {
		err = errors.New("longer than 256 characters")
	}
	if err == nil && strings.ContainsFunc(a.Subject, unicode.IsControl) {
		err = errors.New("a control character in it")
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrSubject, err)
	}
	judge("sub", err, fmt.Sprintf("the agent's user %q", a.Subject))

	issued, iatErr := notFromTheFuture(claims, now)
	judge("iat", iatErr, "signed "+stamp(issued))

	a.Expires, err = notExpired(claims, now, skew)
	judge("exp", err, "valid until "+stamp(a.Expires))

	if iatErr == nil && err == nil {
		judge("life", lifetime(issued, a.Expires), a.Expires.Sub(issued).String())
	}
	return a, first
}

// lifetime keeps a stolen pa-jwt short-lived, whatever the agent signs.
func lifetime(issued, expires time.Time) error {
	switch life := expires.Sub(issued); {
	case life > maxLife:
		return fmt.Errorf("%w: %s, more than %s", ErrLifetime, life, maxLife)
	case life <= 0:
		return fmt.Errorf("%w: it ends before it begins", ErrLifetime)
	}
	return nil
}
