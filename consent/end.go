package consent

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// askToEnd says exactly what will end of one agent, and asks once: one
// permission, or, where none is named or nothing would be left, all of it.
func (v *visit) askToEnd(l login, g authority.Grant, scope string) error {
	s, ok := v.brand.Scope(scope)
	if ok = ok && slices.Contains(g.Scopes, scope); !ok {
		scope = ""
	}
	last := ok && v.lastOf(g, scope)
	d := words.EndAgentData{
		Common: v.common(v.at("agents", "end", g.ID.String(), "scope", scope)), Account: l.Account,
		SwitchURL: v.pages("login", "switch", "1"), Agent: agentOf(g.Agent, g.AgentName),
		Last: last, Ends: v.texts(g.Scopes), Action: v.pages("agents/end"), KeepURL: v.pages("agents"),
	}
	if ok {
		d.KeepURL = v.pages("agents", "agent", g.ID.String())
	}
	if ok && !last {
		d.Ends = []string{s.Text(v.lang.Tag).Description}
		d.Stays = v.texts(slices.DeleteFunc(slices.Clone(g.Scopes), func(id string) bool { return id == scope }))
	} else {
		scope = ""
	}
	var err error
	if d.Hidden, err = v.endForm(l, scope, g.ID.String()); err != nil {
		return err
	}
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.End(words.EndAgent(d)))
}

// lastOf reports whether nothing that the card still offers would be left.
func (v *visit) lastOf(g authority.Grant, scope string) bool {
	for _, s := range v.brand.Scopes {
		if s.ID != scope && slices.Contains(g.Scopes, s.ID) {
			return false
		}
	}
	return true
}

// askToEndAll names every agent that will end.
func (v *visit) askToEndAll(l login, held []authority.Grant) error {
	d := words.EndAllData{
		Common: v.common(v.at("agents", "end", "all")), Account: l.Account,
		SwitchURL: v.pages("login", "switch", "1"), Action: v.pages("agents/end"), KeepURL: v.pages("agents"),
	}
	ids := make([]string, 0, len(held))
	for _, g := range held {
		ids = append(ids, g.ID.String())
		d.Agents = append(d.Agents, words.EndingAgent{
			Agent: agentOf(g.Agent, g.AgentName), Permissions: len(v.texts(g.Scopes)),
		})
	}
	var err error
	if d.Hidden, err = v.endForm(l, "", ids...); err != nil {
		return err
	}
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.End(words.EndAll(d)))
}

// endForm names what a form ends, and vouches that this person, in this browser,
// was shown exactly that.
func (v *visit) endForm(l login, scope string, grants ...string) ([]ui.Hidden, error) {
	token, err := v.formToken(endParts(l, scope, grants)...)
	if err != nil {
		return nil, err
	}
	hidden := []ui.Hidden{{Name: "session", Value: token}}
	if scope != "" {
		hidden = append(hidden, ui.Hidden{Name: "scope", Value: scope})
	}
	for _, g := range grants {
		hidden = append(hidden, ui.Hidden{Name: "grant", Value: g})
	}
	return hidden, nil
}

func endParts(l login, scope string, grants []string) []string {
	return append([]string{"end", l.Subject, scope}, grants...)
}

// endGrant is POST {pages}/agents/end. Ended twice is ended.
func (h *Handler) endGrant(v *visit) error {
	if !h.sameOrigin(v.r) {
		return problem{kind: words.ForgedForm, retry: v.pages("agents")}
	}
	form, err := readForm(v, "grant")
	if err != nil {
		return err
	}
	l, loggedIn := v.browser.login(v.brand.ID, h.Now())
	if !loggedIn {
		return problem{kind: words.AgentsLapsed, retry: v.pages("login")}
	}
	scope := form.Get("scope")
	if err := v.checkMine(form.Get("session"), endParts(l, scope, form["grant"])...); err != nil {
		return err
	}
	grants := make([]uuid.UUID, len(form["grant"]))
	for i, raw := range form["grant"] {
		if grants[i], err = uuid.Parse(raw); err != nil {
			return problem{kind: words.StaleAgents}
		}
	}
	if scope != "" {
		return v.endScope(l, grants[0], scope)
	}
	if _, err := h.Authority.EndAllByUser(v.ctx(), v.brand.ID, l.Subject, grants); err != nil {
		return err
	}
	return v.afterEnd(l, grants)
}

// endScope takes one permission away. Where it has become the last one since the
// page was shown, the person is asked anew: the page said that the agent stays.
func (v *visit) endScope(l login, grant uuid.UUID, scope string) error {
	g, err := v.h.Authority.Grant(v.ctx(), v.brand.ID, l.Subject, grant)
	switch {
	case errors.Is(err, authority.ErrUnknown):
		return v.redirect(v.pages("agents"))
	case err != nil:
		return err
	case g.EndedAt != nil:
		return v.redirect(v.pages("agents", "ended", grant.String()))
	case slices.Contains(g.Scopes, scope) && v.lastOf(g, scope):
		return v.redirect(v.pages("agents", "end", grant.String(), "scope", scope))
	}
	err = v.h.Authority.EndScopeByUser(v.ctx(), v.brand.ID, l.Subject, grant, scope)
	if err != nil && !errors.Is(err, authority.ErrUnknown) {
		return err
	}
	return v.redirect(v.pages("agents", "agent", grant.String(), "ended", scope))
}

// afterEnd leads to the list, which says what has ended; after a second post,
// what the first one ended.
func (v *visit) afterEnd(l login, grants []uuid.UUID) error {
	if len(grants) == 1 {
		return v.redirect(v.pages("agents", "ended", grants[0].String()))
	}
	past, err := v.h.Authority.Ended(v.ctx(), v.brand.ID, l.Subject, v.h.Now().Add(-lately))
	if err != nil {
		return err
	}
	var at time.Time
	for _, g := range past {
		if slices.Contains(grants, g.ID) && g.EndReason == "revoked_by_user" && g.EndedAt.After(at) {
			at = *g.EndedAt
		}
	}
	return v.redirect(v.pages("agents", "ended", strconv.FormatInt(at.UnixMicro(), 10)))
}
