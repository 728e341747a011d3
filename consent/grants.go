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
	"countersign.dev/tenants"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

const (
	// lately is how far back My agents tells what ended.
	lately = 30 * 24 * time.Hour
	// soon is how long before its end a grant is marked.
	soon = 7 * 24 * time.Hour
)

// grants is GET {pages}/agents: what may act in this person's name here; with an
// agent named, all about that one; and with something named that shall end, the
// page that asks once before it does. An address that names nothing of this
// person's shows the list.
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
	switch end := query.Get("end"); {
	case end == "all" && len(held) > 0:
		return v.askToEndAll(l, held)
	case end != "":
		if g, ok := named(held, end); ok {
			return v.askToEnd(l, g, query.Get("scope"))
		}
	case query.Has("agent"):
		if g, ok := named(held, query.Get("agent")); ok {
			return v.agent(l, g, query.Get("ended"), query.Get("before"))
		}
	}
	return v.agents(l, held, query.Get("ended"))
}

func named(held []authority.Grant, id string) (authority.Grant, bool) {
	at := slices.IndexFunc(held, func(g authority.Grant) bool { return g.ID.String() == id })
	if at < 0 {
		return authority.Grant{}, false
	}
	return held[at], true
}

// agents is the list.
func (v *visit) agents(l login, held []authority.Grant, ended string) error {
	past, err := v.h.Authority.Ended(v.ctx(), v.brand.ID, l.Subject, v.h.Now().Add(-lately))
	if err != nil {
		return err
	}
	pause, err := v.pause(l)
	if err != nil {
		return err
	}
	token, err := v.formToken("signout", l.Subject)
	if err != nil {
		return err
	}
	d := words.AgentsData{
		Common: v.common(v.at("agents")), Account: l.Account,
		SwitchURL: v.pages("login", "switch", "1"), CodeURL: v.pages("device"),
		Pause: pause, JustEnded: justEnded(past, ended), EndAllURL: v.pages("agents", "end", "all"),
		SignOutAction: v.pages("agents/signout"), SignOutHidden: []ui.Hidden{{Name: "session", Value: token}},
	}
	for _, g := range held {
		d.Agents = append(d.Agents, v.held(g))
	}
	for _, g := range past {
		d.Past = append(d.Past, words.PastAgent{
			Agent: agentOf(g.Agent, g.AgentName), At: *g.EndedAt, Reason: words.EndReason(g.EndReason),
			Again: slices.ContainsFunc(held, func(o authority.Grant) bool { return o.Agent == g.Agent && o.AgentSub == g.AgentSub }),
		})
	}
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Agents(words.Agents(d)))
}

// pause is why nothing can act just now, though it is allowed.
func (v *visit) pause(l login) (words.Pause, error) {
	if v.brand.State != tenants.Active {
		return words.PausedForAll, nil
	}
	away, err := v.h.Authority.Suspended(v.ctx(), v.brand.ID, l.Subject)
	if away {
		return words.PausedForAccount, err
	}
	return words.NotPaused, err
}

func (v *visit) held(g authority.Grant) words.HeldAgent {
	one := words.HeldAgent{
		Agent: v.pictured(g.Agent, g.AgentName, g.AgentLogo), May: v.exactly(g.Scopes, g.Details), Since: g.CreatedAt, Until: g.ExpiresAt,
		Soon: g.ExpiresAt.Sub(v.h.Now()) <= soon, Off: !g.AgentOn,
		LookURL: v.pages("agents", "agent", g.ID.String()), EndURL: v.pages("agents", "end", g.ID.String()),
	}
	if g.LastUsed != nil {
		one.Used = *g.LastUsed
	}
	return one
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
	signIn, err := v.signInURL("")
	if err != nil {
		return err
	}
	view := words.Start(words.StartData{
		Common: v.common(v.at("agents")), SignInURL: signIn, Agents: true,
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Start(view))
}

func backToAgents(v *visit) error { return v.redirect(v.pages("agents")) }

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
		if err := v.checkMine(form.Get("session"), "signout", l.Subject); err != nil {
			return err
		}
		if err := v.logOut(); err != nil {
			return err
		}
	}
	return v.redirect(v.pages("agents"))
}

// checkMine is checkToken for the forms of My agents.
func (v *visit) checkMine(given string, parts ...string) error {
	err := v.checkToken("", given, parts...)
	if stale := new(problem); errors.As(err, stale) {
		return problem{kind: words.StaleAgents}
	}
	return err
}

// justEnded are the agents that the address says were ended just now: one by its
// grant, several by the moment at which they ended together. What the person did
// not end so is not told, whatever an address that somebody made up says.
func justEnded(past []authority.Grant, raw string) []words.Agent {
	var out []words.Agent
	id, notOne := uuid.Parse(raw)
	at, notMany := strconv.ParseInt(raw, 10, 64)
	for _, g := range past {
		one := notOne == nil && g.ID == id
		many := notMany == nil && g.EndedAt.UnixMicro() == at
		if g.EndReason == "revoked_by_user" && (one || many) {
			out = append(out, agentOf(g.Agent, g.AgentName))
		}
	}
	return out
}
