package consent

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/ui"
)

// standing is where a journey stands: the step, and what it was decided from.
type standing struct {
	step     step
	journey  journey
	question *authority.Question
	login    login
}

// stand reads what is stored and asks next.
func (v *visit) stand(j journey) (standing, error) {
	l, loggedIn := v.browser.login(v.brand.ID, v.h.Now())
	q, err := v.h.Authority.Ask(v.ctx(), v.brand.ID, *j.RequestID, l.Subject)
	if err != nil {
		return standing{}, err
	}
	return standing{step: next(v.brand, j, q, l, loggedIn, v.h.Now()), journey: j, question: q, login: l}, nil
}

// show is GET {pages}/consent: whatever comes next in this journey.
func (h *Handler) show(v *visit) error {
	j, err := h.journeys.find(v.ctx(), v.brand.ID, v.browser, v.r.URL.Query().Get("j"))
	if err != nil {
		return err
	}
	v.adopt(j)
	if j.RequestID == nil {
		return v.redirect(v.pages("agents", "j", j.ID))
	}
	s, err := v.stand(j)
	if err != nil {
		return err
	}
	switch s.step {
	case stepAsk:
		var notices []words.Notice
		if v.r.URL.Query().Has("changed") {
			notices = append(notices, words.ListChanged)
		}
		return v.ask(s, notices)
	case stepDone:
		return v.done(s, http.StatusOK)
	case stepLogin:
		return v.startAgain(s)
	}
	return v.deadEnd(s)
}

// deadEnd tells how the journey stopped and what can be done.
func (v *visit) deadEnd(s standing) error {
	p := problem{agent: agentOf(s.question.Agent, s.question.AgentName)}
	switch s.step {
	case stepTrouble:
		p.retry = v.pages("login", "j", s.journey.ID)
		p.kind = words.LoginRefused
		if *s.journey.Trouble == troubleUnreachable {
			p.kind = words.LoginUnreachable
		}
	case stepAnswered:
		p.kind = words.AlreadyAnswered
		if s.question.State == "denied" {
			p.kind = words.AlreadyDenied
		}
	case stepGone:
		p = problem{kind: words.DeadCode}
	case stepExpired:
		p.kind = words.Expired
	case stepDisabled:
		p.kind = words.AgentDisabled
	case stepPaused:
		p.kind = words.BrandPaused
	case stepSuspended:
		p.kind, p.retry = words.AccountSuspended, v.pages("login", "j", s.journey.ID, "switch", "1")
	default:
		return fmt.Errorf("no page for step %d", s.step)
	}
	return p
}

// startAgain is the page before the sign-in, for a journey that is under way.
func (v *visit) startAgain(s standing) error {
	view := words.Start(words.StartData{
		Common:    v.common(v.at("consent", "j", s.journey.ID)),
		SignInURL: v.pages("login", "j", s.journey.ID),
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Start(view))
}

// ask is the question.
func (v *visit) ask(s standing, notices []words.Notice) error {
	q, j := s.question, s.journey
	shown, err := v.shown(q)
	if err != nil {
		return err
	}
	token, err := v.formToken(j.ID, s.login.Subject, shown)
	if err != nil {
		return err
	}
	if q.OtherUser {
		notices = append(notices, words.OtherAccount)
	}
	view := words.Ask(words.AskData{
		Common:    v.common(v.at("consent", "j", j.ID)),
		Account:   s.login.Account,
		SwitchURL: v.pages("login", "j", j.ID, "switch", "1"),
		AgentsURL: v.pages("agents"),
		Agent:     agentOf(q.Agent, q.AgentName),
		UserCode:  q.UserCode.String(),
		AskedAt:   q.AskedAt, Now: v.h.Now(),
		Action: v.pages("consent/decision"),
		Hidden: []ui.Hidden{{Name: "j", Value: j.ID}, {Name: "shown", Value: shown}, {Name: "session", Value: token}},
		Scopes: v.scopes(q, j),
		Until:  v.until(j), Notices: notices,
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Ask(view))
}

// scopes are the rows of the list: in the card's order, what is asked for
// ticked, what is held ticked and marked; or as this person left them.
func (v *visit) scopes(q *authority.Question, j journey) []words.Scope {
	may := offered(q)
	var out []words.Scope
	for _, s := range v.brand.Scopes {
		if !contains(may, s.ID) {
			continue
		}
		text := s.Text(v.lang.Tag)
		out = append(out, words.Scope{
			ID: s.ID, Description: text.Description, Undo: text.Undo, Effect: words.Effect(s.Effect),
			Sensitive: s.Impact == "high", Held: contains(q.Held, s.ID),
			Ticked: j.Ticked == nil || contains(j.Ticked, s.ID),
		})
	}
	return out
}

func (v *visit) until(j journey) []words.Until {
	chosen := v.brand.GrantDefault
	if j.Days != nil && slices.Contains(v.brand.GrantDays, *j.Days) {
		chosen = *j.Days
	}
	out := make([]words.Until, 0, len(v.brand.GrantDays))
	for _, days := range v.brand.GrantDays {
		out = append(out, words.Until{
			Value: strconv.Itoa(days), Days: days, At: v.h.Now().AddDate(0, 0, days), Selected: days == chosen,
		})
	}
	return out
}

// done is the closing page.
func (v *visit) done(s standing, status int) error {
	q, j := s.question, s.journey
	d := words.DoneData{
		Common: v.common(v.at("consent", "j", j.ID)), Agent: agentOf(q.Agent, q.AgentName),
		AgentsURL: v.pages("agents"), Ended: v.texts(j.Ended),
	}
	switch *j.Outcome {
	case "allowed":
		d.Outcome, d.Allowed = words.Allowed, v.texts(j.Allowed)
		if j.Until != nil {
			d.Until = *j.Until
		}
	case "emptied":
		d.Outcome = words.Emptied
	default:
		d.Outcome = words.Denied
	}
	return ui.Render(v.ctx(), v.w, status, pages.Done(words.Done(d)))
}

// texts are the Brand's words for the scopes, in its order.
func (v *visit) texts(ids []string) []string {
	var out []string
	for _, s := range v.brand.Scopes {
		if contains(ids, s.ID) {
			out = append(out, s.Text(v.lang.Tag).Description)
		}
	}
	return out
}

// agentOf describes an agent by its verified host. Names stand in the registry
// only after the operator has accepted them.
func agentOf(issuer, name string) words.Agent {
	host := issuer
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		host = u.Host
	}
	return words.Agent{Name: name, NameVerified: name != "", Host: host}
}
