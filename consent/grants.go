package consent

import (
	"errors"
	"net/http"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// grants is GET {pages}/agents: what may act in this person's name here, and,
// with a grant named, the page that asks once more before it ends.
func (h *Handler) grants(v *visit) error {
	query := v.r.URL.Query()
	l, loggedIn := v.browser.login(v.brand.ID, h.Now())
	if !loggedIn {
		return v.startAgents(query.Get("j"))
	}
	held, err := h.Authority.Grants(v.ctx(), v.brand.ID, l.Subject)
	if err != nil {
		return err
	}
	if id, err := uuid.Parse(query.Get("end")); err == nil {
		for _, g := range held {
			if g.ID == id {
				return v.askToEnd(l, g)
			}
		}
	}
	token, err := v.formToken("signout", l.Subject)
	if err != nil {
		return err
	}
	d := words.AgentsData{
		Common: v.common(v.at("agents")), Account: l.Account,
		SwitchURL: v.pages("login", "switch", "1"), CodeURL: v.pages("device"),
		SignOutAction: v.pages("agents/signout"), SignOutHidden: []ui.Hidden{{Name: "session", Value: token}},
	}
	if d.JustEnded, err = v.justEnded(l, query.Get("ended")); err != nil {
		return err
	}
	for _, g := range held {
		one := words.HeldAgent{
			Agent: agentOf(g.Agent, g.AgentName), May: v.texts(g.Scopes), Since: g.CreatedAt, Until: g.ExpiresAt,
			EndURL: v.pages("agents", "end", g.ID.String()),
		}
		if g.LastUsed != nil {
			one.Used = *g.LastUsed
		}
		d.Agents = append(d.Agents, one)
	}
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Agents(words.Agents(d)))
}

// startAgents is the page before the sign-in; a login that failed is told.
func (v *visit) startAgents(id string) error {
	if id != "" {
		j, err := v.h.journeys.find(v.ctx(), v.brand.ID, v.browser, id)
		if err == nil && next(v.brand, j, nil, login{}, false, v.h.Now()) == stepTrouble {
			p := problem{kind: words.LoginRefused, retry: v.pages("login", "j", j.ID)}
			if *j.Trouble == troubleUnreachable {
				p.kind = words.LoginUnreachable
			}
			return p
		}
		if err != nil && !errors.Is(err, errNoJourney) {
			return err
		}
	}
	if err := v.mustHaveLogin(); err != nil {
		return err
	}
	view := words.Start(words.StartData{
		Common: v.common(v.at("agents")), SignInURL: v.pages("login"), Agents: true,
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Start(view))
}

func (v *visit) askToEnd(l login, g authority.Grant) error {
	token, err := v.formToken("end", l.Subject, g.ID.String())
	if err != nil {
		return err
	}
	view := words.EndAgent(words.EndAgentData{
		Common: v.common(v.at("agents", "end", g.ID.String())), Account: l.Account,
		SwitchURL: v.pages("login", "switch", "1"),
		Agent:     agentOf(g.Agent, g.AgentName), May: v.texts(g.Scopes),
		Action: v.pages("agents/end"), KeepURL: v.pages("agents"),
		Hidden: []ui.Hidden{{Name: "grant", Value: g.ID.String()}, {Name: "session", Value: token}},
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.EndAgent(view))
}

// endGrant is POST {pages}/agents/end. Ended twice is ended.
func (h *Handler) endGrant(v *visit) error {
	if !h.sameOrigin(v.r) {
		return problem{kind: words.ForgedForm, retry: v.pages("agents")}
	}
	form, err := readForm(v)
	if err != nil {
		return err
	}
	l, loggedIn := v.browser.login(v.brand.ID, h.Now())
	if !loggedIn {
		return problem{kind: words.SessionLapsed, retry: v.pages("login")}
	}
	if err := v.checkToken(v.pages("agents"), form.Get("session"), "end", l.Subject, form.Get("grant")); err != nil {
		return err
	}
	id, err := uuid.Parse(form.Get("grant"))
	if err != nil {
		return problem{kind: words.StaleForm, retry: v.pages("agents")}
	}
	err = h.Authority.EndByUser(v.ctx(), v.brand.ID, l.Subject, id)
	if err != nil && !errors.Is(err, authority.ErrUnknown) {
		return err
	}
	return v.redirect(v.pages("agents", "ended", id.String()))
}

// signOut is POST {pages}/agents/signout: this browser forgets who was logged in
// at this Brand. Open pages of the old login can decide nothing any more (B45).
func (h *Handler) signOut(v *visit) error {
	if !h.sameOrigin(v.r) {
		return problem{kind: words.ForgedForm, retry: v.pages("agents")}
	}
	form, err := readForm(v)
	if err != nil {
		return err
	}
	if l, loggedIn := v.browser.login(v.brand.ID, h.Now()); loggedIn {
		if err := v.checkToken(v.pages("agents"), form.Get("session"), "signout", l.Subject); err != nil {
			return err
		}
		if err := v.logOut(); err != nil {
			return err
		}
	}
	return v.redirect(v.pages("agents"))
}

// justEnded names the agent whose grant the address says was ended; an address
// that somebody made up names none.
func (v *visit) justEnded(l login, raw string) (string, error) {
	id, err := uuid.Parse(raw)
	if err != nil {
		return "", nil //nolint:nilerr // nothing was ended
	}
	g, err := v.h.Authority.Grant(v.ctx(), v.brand.ID, l.Subject, id)
	if errors.Is(err, authority.ErrUnknown) || err == nil && g.EndedAt == nil {
		return "", nil
	}
	return g.AgentName, err
}
