package consent

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/ui"
)

// decideAlone is the answer to a page that carries its own proof: the session,
// which was given to one person for one request, and counts once (P24). The rest
// of the form is what everybody knows: scope, and decision.
func (v *visit) decideAlone(form url.Values) error {
	session := form.Get("session")
	if session == "" { // M19: no login, no decision
		return problem{kind: words.Expired, status: http.StatusForbidden}
	}
	a := answer{decision: form.Get("decision"), ticked: v.onCard(form["scope"]), days: v.brand.GrantDefault}
	if a.decision != "allow" && a.decision != "deny" {
		return problem{kind: words.StaleForm, retry: v.pages("device")}
	}
	if form.Has("until") {
		a.days, _ = strconv.Atoi(form.Get("until"))
	}
	j, err := v.h.journeys.spend(v.ctx(), v.brand.ID, session, toDecide)
	if errors.Is(err, errNoJourney) {
		return v.notAgain(session)
	}
	if err != nil {
		return err
	}
	cookie := v.browser
	v.actFor(j)
	a.shown = j.Shown
	s, err := v.stand(j)
	if err != nil {
		return err
	}
	switch s.step {
	case stepAsk:
	case stepLogin, stepTrouble:
		return problem{kind: words.SessionLapsed, retry: v.loginAgain(s)}
	default:
		return v.deadEnd(s)
	}
	outcome, err := v.settle(s, a)
	switch {
	case errors.Is(err, authority.ErrChanged):
		return v.askAnew(s, a)
	case errors.Is(err, authority.ErrDecided):
		return problem{kind: words.AlreadyAnswered}
	case err != nil:
		return err
	}
	if to := v.connected(outcome); to != "" {
		return v.redirect(to)
	}
	return v.goOnIn(cookie, s)
}

// askAnew shows the question as it is now, with what was ticked, to be answered
// under a session of its own.
func (v *visit) askAnew(s standing, a answer) error {
	j := s.journey
	if a.decision == "allow" {
		j.Ticked, j.Days = append([]string{}, a.ticked...), &a.days
	}
	s, err := v.stand(j)
	if err != nil {
		return err
	}
	return v.onTheSpot(s, again, http.StatusConflict)
}

// notAgain tells somebody who pressed the button twice how it ended. Any other
// session that does not count is only a page that has grown old.
func (v *visit) notAgain(session string) error {
	stale := problem{kind: words.StaleForm, retry: v.pages("device")}
	j, err := v.h.journeys.spent(v.ctx(), v.brand.ID, session)
	if errors.Is(err, errNoJourney) {
		return stale
	}
	if err != nil {
		return err
	}
	v.actFor(j)
	s, err := v.stand(j)
	switch {
	case err != nil:
		return err
	case s.step == stepDone:
		return v.done(s, http.StatusBadRequest)
	case s.step == stepAnswered: // the first click may be between the answer and its record
		return problem{kind: words.AlreadyAnswered, status: http.StatusBadRequest}
	}
	return stale
}

// goOnIn has the journey, which came without our cookie, go on in the browser that
// posted its answer from our own page: on to the closing page, and from there to
// My agents.
func (v *visit) goOnIn(cookie *browser, s standing) error {
	v.browser, v.alone = cookie, false
	if err := v.keep(); err != nil {
		return err
	}
	if err := v.h.journeys.moveTo(v.ctx(), v.brand.ID, v.browser, s.journey.ID); err != nil {
		return err
	}
	if err := v.logIn(s.login); err != nil {
		return err
	}
	return v.redirect(v.pages("consent", "j", s.journey.ID))
}

// arriveAtAgents is POST {pages}/agents: the Brand's own page says who somebody
// is, for no request but for My agents. Our cookie does not come with a post from
// another site, and setting a new one would forget every other Brand's login; so
// the answer is one button of ours, which the cookie comes with.
func (h *Handler) arriveAtAgents(v *visit) error {
	a, err := v.asserted("agents")
	if err != nil {
		return err
	}
	if a.UserCode != "" { // made for a request
		return v.unbelieved()
	}
	l := login{Subject: a.Subject, Account: a.Account, At: a.AuthTime, By: a.Issuer}
	j, err := h.journeys.signedIn(v.ctx(), v.brand.ID, nil, l, false, v.locales)
	if err != nil {
		return err
	}
	session, err := h.journeys.handOut(v.ctx(), v.brand.ID, j.ID, "")
	if err != nil {
		return err
	}
	view := words.Enter(words.EnterData{
		Common: v.common(nil), Account: l.Account, SwitchURL: v.pages("login"),
		Action: v.pages("agents/enter"), Hidden: []ui.Hidden{{Name: "session", Value: session}},
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Enter(view))
}

// enterAgents is POST {pages}/agents/enter, that button.
func (h *Handler) enterAgents(v *visit) error {
	if !h.sameOrigin(v.r) {
		return problem{kind: words.ForgedForm, retry: v.pages("agents")}
	}
	form, err := readForm(v)
	if err != nil {
		return err
	}
	j, err := h.journeys.spend(v.ctx(), v.brand.ID, form.Get("session"), toEnter)
	if errors.Is(err, errNoJourney) {
		return problem{kind: words.StaleAgents}
	}
	if err != nil {
		return err
	}
	cookie := v.browser
	v.actFor(j)
	l, ok := v.browser.login(v.brand.ID, h.Now())
	v.browser, v.alone = cookie, false
	if !ok {
		return problem{kind: words.StaleAgents}
	}
	if err := v.keep(); err != nil {
		return err
	}
	if err := v.logIn(l); err != nil {
		return err
	}
	return v.redirect(v.pages("agents"))
}
