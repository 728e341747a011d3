package consent

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/consent/federation"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
	"countersign.dev/web"
	"countersign.dev/web/ui"
)

// ownPage is the Brand's own login page, if that is how its people sign in.
func (v *visit) ownPage() (tenants.LoginConnection, bool, error) {
	l, err := v.h.logins.Login(v.ctx(), v.brand.ID)
	if errors.Is(err, tenants.ErrNoLogin) {
		return l, false, nil
	}
	return l, l.Kind == tenants.KindAssertion, err
}

// address is the address of one of the Brand's pages, without a query: what an
// assertion for it names in aud.
func (v *visit) address(name string) string {
	return v.h.origin + "/b/" + string(v.brand.ID) + "/" + name
}

// backTo is where the Brand's page sends the assertion. It is always made here,
// and never taken from a request (R71).
func (v *visit) backTo(code string) string {
	if code == "" {
		return v.address("agents")
	}
	return v.address("consent") + "?" + url.Values{"user_code": {code}}.Encode()
}

// toPage leaves for the Brand's own page.
func (v *visit) toPage(page tenants.LoginConnection, query url.Values) error {
	code := ""
	switch {
	case query.Get("j") != "": // of a login that began elsewhere, before the Brand changed to its own page
		j, err := v.h.journeys.find(v.ctx(), v.brand.ID, v.browser, query.Get("j"))
		if err != nil {
			return err
		}
		if j.RequestID == nil {
			break
		}
		q, err := v.h.Authority.Ask(v.ctx(), v.brand.ID, *j.RequestID, "")
		if err != nil {
			return err
		}
		if code = q.UserCode.String(); code == "" {
			return v.redirect(v.pages("consent", "j", j.ID)) // nothing to sign in for
		}
	case query.Get("user_code") != "":
		_, found, err := v.h.Authority.Find(v.ctx(), v.brand.ID, query.Get("user_code"), v.visitor())
		if err != nil {
			return err
		}
		code = found.String()
	}
	return v.redirect(page.LoginLink(v.backTo(code)))
}

// asserted is what a post from the Brand's own page says, verified, for the page
// of ours with the name. It is taken once.
func (v *visit) asserted(name string) (federation.Assertion, error) {
	var none federation.Assertion
	page, own, err := v.ownPage()
	if err != nil {
		return none, err
	}
	if !own {
		return none, problem{kind: words.NotFound}
	}
	v.alone = true
	if !v.comesFrom(page.LoginOrigin) {
		return none, problem{kind: words.ForgedForm, retry: v.pages("device")}
	}
	form, err := readForm(v)
	if err != nil {
		return none, err
	}
	a, err := v.h.Federation.Assertion(v.ctx(), federation.Page{
		Brand: v.brand.ID, Issuer: page.Issuer, JWKSURI: page.JWKSURI, AllowLoopbackHTTP: v.h.DevHTTP,
	}, form.Get("assertion"), v.address(name))
	if err == nil {
		var first bool
		if first, err = v.h.journeys.first(v.ctx(), v.brand.ID, page.Issuer, a); err != nil {
			return none, err
		}
		if first {
			return a, nil
		}
		err = errTaken
	}
	v.h.Log.WarnContext(v.ctx(), "login failed", "brand", string(v.brand.ID), "error", err)
	if errors.Is(err, federation.ErrUnreachable) || errors.Is(err, federation.ErrMisconfigured) {
		return none, problem{kind: words.LoginUnreachable, retry: v.sameAgain(), cause: err}
	}
	return none, v.unbelieved()
}

var errTaken = errors.New("the assertion was taken before")

// comesFrom reports whether a page of that origin made this post, by going here
// as a whole window. The one exemption from sameOrigin.
func (v *visit) comesFrom(origin string) bool {
	said := v.r.Header["Origin"]
	mode := v.r.Header.Get("Sec-Fetch-Mode")
	return origin != "" && len(said) == 1 && said[0] == origin && (mode == "" || mode == "navigate") && v.navigates()
}

// unbelieved is the page for an assertion that is none: it says nothing of the
// request, and holds nothing that could decide.
func (v *visit) unbelieved() error {
	return problem{kind: words.LoginRefused, status: http.StatusUnauthorized, retry: v.sameAgain()}
}

// sameAgain leads to the sign-in for what this post's own address names.
func (v *visit) sameAgain() string {
	if code, ok := authority.ParseUserCode(v.r.URL.Query().Get("user_code")); ok {
		return v.pages("login", "user_code", code.String())
	}
	return v.pages("device")
}

// arrive is POST {pages}/consent: the Brand's own page says who somebody is, and
// which request they signed in for.
func (h *Handler) arrive(v *visit) error {
	a, err := v.asserted("consent")
	if err != nil {
		return err
	}
	code, ok := authority.ParseUserCode(a.UserCode)
	if !ok || !v.names(code) {
		return v.unbelieved()
	}
	visitor := v.visitor()
	visitor.Subject = a.Subject
	request, _, err := h.Authority.Find(v.ctx(), v.brand.ID, code.String(), visitor)
	if err != nil {
		return err
	}
	q, err := h.Authority.Ask(v.ctx(), v.brand.ID, request, a.Subject)
	if err != nil {
		return err
	}
	l := login{Subject: a.Subject, Account: a.Account, At: a.AuthTime, By: a.Issuer}
	// Nobody is asked for a fresh login here, but the page says when it vouched for
	// the person: since the agent asked is for this very request.
	fresh := !a.AuthTime.Before(q.AskedAt.Add(-skew))
	j, err := h.journeys.signedIn(v.ctx(), v.brand.ID, &request, l, fresh, v.locales)
	if err != nil {
		return err
	}
	v.actFor(j)
	return v.onTheSpot(standing{step: next(v.brand, j, q, l, true, h.Now()), journey: j, question: q, login: l}, inFull, http.StatusOK)
}

// names reports whether this post's address, which was our return_to, names the
// code too; it may name none.
func (v *visit) names(code authority.UserCode) bool {
	written, there := v.r.URL.Query()["user_code"]
	if !there {
		return true
	}
	named, ok := authority.ParseUserCode(written[0])
	return ok && len(written) == 1 && named == code
}

// actFor puts the journey's own login in the place of a cookie's.
func (v *visit) actFor(j journey) {
	v.alone = true
	v.adopt(j)
	v.browser = &browser{secret: j.ID, logins: make(map[tenants.BrandID]login)}
	if j.Subject != nil && j.Account != nil && j.LoggedInAt != nil {
		l := login{Subject: *j.Subject, Account: *j.Account, At: *j.LoggedInAt}
		if j.VouchedBy != nil {
			l.By = *j.VouchedBy
		}
		v.browser.logins[v.brand.ID] = l
	}
}

// onTheSpot answers with the page itself: without our cookie nobody could be sent
// on to it.
func (v *visit) onTheSpot(s standing, of shape, status int) error {
	switch s.step {
	case stepAsk:
		return v.askAlone(s, of, status)
	case stepLogin:
		return v.startAgain(s)
	}
	return v.deadEnd(s)
}

// askAlone is the question, always in full, on a form that carries its own proof.
func (v *visit) askAlone(s standing, of shape, status int) error {
	page, err := v.shown(s.question, v.lang.Tag, of)
	if err != nil {
		return err
	}
	session, err := v.h.journeys.handOut(v.ctx(), v.brand.ID, s.journey.ID, page.String())
	if err != nil {
		return err
	}
	d := v.question(s)
	d.Hidden = []ui.Hidden{{Name: "session", Value: session}}
	web.AllowFormTo(v.w, tenants.Origin(v.brand.ConnectedURL))
	return ui.Render(v.ctx(), v.w, status, pages.Ask(v.full(s, d, of)))
}

// connected is where the Brand wants people to go on, told how they answered;
// empty: nowhere.
func (v *visit) connected(outcome string) string {
	u, err := url.Parse(v.brand.ConnectedURL)
	if err != nil || v.brand.ConnectedURL == "" {
		return ""
	}
	_, u.Host, _ = strings.Cut(tenants.Origin(v.brand.ConnectedURL), "://")
	status := "denied"
	if outcome == "allowed" || outcome == "continued" {
		status = "approved"
	}
	q := u.Query()
	q.Set("status", status)
	u.RawQuery = q.Encode()
	return u.String()
}
