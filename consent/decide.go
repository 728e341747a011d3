package consent

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"countersign.dev/authority"
	"countersign.dev/consent/words"
)

// formToken binds a form to this browser, this journey, this person and what
// was shown. Nobody else can make one: the attacker of a stolen code cannot
// post in a victim's browser, nor with a token of his own (B20, R13).
func (v *visit) formToken(parts ...string) (string, error) {
	raw, err := json.Marshal(append([]string{v.browser.secret}, parts...))
	if err != nil {
		return "", fmt.Errorf("form token: %w", err)
	}
	mac, err := v.h.MAC(v.brand.ID, "form", raw)
	if err != nil {
		return "", fmt.Errorf("form token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(mac), nil
}

// checkToken refuses a form that was not made for this browser, person and
// question; retry leads to where a new one is shown.
func (v *visit) checkToken(retry, given string, parts ...string) error {
	want, err := v.formToken(parts...)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(want), []byte(given)) {
		return problem{kind: words.StaleForm, retry: retry}
	}
	return nil
}

// decide is POST {pages}/consent/decision.
func (h *Handler) decide(v *visit) error {
	if !h.sameOrigin(v.r) {
		return problem{kind: words.ForgedForm}
	}
	form, err := readForm(v, "scope")
	if err != nil {
		return err
	}
	if !form.Has("j") {
		if _, own, err := v.ownPage(); err != nil {
			return err
		} else if own {
			return v.decideAlone(form)
		}
	}
	j, err := h.journeys.find(v.ctx(), v.brand.ID, v.browser, form.Get("j"))
	l, loggedIn := v.browser.login(v.brand.ID, h.Now())
	switch {
	case errors.Is(err, errNoJourney) && loggedIn:
		return problem{kind: words.StaleForm}
	case errors.Is(err, errNoJourney) && v.browser.known(): // M19: no login, no decision
		return problem{kind: words.Expired, status: http.StatusForbidden}
	case errors.Is(err, errNoJourney):
		return problem{kind: words.CookieMissing, status: http.StatusForbidden}
	case err != nil:
		return err
	}
	v.adopt(j)
	if j.RequestID == nil {
		return problem{kind: words.StaleForm, retry: v.pages("agents")}
	}
	a := answer{decision: form.Get("decision"), ticked: v.onCard(form["scope"]), shown: form.Get("shown")}
	a.days, _ = strconv.Atoi(form.Get("until"))
	if !loggedIn {
		return v.lapsed(j, a)
	}
	if err := v.checkToken(v.pages("consent", "j", j.ID), form.Get("session"), j.ID, l.Subject, form.Get("shown")); err != nil {
		return err
	}
	s, err := v.stand(j)
	if err != nil {
		return err
	}
	switch s.step {
	case stepAsk:
	case stepLogin, stepTrouble:
		return v.lapsed(j, a)
	case stepDone: // posted again: it counted the first time
		return v.done(s, http.StatusBadRequest)
	case stepAnswered: // a double click may come between the answer and its record
		return v.redirect(v.pages("consent", "j", j.ID))
	default:
		return v.deadEnd(s)
	}
	_, err = v.settle(s, a)
	switch {
	case errors.Is(err, errNoDecision):
		return problem{kind: words.StaleForm, retry: v.pages("consent", "j", j.ID)}
	case errors.Is(err, authority.ErrChanged):
		return v.redirect(v.pages("consent", "j", j.ID, "changed", "1"))
	case errors.Is(err, authority.ErrDecided), err == nil:
		return v.redirect(v.pages("consent", "j", j.ID))
	}
	return err
}

// onCard drops what is no permission of the Brand's, so that nothing of a
// stranger's choosing is stored.
func (v *visit) onCard(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		_, ok := v.brand.Scope(id)
		return !ok
	})
}

type answer struct {
	decision string
	ticked   []string
	days     int
	shown    string
}

// errNoDecision: the form says neither yes nor no.
var errNoDecision = errors.New("form without a decision")

// settle carries the answer to the rules, and writes down what it came to.
// authority.ErrChanged: the page has grown old, and the question stands anew;
// authority.ErrDecided: somebody was faster.
func (v *visit) settle(s standing, a answer) (outcome string, err error) {
	page := parseShown(a.shown)
	now, err := v.shown(s.question, page.language, page.shape)
	if err != nil {
		return "", err
	}
	d := authority.Decision{
		Request: s.question.ID, Subject: s.login.Subject, Ticked: a.ticked,
		SeenVersion: s.question.GrantVersion, Days: a.days, Seen: v.seen(s, page),
	}
	switch a.decision {
	case "deny": // always counts, also on a page that has grown old
		outcome, d.Seen.Outdated = "denied", now != page
		err = v.h.Authority.Deny(v.ctx(), v.brand.ID, d)
	case "allow":
		outcome, err = v.allow(s, d, now == page && page.shape != inBrief)
	case "continue":
		outcome, err = v.goOn(s, d, now == page && page.shape == inBrief)
	default:
		return "", errNoDecision
	}
	if errors.Is(err, authority.ErrChanged) && a.decision == "allow" {
		if kept := v.h.journeys.chose(v.ctx(), v.brand.ID, s.journey.ID, a.ticked, a.days); kept != nil {
			return "", kept
		}
	}
	if err != nil {
		return "", err
	}
	return outcome, v.close(s, a, outcome)
}

// allow is the yes to what is ticked. stands: the page is still true, and it is
// one with boxes.
func (v *visit) allow(s standing, d authority.Decision, stands bool) (outcome string, err error) {
	if !stands || !slices.Contains(v.brand.GrantDays, d.Days) {
		return "", authority.ErrChanged
	}
	err = v.h.Authority.Approve(v.ctx(), v.brand, d)
	if !errors.Is(err, authority.ErrDenied) {
		return "allowed", err
	}
	if len(s.question.Held) > 0 {
		return "emptied", nil
	}
	return "denied", nil
}

// goOn is the one Continue, where that is enough.
func (v *visit) goOn(s standing, d authority.Decision, stands bool) (outcome string, err error) {
	if !stands || !s.question.Skippable(v.brand) {
		return "", authority.ErrChanged
	}
	d.Ticked, d.Days = nil, 0
	return "continued", v.h.Authority.Proceed(v.ctx(), v.brand, d)
}

// close writes down, for the closing page, what this answer came to.
func (v *visit) close(s standing, a answer, outcome string) error {
	e := ending{outcome: outcome}
	if outcome == "allowed" || outcome == "emptied" {
		for _, id := range s.question.Held {
			if !slices.Contains(a.ticked, id) {
				e.ended = append(e.ended, id)
			}
		}
	}
	if outcome == "allowed" || outcome == "continued" {
		q, err := v.h.Authority.Ask(v.ctx(), v.brand.ID, s.question.ID, s.login.Subject)
		if err != nil {
			return err
		}
		e.allowed, e.until = q.DecidedScopes, q.DecidedUntil
	}
	return v.h.journeys.closed(v.ctx(), v.brand.ID, s.journey.ID, e)
}

// lapsed keeps what was ticked and asks to sign in again; the way there is a
// link on a page of ours, since this is the answer to a form post.
func (v *visit) lapsed(j journey, a answer) error {
	s, err := v.stand(j)
	if err != nil {
		return err
	}
	if s.step != stepLogin && s.step != stepTrouble {
		return v.deadEnd(s) // nothing to come back to
	}
	if j.Subject != nil && slices.Contains(v.brand.GrantDays, a.days) {
		if err := v.h.journeys.chose(v.ctx(), v.brand.ID, j.ID, a.ticked, a.days); err != nil {
			return err
		}
	}
	return problem{kind: words.SessionLapsed, retry: v.pages("login", "j", j.ID)}
}
