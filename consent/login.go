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
		switch {
		case s.step == stepAsk && !change, s.step != stepAsk && s.step != stepLogin && s.step != stepTrouble && s.step != stepSuspended:
			// Nothing to log in for.
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

func (v *visit) connection() (federation.Connection, error) {
	l, err := v.h.logins.Login(v.ctx(), v.brand.ID)
	if errors.Is(err, tenants.ErrNoLogin) {
		return federation.Connection{}, problem{kind: words.LoginUnreachable, retry: v.pages("device"), cause: err}
	}
	if err != nil {
		return federation.Connection{}, err
	}
	return federation.Connection{
		Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret,
		SubjectClaim: l.SubjectClaim, Scopes: l.Scopes, AllowLoopbackHTTP: v.h.DevHTTP,
	}, nil
}

// mustHaveLogin says at once that nobody can log in, instead of after the
// person has read and tapped (B10).
func (v *visit) mustHaveLogin() error {
	_, err := v.connection()
	return err
}
