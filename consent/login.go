package consent

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"countersign.dev/consent/federation"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
)

// maxLogins bounds how often one journey may go to the IdP: two sites that send
// a browser to each other for ever must be stopped somewhere (B56).
const maxLogins = 20

// login is GET {pages}/login: it remembers in this browser what the login is
// for, and leaves for the Brand's IdP. It is a link, not a form: Chromium holds
// every redirect of a form post against form-action.
func (h *Handler) login(v *visit) error {
	query := v.r.URL.Query()
	if !v.navigates() {
		return problem{kind: words.NotFound}
	}
	if page, own, err := v.ownPage(); err != nil {
		return err
	} else if own {
		return v.toPage(page, query)
	}
	if err := v.keep(); err != nil {
		return err
	}
	id := query.Get("j")
	if id == "" {
		var err error
		if id, err = v.beginJourney(query.Get("user_code")); err != nil {
			return err
		}
	}
	j, err := h.journeys.find(v.ctx(), v.brand.ID, v.browser, id)
	if err != nil {
		return err
	}
	v.adopt(j)
	change := query.Has("switch")
	fresh := change
	if j.RequestID != nil {
		s, err := v.stand(j)
		if err != nil {
			return err
		}
		needed := s.step == stepLogin || s.step == stepTrouble || s.step == stepSuspended
		wanted := change && (s.step == stepAsk || s.step == stepWrongUser)
		if !needed && !wanted { // nothing to log in for
			return v.redirect(v.pages("consent", "j", j.ID))
		}
		fresh = fresh || needsFresh(v.brand, s.question)
	}
	if j.Logins >= maxLogins {
		return problem{kind: words.LoginRefused, retry: v.pages("device")}
	}
	return v.depart(j, fresh)
}

func (v *visit) beginJourney(userCode string) (string, error) {
	if userCode == "" {
		return v.h.journeys.begin(v.ctx(), v.brand.ID, v.browser, nil, v.locales)
	}
	request, _, err := v.h.Authority.Find(v.ctx(), v.brand.ID, userCode, v.visitor())
	if err != nil {
		return "", err
	}
	return v.h.journeys.begin(v.ctx(), v.brand.ID, v.browser, &request, v.locales)
}

// adopt speaks the language the journey began in.
func (v *visit) adopt(j journey) {
	if v.locales == "" && j.UILocales != "" {
		v.locales = j.UILocales
		v.speak()
	}
}

// depart sends the browser to the IdP.
func (v *visit) depart(j journey, fresh bool) error {
	connection, err := v.connection()
	if err != nil {
		return err
	}
	state := rand.Text() + rand.Text()
	nonce, verifier, err := v.secrets(state)
	if err != nil {
		return err
	}
	to, err := v.h.Federation.Begin(v.ctx(), connection, federation.BeginParams{
		RedirectURI: v.callbackURL(), State: state, Nonce: nonce, Verifier: verifier,
		Fresh: fresh, UILocales: v.lang.Tag,
	})
	if err != nil {
		v.h.Log.WarnContext(v.ctx(), "login connection failed", "brand", string(v.brand.ID), "error", err)
		return problem{kind: words.LoginUnreachable, retry: v.pages("login", "j", j.ID), cause: err}
	}
	if err := v.h.journeys.depart(v.ctx(), v.brand.ID, v.browser, j.ID, state, fresh); err != nil {
		return err
	}
	return v.redirect(to)
}

// secrets are the nonce and the PKCE verifier of a login. They follow from the
// state under a key outside the database, so no row can finish somebody's login.
func (v *visit) secrets(state string) (nonce, verifier string, err error) {
	n, err := v.h.MAC(v.brand.ID, "login-nonce", []byte(state))
	if err != nil {
		return "", "", fmt.Errorf("derive nonce: %w", err)
	}
	p, err := v.h.MAC(v.brand.ID, "login-verifier", []byte(state))
	if err != nil {
		return "", "", fmt.Errorf("derive verifier: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(n), base64.RawURLEncoding.EncodeToString(p), nil
}

func (v *visit) callbackURL() string {
	return v.h.origin + "/b/" + string(v.brand.ID) + "/callback"
}

// live is how the Brand's people log in now.
func (v *visit) live() (tenants.LoginConnection, error) {
	l, err := v.h.logins.Login(v.ctx(), v.brand.ID)
	if errors.Is(err, tenants.ErrNoLogin) {
		return l, problem{kind: words.LoginUnreachable, retry: v.pages("device"), cause: err}
	}
	return l, err
}

// connection is the Brand's OpenID provider.
func (v *visit) connection() (federation.Connection, error) {
	l, err := v.live()
	if err != nil {
		return federation.Connection{}, err
	}
	if l.Kind == tenants.KindAssertion { // since this login began
		return federation.Connection{}, problem{kind: words.StaleForm, retry: v.pages("device")}
	}
	return federation.Connection{
		Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret,
		SubjectClaim: l.SubjectClaim, Scopes: l.Scopes, AllowLoopbackHTTP: v.h.DevHTTP,
		Key: l.Key, Prompt: l.Prompt, MaxAge: l.MaxAge,
	}, nil
}

// signInURL is where the person goes from a page of ours to sign in: straight to
// the Brand's own page, or to the door that leads to its provider. It says at once
// that nobody can log in, instead of after the person has read and tapped (B10).
func (v *visit) signInURL(code string) (string, error) {
	l, err := v.live()
	switch {
	case err != nil:
		return "", err
	case l.Kind == tenants.KindAssertion:
		return l.LoginLink(v.backTo(code)), nil
	case code == "":
		return v.pages("login"), nil
	}
	return v.pages("login", "user_code", code), nil
}
