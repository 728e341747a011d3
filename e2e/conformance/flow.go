package conformance

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	deviceGrant  = "urn:ietf:params:oauth:grant-type:device_code"
	refreshGrant = "refresh_token"
)

// user is one of an agent's own users.
type user struct {
	t   *trial
	pa  *Agent
	sub string
}

func (t *trial) user() user { return user{t, t.PA, newSub()} }

// other is another of the same agent's users.
func (u user) other() user { return user{u.t, u.pa, newSub()} }

// at is the same user of the agent in another agent's hands.
func (u user) at(pa *Agent) user { return user{u.t, pa, u.sub} }

// there is the same user of the same agent, at the other Brand.
func (u user) there() user { return user{u.t, u.pa.naming(u.t.OtherAudience), u.sub} }

// bearer is a fresh pa-jwt.
func (u user) bearer() string { return u.pa.sign(u.sub, nil) }

// post sends a form with the right client_id.
func (u user) post(address string, values url.Values) answer {
	if !values.Has("client_id") {
		values.Set("client_id", u.pa.Issuer)
	}
	return u.t.form(address, u.bearer(), values)
}

// started is a device authorization answer.
type started struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URI        string `json:"verification_uri"`
	Link       string `json:"verification_uri_complete"`
	ExpiresIn  int    `json:"expires_in"`
	Interval   int    `json:"interval"`

	by user
}

// ask begins a device flow that must begin.
func (u user) ask(scopes ...string) started {
	a := u.post(u.t.brand.oauth.DeviceEndpoint, url.Values{"scope": {strings.Join(scopes, " ")}})
	a.is(u.t, "device authorization for "+strings.Join(scopes, " "), http.StatusOK)
	s := started{by: u}
	a.json(u.t, &s)
	return s
}

// poll asks once for the token, as whoever u is.
func (s started) poll(u user) answer {
	return u.post(u.t.brand.oauth.TokenEndpoint, url.Values{"grant_type": {deviceGrant}, "device_code": {s.DeviceCode}})
}

// paid is a token answer.
type paid struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`

	by   user
	raw  answer
	read unsealed
}

// pays demands a token.
func (a answer) pays(u user, what string) paid {
	a.is(u.t, what, http.StatusOK)
	p := paid{by: u, raw: a}
	a.json(u.t, &p)
	if p.AccessToken == "" || p.RefreshToken == "" {
		u.t.fail("%s: 200 without access_token and refresh_token", what)
	}
	var err error
	if p.read, err = unseal(p.AccessToken); err != nil {
		u.t.fail("%s: the access token is no JWT: %v", what, err)
	}
	return p
}

func (p paid) claim(name string) string {
	text, _ := p.read.claims[name].(string)
	return text
}

// refresh presents a refresh token, as whoever u is.
func (u user) refresh(token string, scopes ...string) answer {
	form := url.Values{"grant_type": {refreshGrant}, "refresh_token": {token}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	return u.post(u.t.brand.oauth.TokenEndpoint, form)
}

func (u user) revoke(token string) answer {
	return u.post(u.t.brand.oauth.RevocationEndpoint, url.Values{"token": {token}})
}

// Decision is what a person is asked to do with a request.
type Decision struct {
	Deny   bool
	Untick []string // scopes; the others stay as they are offered
}

// People are those who sign in at the Brand and decide.
type People interface {
	// Decide opens the link as the person, counted from 0, and answers.
	Decide(ctx context.Context, link string, person int, d Decision) error
	// Count is how many there are.
	Count() int
}

// decides has a person answer.
func (s started) decides(person int, d Decision) {
	t := s.by.t
	t.needs(t.People != nil && t.People.Count() > 0, "somebody who signs in at the Brand")
	t.needs(person < t.People.Count(), "a second person who signs in at the Brand")
	if err := t.People.Decide(t.ctx, s.Link, person, d); err != nil {
		t.fail("the person could not answer: %v", err)
	}
}

// granted is a delegation from the question to the first token.
func (u user) granted(person int, scopes ...string) paid {
	s := u.ask(scopes...)
	s.decides(person, Decision{})
	return s.poll(u).pays(u, "the poll after the approval")
}

// scopes are the first n of the card.
func (t *trial) scopes(n int) []string {
	t.needs(len(t.brand.document.scopes) >= n, "a card with more scopes")
	return t.brand.document.scopes[:n:n]
}

// isSet compares lists of scopes without their order.
func isSet(scope string, want ...string) bool {
	got := strings.Fields(scope)
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	return slices.Equal(got, want)
}

// waits lets time pass, where a rule speaks of it.
func (t *trial) waits(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}
