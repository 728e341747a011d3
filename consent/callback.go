package consent

import (
	"errors"
	"strings"

	"countersign.dev/consent/federation"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
)

// What a failed login leaves in the journey.
const (
	troubleRefused     = "refused"
	troubleUnreachable = "unreachable"
)

// callback is GET {pages}/callback, where the IdP sends the browser back. It
// counts once; a reload, a prefetch or a second click shows the step that is
// next (B58).
func (h *Handler) callback(v *visit) error {
	query := v.r.URL.Query()
	state := query.Get("state")
	const longest = 256
	if state == "" || len(state) > longest || len(query["state"]) > 1 || len(query["code"]) > 1 {
		return problem{kind: words.StaleForm}
	}
	if strings.HasPrefix(state, tenants.TryPrefix) && h.Tried != nil {
		return v.redirect(h.Tried(v.brand.ID, query))
	}
	j, err := h.journeys.byState(v.ctx(), v.brand.ID, state)
	if errors.Is(err, errNoJourney) {
		return problem{kind: words.StaleForm}
	}
	if err != nil {
		return err
	}
	v.adopt(j)
	if _, err := h.journeys.find(v.ctx(), v.brand.ID, v.browser, j.ID); errors.Is(err, errNoJourney) {
		return v.withoutCookie(j)
	} else if err != nil {
		return err
	}
	first, err := h.journeys.arrive(v.ctx(), v.brand.ID, v.browser, state)
	if err != nil {
		return err
	}
	if first {
		if err := v.finish(j, state); err != nil {
			return err
		}
	}
	if j.RequestID == nil && first {
		return v.redirect(v.pages("agents", "j", j.ID))
	}
	return v.redirect(v.pages("consent", "j", j.ID))
}

// withoutCookie is a browser that came back without our cookie: blocked, or
// another one than left (B45). It begins anew with the same request.
func (v *visit) withoutCookie(j journey) error {
	p := problem{kind: words.CookieMissing, retry: v.pages("agents")}
	if j.RequestID != nil {
		p.retry = v.pages("device")
		q, err := v.h.Authority.Ask(v.ctx(), v.brand.ID, *j.RequestID, "")
		if err != nil {
			return err
		}
		if code := q.UserCode.String(); code != "" {
			p.retry = v.pages("device", "user_code", code)
		}
	}
	return p
}

// finish verifies what the IdP said and logs the person in, or records how it
// failed. A refusal at the IdP is not a no to the agent: the person chooses
// again (B01, B56).
func (v *visit) finish(j journey, state string) error {
	connection, err := v.connection()
	if err != nil {
		return err
	}
	nonce, verifier, err := v.secrets(state)
	if err != nil {
		return err
	}
	params := federation.FinishParams{
		Query: v.r.URL.Query(), State: state, Nonce: nonce, Verifier: verifier,
		RedirectURI: v.callbackURL(), Fresh: j.Fresh,
	}
	if j.LoginBegan != nil {
		params.StartedAt = *j.LoginBegan
	}
	identity, err := v.h.Federation.Finish(v.ctx(), connection, params)
	if err != nil {
		v.h.Log.WarnContext(v.ctx(), "login failed", "brand", string(v.brand.ID), "error", err)
		trouble := troubleRefused
		if errors.Is(err, federation.ErrUnreachable) {
			trouble = troubleUnreachable
		}
		return v.h.journeys.troubled(v.ctx(), v.brand.ID, j.ID, trouble)
	}
	l := login{Subject: identity.Subject, Account: identity.Account, At: v.h.Now(), By: identity.Issuer}
	if err := v.logIn(l); err != nil {
		return err
	}
	return v.h.journeys.loggedIn(v.ctx(), v.brand.ID, j.ID, l)
}
