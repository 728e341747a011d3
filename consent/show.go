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
	if code := v.r.URL.Query().Get("user_code"); code != "" && !v.r.URL.Query().Has("j") {
		// A Brand's page that leads back here without having said who it is.
		return v.redirect(v.pages("device", "user_code", code))
	}
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
		return v.ask(s)
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
		p.retry = v.loginAgain(s)
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
		p.kind, p.retry = words.AccountSuspended, v.loginAgain(s, "switch", "1")
	case stepWrongUser:
		p.kind, p.retry = words.WrongAccount, v.loginAgain(s, "switch", "1")
	default:
		return fmt.Errorf("no page for step %d", s.step)
	}
	return p
}

// loginAgain is the path of the sign-in for the same request. Who came without our
// cookie has no journey to go on with, and names the request anew.
func (v *visit) loginAgain(s standing, params ...string) string {
	if v.alone {
		return v.pages("login", "user_code", s.question.UserCode.String())
	}
	return v.pages("login", append([]string{"j", s.journey.ID}, params...)...)
}

// startAgain is the page before the sign-in, for a journey that is under way.
func (v *visit) startAgain(s standing) error {
	view := words.Start(words.StartData{
		Common:    v.common(v.at("consent", "j", s.journey.ID)),
		SignInURL: v.loginAgain(s),
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Start(view))
}

// ask is the question: in brief where one Continue is enough, unless the person
// wants to see all of it.
func (v *visit) ask(s standing) error {
	if s.journey.Subject == nil || *s.journey.Subject != s.login.Subject {
		if err := v.h.journeys.shownTo(v.ctx(), v.brand.ID, s.journey.ID, s.login); err != nil {
			return err
		}
	}
	query := v.r.URL.Query()
	of := inFull
	switch {
	case query.Has("changed"):
		of = again
	case s.question.Skippable(v.brand) && !query.Has("full"):
		of = inBrief
	}
	page, err := v.shown(s.question, v.lang.Tag, of)
	if err != nil {
		return err
	}
	token, err := v.formToken(s.journey.ID, s.login.Subject, page.String())
	if err != nil {
		return err
	}
	d := v.question(s)
	if of != inBrief && s.question.Skippable(v.brand) { // stays in full in another language
		d.Common = v.common(v.at("consent", "j", s.journey.ID, "full", "1"))
	}
	d.Hidden = []ui.Hidden{{Name: "j", Value: s.journey.ID}, {Name: "shown", Value: page.String()}, {Name: "session", Value: token}}
	if of == inBrief {
		return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Brief(words.Brief(v.brief(s, d))))
	}
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Ask(v.full(s, d, of)))
}

// full adds what the page with boxes has.
func (v *visit) full(s standing, d words.AskData, of shape) pages.AskView {
	if of == again {
		d.Notices = append(d.Notices, words.ListChanged)
	}
	if s.question.OtherUser {
		d.Notices = append(d.Notices, words.OtherAccount)
	}
	d.Scopes, d.Until = v.scopes(s.question, s.journey), v.until(s.journey)
	return words.Ask(d)
}

// question is what both shapes of it say.
func (v *visit) question(s standing) words.AskData {
	q, j := s.question, s.journey
	return words.AskData{
		Common:    v.common(v.at("consent", "j", j.ID)),
		Account:   s.login.Account,
		SwitchURL: v.loginAgain(s, "switch", "1"),
		AgentsURL: v.pages("agents"),
		Agent:     v.pictured(q.Agent, q.AgentName, q.AgentLogo),
		UserCode:  q.UserCode.String(),
		AskedAt:   q.AskedAt, Now: v.h.Now(),
		StepUp: q.Kind == "stepup", Reason: q.Reason,
		Action: v.pages("consent/decision"),
	}
}

// brief adds what the agent has, and where it is changed and ended.
func (v *visit) brief(s standing, d words.AskData) words.BriefData {
	b := words.BriefData{
		AskData: d, May: v.texts(s.question.Held),
		ChangeURL: v.pages("consent", "j", s.journey.ID, "full", "1"),
		EndURL:    v.pages("agents", "end", s.question.GrantID.String()),
	}
	b.Ends = *s.question.HeldUntil
	return b
}

// scopes are the rows of the list: in the card's order, what is asked for
// ticked, what is held ticked and marked; or as this person left them.
func (v *visit) scopes(q *authority.Question, j journey) []words.Scope {
	may := offered(q)
	var out []words.Scope
	for _, s := range v.brand.Scopes {
		if !slices.Contains(may, s.ID) {
			continue
		}
		text := s.Text(v.lang.Tag)
		out = append(out, words.Scope{
			ID: s.ID, Description: text.Description, Undo: text.Undo, Effect: words.Effect(s.Effect),
			Sensitive: s.Impact == "high", Held: slices.Contains(q.Held, s.ID),
			Ticked:  j.Ticked == nil || slices.Contains(j.Ticked, s.ID),
			Details: v.details(q.DetailsOf(s.ID), v.lang.Tag),
		})
	}
	return out
}

// details are the sentences that say more exactly what a scope is to allow.
func (v *visit) details(all authority.Details, language string) [][]words.DetailPart {
	var out [][]words.DetailPart
	for _, one := range all {
		var sentence []words.DetailPart
		for _, part := range v.brand.SayDetail(one.Value, language) {
			sentence = append(sentence, words.DetailPart(part))
		}
		out = append(out, sentence)
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
		AgentsURL: v.pages("agents"), Ended: v.texts(j.Ended), Allowed: v.exactly(j.Allowed, q.DecidedDetails), StepUp: q.Kind == "stepup",
	}
	if j.Until != nil {
		d.Until = *j.Until
	}
	switch *j.Outcome {
	case "allowed":
		d.Outcome = words.Allowed
	case "continued":
		d.Outcome = words.Continued
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
		if slices.Contains(ids, s.ID) {
			out = append(out, s.Text(v.lang.Tag).Description)
		}
	}
	return out
}

// exactly is texts with the details of each scope behind it. Values are isolated by
// marks of Unicode, since a line of a list is one text.
func (v *visit) exactly(ids []string, details authority.Details) []string {
	const isolate, end = "\u2068", "\u2069"
	var out []string
	for _, s := range v.brand.Scopes {
		if !slices.Contains(ids, s.ID) {
			continue
		}
		line := s.Text(v.lang.Tag).Description
		for _, sentence := range v.details(details.Of(s.ID), v.lang.Tag) {
			line += " · "
			for _, part := range sentence {
				if part.Value {
					part.Text = isolate + part.Text + end
				}
				line += part.Text
			}
		}
		out = append(out, line)
	}
	return out
}

// pictured is the agent with its picture, if it has one.
func (v *visit) pictured(issuer, name, logo string) words.Agent {
	a := agentOf(issuer, name)
	if logo != "" {
		a.LogoURL = "/b/" + string(v.brand.ID) + "/agents/logo?v=" + url.QueryEscape(logo)
	}
	return a
}

// agentOf describes an agent by its verified host. Names stand in the registry
// only after the operator has accepted them; one that was discovered stands there
// under its host and has no other.
func agentOf(issuer, name string) words.Agent {
	host := issuer
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		host = u.Host
	}
	if name == host {
		name = ""
	}
	return words.Agent{Name: name, NameVerified: name != "", Host: host}
}
