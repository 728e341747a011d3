package federation

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign.dev/tenants"
	jose "github.com/go-jose/go-jose/v4"
)

const (
	assertionAge  = 5 * time.Minute // the longest life of an assertion
	longestJTI    = 256             // bytes
	longestSpoken = 64              // characters of a user code, however it is written
)

// refusedMembers would let an assertion bring its own key, or change what its
// signature covers.
var refusedMembers = []string{"jwk", "jku", "x5u", "x5c", "crit", "b64"}

// Page is a Brand's own login page, which signs who somebody is.
type Page struct {
	Brand    tenants.BrandID
	Issuer   string // what stands in iss, to the byte
	JWKSURI  string // where its public keys stand
	LoginURL string

	// AllowLoopbackHTTP lets a page on this machine go without TLS: development.
	AllowLoopbackHTTP bool
}

// Assertion is what a Brand's page said of a person, verified. Whoever takes it
// sees to it that ID is taken once, until Expires.
type Assertion struct {
	Identity           // AuthTime is when the page made it
	UserCode string    // the request it was made for, as it was written; may be empty
	ID       string    // jti
	Expires  time.Time // from when on it is refused, clock errors included
}

// Assertion verifies what a page of the Brand has posted, for the audience. It is
// an ES256 or RS256 JWT of five minutes at most; anything else is ErrInvalid. Only
// ErrUnreachable and ErrMisconfigured say nothing about it: the Brand's keys could
// not be had.
func (c *Client) Assertion(ctx context.Context, page Page, text, audience string) (Assertion, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	header, said, err := parts(text)
	if err != nil {
		return Assertion{}, invalid("the assertion is malformed")
	}
	for _, name := range refusedMembers {
		if _, there := header[name]; there {
			return Assertion{}, invalid("the assertion's header has a member that may not be there")
		}
	}
	a, err := said.assertion(page, audience, c.now())
	if err != nil {
		return Assertion{}, err
	}
	if err := c.pageKeys(page).prove(ctx, text); err != nil {
		return Assertion{}, err
	}
	return a, nil
}

// prove checks the signature, with keys fetched anew if none of those known made it.
func (k *pageKeys) prove(ctx context.Context, text string) error {
	jws, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		return invalid("the assertion is malformed, or signed otherwise than with ES256 or RS256")
	}
	keys, number, err := k.usable(ctx)
	if err != nil {
		return err
	}
	if _, ok := verifyWith(keys, jws); ok {
		return nil
	}
	if keys, ok := k.beyond(ctx, number); ok {
		if _, ok := verifyWith(keys, jws); ok {
			return nil
		}
	}
	return invalid("the assertion's signature does not verify")
}

// assertion reads the claims. What they say is to be believed only after the
// signature has verified.
func (c claims) assertion(page Page, audience string, now time.Time) (Assertion, error) {
	if iss, ok := c.text("iss"); !ok || iss != page.Issuer {
		return Assertion{}, invalid("the assertion is another issuer's")
	}
	// One string: with two audiences, an assertion could be sent on from one to
	// the other.
	if aud, ok := c.text("aud"); !ok || aud != audience {
		return Assertion{}, invalid("the assertion is for another audience")
	}
	issued, expires, err := c.life(now)
	if err != nil {
		return Assertion{}, err
	}
	id, ok := c.text("jti")
	if !ok || id == "" || len(id) > longestJTI {
		return Assertion{}, invalid("the assertion has no usable jti")
	}
	code, ok := c.text("user_code")
	if _, there := c["user_code"]; there && (!ok || code == "" || utf8.RuneCountInString(code) > longestSpoken) {
		return Assertion{}, invalid("the assertion has no usable user_code")
	}
	subject, ok := c.text("sub")
	if !ok || subject == "" || len(subject) > longestSubject || subject != strings.TrimSpace(subject) ||
		strings.ContainsFunc(subject, unicode.IsControl) {
		return Assertion{}, invalid("the assertion has no usable sub")
	}
	// Of what may name the person, email alone is part of the contract.
	account := claims{"email": c["email"]}.account(subject)
	return Assertion{
		Identity: Identity{Subject: subject, Account: account, AuthTime: issued, Issuer: page.Issuer},
		UserCode: code, ID: id, Expires: expires.Add(skew),
	}, nil
}

// life checks the times. What has not expired and lives five minutes at most is no
// older than that.
func (c claims) life(now time.Time) (issued, expires time.Time, err error) {
	iat, issuedOK := c.whole("iat")
	exp, expiresOK := c.whole("exp")
	nbf, notBeforeOK := c.whole("nbf")
	_, hasNotBefore := c["nbf"]
	if !issuedOK || !expiresOK || hasNotBefore && !notBeforeOK {
		return issued, expires, invalid("the assertion's times are missing or none")
	}
	issued, expires = time.Unix(iat, 0), time.Unix(exp, 0)
	life := expires.Sub(issued)
	switch {
	case issued.After(now.Add(skew)) || time.Unix(nbf, 0).After(now.Add(skew)):
		return issued, expires, invalid("the assertion comes from the future: one of the clocks is wrong")
	case !expires.After(now.Add(-skew)):
		return issued, expires, invalid("the assertion has expired")
	case life <= 0 || life > assertionAge:
		return issued, expires, invalid("the assertion lives longer than five minutes, or ends before it begins")
	}
	return issued, expires, nil
}

// ExaminePage looks at a Brand's own login page, for whoever sets it up. Whether
// its assertions are right only a login shows.
func (c *Client) ExaminePage(ctx context.Context, page Page) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 2*c.patience)
	defer cancel()
	return []Finding{
		{Field: "issuer", Value: shown(page.Issuer), State: fine},
		c.examinePageKeys(ctx, page), c.examineLoginURL(ctx, page),
	}
}

func (c *Client) examinePageKeys(ctx context.Context, page Page) Finding {
	f := Finding{Field: "jwks_uri", Value: shown(page.JWKSURI), State: bad}
	if !usable(page.JWKSURI, page.AllowLoopbackHTTP) {
		f.Code = "page.keys.nohttps"
		f.Say, f.Mend = "is no https URL", "publish the keys at one"
		return f
	}
	keys, err := c.fetchKeys(ctx, page.JWKSURI)
	if err == nil {
		keys, err = forAssertions(keys)
	}
	if err != nil {
		f.Say = strings.TrimPrefix(strings.TrimPrefix(err.Error(), ErrMisconfigured.Error()+": "), ErrUnreachable.Error()+": ")
		f.Code, f.About = "page.keys.unread", f.Say
		f.Mend = "publish a JWK set with a P-256 key (ES256) or an RSA key of 2048 bits or more (RS256), public halves only"
		return f
	}
	var ids []string
	for _, key := range keys {
		ids = append(ids, key.KeyID)
	}
	f.State, f.Value = fine, listed(ids)
	if len(keys) > 1 && slices.Contains(ids, "") {
		f.Code = "page.keys.kid"
		f.State, f.Say, f.Mend = warning, "hold several keys, one of them without kid", "give each key a kid, and name it in the header of assertions"
	}
	return f
}

// examineLoginURL asks the page as a stranger without a session does.
func (c *Client) examineLoginURL(ctx context.Context, page Page) Finding {
	f := Finding{Field: "login_url", Value: shown(page.LoginURL), State: warning}
	if !usable(page.LoginURL, page.AllowLoopbackHTTP) {
		f.Code = "page.login.nohttps"
		f.State, f.Say, f.Mend = bad, "is no https URL", "give the address of the page where people sign in"
		return f
	}
	status, err := c.status(ctx, page.LoginURL)
	switch {
	case err != nil:
		f.Code = "page.login.unreachable"
		f.Say, f.Mend = "cannot be reached from here, or redirects", "open it in a browser that is not signed in: it must end on the page where people sign in"
	case status >= 400:
		f.Code = "page.login.error"
		f.Say, f.Mend = "answers with an error", "open it in a browser that is not signed in"
	default:
		f.State = fine
	}
	return f
}
