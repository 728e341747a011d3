package consent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"countersign.dev/authority"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
)

// shown is a digest of everything that the person saw and that could change
// under the open page: the offered scopes with all their words, and the version
// of the grant that is held (B42).
func (v *visit) shown(q *authority.Question) (string, error) {
	var scopes []tenants.Scope
	may := offered(q)
	for _, s := range v.brand.Scopes {
		if contains(may, s.ID) {
			scopes = append(scopes, s)
		}
	}
	raw, err := json.Marshal(struct {
		Scopes  []tenants.Scope
		Version int
		Days    []int
	}{scopes, q.GrantVersion, v.brand.GrantDays})
	if err != nil {
		return "", fmt.Errorf("digest of the question: %w", err)
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

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
	return v.settle(s, a)
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

// settle carries the answer to the rules.
func (v *visit) settle(s standing, a answer) error {
	shown, err := v.shown(s.question)
	if err != nil {
		return err
	}
	outcome := ""
	switch a.decision {
	case "deny":
		outcome = "denied"
		err = v.h.Authority.Deny(v.ctx(), v.brand.ID, s.question.ID, s.login.Subject)
	case "allow":
		if shown != a.shown || !slices.Contains(v.brand.GrantDays, a.days) {
			err = authority.ErrChanged
			break
		}
		outcome = "allowed"
		err = v.h.Authority.Approve(v.ctx(), v.brand, authority.Decision{
			Request: s.question.ID, Subject: s.login.Subject, Ticked: a.ticked,
			SeenVersion: s.question.GrantVersion, Days: a.days,
		})
		if errors.Is(err, authority.ErrDenied) {
			outcome, err = "denied", nil
			if len(s.question.Held) > 0 {
				outcome = "emptied"
			}
		}
	default:
		return problem{kind: words.StaleForm, retry: v.pages("consent", "j", s.journey.ID)}
	}
	switch {
	case errors.Is(err, authority.ErrChanged):
		if err := v.h.journeys.chose(v.ctx(), v.brand.ID, s.journey.ID, a.ticked, a.days); err != nil {
			return err
		}
		return v.redirect(v.pages("consent", "j", s.journey.ID, "changed", "1"))
	case errors.Is(err, authority.ErrDecided):
		return v.redirect(v.pages("consent", "j", s.journey.ID))
	case err != nil:
		return err
	}
	if err := v.close(s, a, outcome); err != nil {
		return err
	}
	return v.redirect(v.pages("consent", "j", s.journey.ID))
}

// close writes down, for the closing page, what this answer came to.
func (v *visit) close(s standing, a answer, outcome string) error {
	e := ending{outcome: outcome}
	if outcome != "denied" {
		for _, id := range s.question.Held {
			if !contains(a.ticked, id) {
				e.ended = append(e.ended, id)
			}
		}
	}
	if outcome == "allowed" {
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
