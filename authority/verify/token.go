package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options say what a delegation token is compared with.
type Options struct {
	Issuer   string // the issuer of the Brand's OAuth metadata, byte for byte
	Audience string // the Brand's interface URL, byte for byte

	// Agent is the iss of the pa-jwt sent beside the token, after that pa-jwt
	// was verified. A token without it is refused, because a token shown by
	// somebody else is a stolen one (M18).
	Agent string
	// Alone judges a token without the pa-jwt, for a look at a token on file.
	// It must never be set where a token opens anything.
	Alone bool

	Now time.Time // zero: the present
}

// Delegation is what a User allowed an agent to do, as far as the token says.
type Delegation struct {
	ID      string    `json:"jti"`       // the identity of this token
	Grant   string    `json:"grant_id"`  // what the User manages and revokes
	User    string    `json:"sub"`       // the User's id at the Brand
	Agent   string    `json:"client_id"` // the agent it was issued to
	Scopes  []string  `json:"scopes"`
	Issued  time.Time `json:"issued_at"`
	Expires time.Time `json:"expires_at"`
	// Details say more exactly what the scopes allow, each an object with a type
	// that the Brand registered (RFC 9396); nil: the scopes stand by themselves. A
	// scope that comes with details allows what they say and no more.
	Details []json.RawMessage `json:"authorization_details,omitempty"`
	// Status is where a status list says whether it still stands; nil: nowhere.
	Status *StatusRef `json:"status,omitempty"`
}

// Token verifies a delegation token (PACT §5.4). On a refusal the Delegation is
// empty and the error is the first rule broken; the Report is always complete.
func Token(keys Keys, token string, opts Options) (Delegation, Report, error) {
	var report Report
	if opts.Issuer == "" || opts.Audience == "" {
		return Delegation{}, nil, fmt.Errorf("%w: issuer and audience must be given", ErrOptions)
	}
	if opts.Agent == "" && !opts.Alone {
		return Delegation{}, nil, fmt.Errorf("%w: the agent that showed the token must be given", ErrOptions)
	}
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	e, err := unseal(&report, keys, token, maxToken, readTokenHeader)
	if err != nil {
		return Delegation{}, report, err
	}
	d, err := readDelegation(&report, e.claims, opts)
	if err != nil {
		return Delegation{}, report, err
	}
	return d, report, nil
}

// Allows reports whether the person allowed this.
func (d Delegation) Allows(scope string) bool { return slices.Contains(d.Scopes, scope) }

// readTokenHeader is what the header of a delegation token must say beyond M1.
func readTokenHeader(e envelope) error {
	if err := tokenType(e.header, "at+jwt"); err != nil {
		return err
	}
	if e.kid == "" {
		return fmt.Errorf("%w: the header names none", ErrUnknownKey)
	}
	return nil
}

// unseal makes the checks that all kinds of token share, in the one safe
// order: shape, header, key, signature.
func unseal(report *Report, keys Keys, token string, most int, header func(envelope) error) (envelope, error) {
	e, err := open(token, most)
	if report.judge("shape", err, "three parts of strict base64url JSON, no member twice") != nil {
		return envelope{}, err
	}
	err = e.readHeader(token)
	if err == nil {
		err = header(e)
	}
	if report.judge("header", err, "alg "+string(e.alg)+", brings no key of its own") != nil {
		return envelope{}, err
	}
	candidates, err := keys.candidates(e.kid, e.alg)
	if report.judge("key", err, keyDetail(e.kid)) != nil {
		return envelope{}, err
	}
	err = e.verifyWith(candidates)
	if report.judge("signature", err, "made with the published key") != nil {
		return envelope{}, err
	}
	return e, nil
}

func keyDetail(kid string) string {
	if kid == "" {
		return "no kid; all published keys are tried"
	}
	return fmt.Sprintf("kid %q is published", kid)
}

// tokenType keeps other JWTs of the same issuer – receipts, status lists – from
// passing for tokens (RFC 9068 §4). The long form is the same media type.
func tokenType(header members, want string) error {
	typ, err := header.text("typ")
	if err != nil {
		return fmt.Errorf("%w: %v", ErrType, err)
	}
	if typ != want && typ != "application/"+want {
		return fmt.Errorf("%w: %q instead of %s", ErrType, typ, want)
	}
	return nil
}

// readDelegation judges every claim and returns the first broken rule.
func readDelegation(report *Report, claims members, opts Options) (Delegation, error) {
	var d Delegation
	var first error
	judge := func(name string, err error, detail string) {
		if report.judge(name, err, detail); err != nil && first == nil {
			first = err
		}
	}
	var err error

	err = exactly(claims, "iss", opts.Issuer, ErrIssuer)
	judge("iss", err, opts.Issuer)

	err = exactly(claims, "aud", opts.Audience, ErrAudience)
	judge("aud", err, opts.Audience)

	d.Expires, err = notExpired(claims, opts.Now, 0)
	judge("exp", err, "valid until "+stamp(d.Expires))

	d.Issued, err = notFromTheFuture(claims, opts.Now)
	judge("iat", err, "issued "+stamp(d.Issued))

	d.Agent, err = claims.text("client_id")
	if err == nil && !opts.Alone && d.Agent != opts.Agent {
		err = fmt.Errorf("%w: %q, but %q showed it", ErrNotTransferable, d.Agent, opts.Agent)
	}
	if err == nil && opts.Alone {
		report.skip("client_id", fmt.Sprintf("issued to %q; no pa-jwt to compare with", d.Agent))
	} else {
		judge("client_id", err, d.Agent+", which is who showed it")
	}

	d.User, err = claims.text("sub")
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrSubject, err)
	}
	judge("sub", err, fmt.Sprintf("acts for %q", d.User))

	d.Scopes, err = scopes(claims)
	judge("scope", err, strings.Join(d.Scopes, " "))

	d.Grant, err = claims.text("grant_id")
	judge("grant_id", err, d.Grant)

	d.ID, err = claims.text("jti")
	judge("jti", err, d.ID)

	d.Details, err = details(claims)
	switch {
	case err != nil:
		judge("authorization_details", err, "")
	case d.Details != nil:
		judge("authorization_details", nil, fmt.Sprintf("%d, of what the scopes allow", len(d.Details)))
	}

	d.Status, err = statusRef(claims)
	switch {
	case err != nil:
		judge("status", err, "")
	case d.Status != nil:
		judge("status", nil, fmt.Sprintf("stands at index %d of %s", d.Status.Index, d.Status.URI))
	}

	return d, first
}

// exactly compares byte for byte. A list is refused even when it holds only the
// right value: a token for two audiences can be replayed from one to the other
// (M3, M17).
func exactly(claims members, name, want string, refusal error) error {
	got, err := claims.text(name)
	if err != nil {
		return fmt.Errorf("%w: %w", refusal, err)
	}
	if got != want {
		return fmt.Errorf("%w: %q instead of %q", refusal, got, want)
	}
	return nil
}

// scopes is the list of RFC 6749 §3.3: ids of visible ASCII, one space between.
func scopes(claims members) ([]string, error) {
	scope, err := claims.text("scope")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScope, err)
	}
	ids := strings.Split(scope, " ")
	for _, id := range ids {
		bad := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }
		if id == "" || strings.ContainsFunc(id, bad) {
			return nil, fmt.Errorf("%w: scope is not a list of ids", ErrScope)
		}
	}
	return ids, nil
}
