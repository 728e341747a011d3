package verify

import (
	"fmt"
	"time"

	"countersign.dev/authority/statuslist"
)

// maxStatusList bounds a Status List Token; the list in it has bounds of its own.
const maxStatusList = 256 << 10

// statusListType is the typ of a Status List Token.
const statusListType = "statuslist+jwt"

// StatusRef is where a token's status stands.
type StatusRef struct {
	URI   string `json:"uri"`
	Index int    `json:"idx"`
}

// statusRef reads the status claim; nil where a token has none, or none that
// speaks of a status list.
func statusRef(claims members) (*StatusRef, error) {
	if _, there := claims["status"]; !there {
		return nil, nil
	}
	status, err := claims.object("status")
	if err != nil {
		return nil, err
	}
	if _, there := status["status_list"]; !there {
		return nil, nil
	}
	list, err := status.object("status_list")
	if err != nil {
		return nil, err
	}
	var ref StatusRef
	if ref.URI, err = list.text("uri"); err != nil {
		return nil, err
	}
	ref.Index, err = list.count("idx")
	return &ref, err
}

// StatusList is what a Brand said of all tokens that name one list, at one
// moment. The zero value says nothing, and so refuses every token.
type StatusList struct {
	URI     string
	Issued  time.Time
	Expires time.Time     // from then on it says nothing
	TTL     time.Duration // a newer one should be fetched after so long; 0: not said
	answers statuslist.List
}

// ParseStatusList verifies a Status List Token (IETF draft
// draft-ietf-oauth-status-list) that was fetched or saved. The keys are the
// Brand's, as for a delegation token. A list without an end is refused: somebody
// could go on showing it for ever.
func ParseStatusList(keys Keys, token string, now time.Time) (StatusList, Report, error) {
	var report Report
	if now.IsZero() {
		now = time.Now()
	}
	e, err := unseal(&report, keys, token, maxStatusList, func(e envelope) error {
		return tokenType(e.header, statusListType)
	})
	if err != nil {
		return StatusList{}, report, fmt.Errorf("%w: %w", ErrStatusList, err)
	}
	l, err := readStatusList(&report, e.claims, now)
	if err != nil {
		return StatusList{}, report, fmt.Errorf("%w: %w", ErrStatusList, err)
	}
	return l, report, nil
}

// readStatusList judges every claim and returns the first broken rule.
func readStatusList(report *Report, claims members, now time.Time) (StatusList, error) {
	var l StatusList
	var first error
	judge := func(name string, err error, detail string) {
		if report.judge(name, err, detail); err != nil && first == nil {
			first = err
		}
	}
	var err error

	l.URI, err = claims.text("sub")
	judge("sub", err, "the list at "+l.URI)

	l.Issued, err = notFromTheFuture(claims, now)
	judge("iat", err, fmt.Sprintf("as of %s, %s ago", stamp(l.Issued), now.Sub(l.Issued).Truncate(time.Second)))

	l.Expires, err = notExpired(claims, now, 0)
	judge("exp", err, "says so until "+stamp(l.Expires))

	if _, there := claims["ttl"]; there {
		var seconds int
		seconds, err = claims.count("ttl")
		l.TTL = time.Duration(seconds) * time.Second
		judge("ttl", err, "to be fetched again after "+l.TTL.String())
	}

	l.answers, err = readAnswers(claims)
	judge("list", err, fmt.Sprintf("%d indexes", l.answers.Len()))
	return l, first
}

func readAnswers(claims members) (statuslist.List, error) {
	list, err := claims.object("status_list")
	if err != nil {
		return statuslist.List{}, err
	}
	switch bits, err := list.count("bits"); {
	case err != nil:
		return statuslist.List{}, err
	case bits != statuslist.Bits:
		return statuslist.List{}, fmt.Errorf("%w: %d bits an index, not %d", ErrMalformed, bits, statuslist.Bits)
	}
	text, err := list.text("lst")
	if err != nil {
		return statuslist.List{}, err
	}
	return statuslist.Decode(text)
}

// Judge says what the list has to say of a delegation that Token returned: nil
// where it still stands, ErrRevoked, ErrSuspended, or ErrStatusList where the
// list does not tell, which is no less a refusal. One list may judge any number
// of tokens until it expires.
func (l StatusList) Judge(d Delegation, now time.Time) (Report, error) {
	if now.IsZero() {
		now = time.Now()
	}
	var report Report
	err := l.judge(d, now)
	return report, report.judge("status", err, "good as of "+stamp(l.Issued))
}

func (l StatusList) judge(d Delegation, now time.Time) error {
	switch {
	case !now.Before(l.Expires):
		return fmt.Errorf("%w: %w: at %s, and it is %s", ErrStatusList, ErrExpired, stamp(l.Expires), stamp(now))
	case d.Status == nil:
		return fmt.Errorf("%w: the token names none", ErrStatusList)
	case d.Status.URI != l.URI:
		return fmt.Errorf("%w: it is the one at %q, and the token names %q", ErrStatusList, l.URI, d.Status.URI)
	}
	status, ok := l.answers.At(d.Status.Index)
	switch {
	case !ok:
		return fmt.Errorf("%w: there is no index %d in it", ErrStatusList, d.Status.Index)
	case status == statuslist.Valid:
		return nil
	case status == statuslist.Suspended:
		return ErrSuspended
	case status == statuslist.Invalid:
		return ErrRevoked
	}
	return fmt.Errorf("%w: it says %v, which means nothing here", ErrStatusList, status)
}
