package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/authority/tryout"
	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// trier is the id under which the test agent acts for the member.
func (v *visit) trier() string { return "member-" + v.person.ID.String() }

func (v *visit) tryPurpose() string { return "try of " + v.person.ID.String() }

// keptTry is the member's own try of the Brand; nil: there is none. One that no
// longer opens, such as one from before a change of the master key, is none.
func (v *visit) keptTry() *tryout.Try {
	sealed := v.session.Tries[v.brand.ID]
	if sealed == nil {
		return nil
	}
	raw, err := v.h.Sealer.Open(v.ctx(), v.brand.ID, v.tryPurpose(), sealed)
	if err != nil {
		return nil
	}
	var t tryout.Try
	if json.Unmarshal(raw, &t) != nil {
		return nil
	}
	return &t
}

// keepTry seals the try into the session: the device code in it is worth a token.
func (v *visit) keepTry(t tryout.Try) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	sealed, err := v.h.Sealer.Seal(v.ctx(), v.brand.ID, v.tryPurpose(), raw)
	if err != nil {
		return err
	}
	v.session.Tries = map[tenants.BrandID][]byte{v.brand.ID: sealed} // the last one is enough
	return v.save()
}

// showTry is GET try. It looks how the try goes on, as often as it is asked.
func (v *visit) showTry() error {
	t := v.keptTry()
	if t == nil || t.State != tryout.Waiting {
		return v.tellTry(http.StatusOK, t)
	}
	after, err := v.h.Tester.Look(v.ctx(), v.brand, v.trier(), *t)
	if err != nil {
		return v.tellTry(http.StatusOK, t, v.tryTrouble(err))
	}
	if err := v.keepTry(after); err != nil {
		return err
	}
	return v.tellTry(http.StatusOK, &after)
}

// beginTry is POST try.
func (v *visit) beginTry() error {
	if err := v.limited(v.h.invites, "try "+string(v.brand.ID)); err != nil {
		return err
	}
	t, err := v.h.Tester.Begin(v.ctx(), v.brand, v.trier())
	if err != nil {
		return v.tellTry(http.StatusConflict, nil, v.tryTrouble(err))
	}
	if err := v.keepTry(t); err != nil {
		return err
	}
	return v.redirect(pageOf(v.brand.ID, "try"))
}

// endTry is POST try/end: it ends what the member's own try was allowed, and
// forgets the try.
func (v *visit) endTry() error {
	if t := v.keptTry(); t != nil && t.Token.Grant != "" {
		grant, err := uuid.Parse(t.Token.Grant)
		if err != nil {
			return problem{kind: stale, cause: err}
		}
		_, err = v.h.Authority.End(v.ctx(), v.brand.ID, v.by(), authority.Which{
			Grant: grant, Agent: v.h.Tester.Issuer, AgentSub: v.trier(), // nobody else's, whatever was sealed
		})
		if err != nil {
			return err
		}
	}
	delete(v.session.Tries, v.brand.ID)
	if err := v.save(); err != nil {
		return err
	}
	return v.redirect(pageOf(v.brand.ID, "try"))
}

// tryTrouble says why the Brand did not answer the test agent.
func (v *visit) tryTrouble(err error) ui.Notice {
	if no, ok := errors.AsType[tryout.Refusal](err); ok {
		if no.Status == http.StatusUnauthorized {
			return v.warning("console.try.unknown")
		}
		return v.warning("console.try.refused", "error", no.Code)
	}
	v.h.Log.InfoContext(v.ctx(), "a try did not reach the Brand", "brand", string(v.brand.ID), "error", err)
	return v.warning("console.try.unreached", "host", v.brand.Issuer)
}

func (v *visit) tellTry(status int, t *tryout.Try, notices ...ui.Notice) error {
	frame, err := v.brandFrame("try", "console.try.heading")
	if err != nil {
		return err
	}
	view := pages.TryView{
		Frame: frame, Heading: v.say("console.try.heading"), Notices: notices,
		Lead:  []ui.Phrase{v.say("console.try.lead"), v.say("console.try.agent", "agent", v.h.Tester.Issuer)},
		Begin: pages.Form{Action: pageOf(v.brand.ID, "try"), Button: v.say("console.try.begin")},
		Otherwise: v.otherwise(nil, []string{
			"countersign pa login --card " + v.brand.InterfaceURL,
			"countersign pa token --card " + v.brand.InterfaceURL + " | countersign verify --card " + v.brand.InterfaceURL + " --alone",
		}),
	}
	if t != nil {
		v.wordTry(&view, *t)
	}
	return v.render(status, pages.Try(view))
}

func (v *visit) wordTry(view *pages.TryView, t tryout.Try) {
	view.Steps = pages.Todo{Steps: v.trySteps(t)}
	view.Begin.Button = v.say("console.try.again")
	end := "console.try.forget"
	if t.Token.Grant != "" {
		end = "console.try.end"
	}
	view.End = pages.Section{
		Heading: v.text(end), Text: []ui.Phrase{v.say(map[bool]string{true: "console.try.end.why", false: "console.try.forget.why"}[t.Token.Grant != ""])},
		Form: pages.Form{Action: pageOf(v.brand.ID, "try/end"), Button: v.say(end)},
	}
	if t.State == tryout.Waiting {
		view.Begin = pages.Form{} // one at a time
		view.Ask = pages.TryAsk{
			Heading: v.text("console.try.ask"), Text: v.say("console.try.ask.text"), Code: t.UserCode,
			Link: v.link("console.try.ask.link", t.Link), Look: v.link("console.try.look", pageOf(v.brand.ID, "try")),
			Until: v.text("console.try.ask.until", "date", v.date(t.Expires)),
		}
		return
	}
	if len(t.Checks) == 0 {
		return
	}
	d := t.Token
	view.Token = pages.TryToken{Heading: v.text("console.try.token"), Checks: v.text("console.try.checks")}
	if t.State == tryout.Allowed {
		view.Token.Claims = []pages.Fact{
			{Name: v.text("console.try.user"), Code: d.User},
			{Name: v.text("console.try.client"), Code: d.Agent},
			{Name: v.text("console.try.scopes"), Code: strings.Join(d.Scopes, " ")},
			{Name: v.text("console.try.grant"), Code: d.Grant},
			{Name: v.text("console.try.jti"), Code: d.ID},
			{Name: v.text("console.try.aud"), Code: v.brand.InterfaceURL},
			{Name: v.text("console.try.iss"), Code: v.brand.Issuer},
			{Name: v.text("console.try.issued"), Text: ui.Plain(v.date(d.Issued))},
			{Name: v.text("console.try.expires"), Text: ui.Plain(v.date(d.Expires))},
		}
	}
	words := map[verify.Result]string{
		verify.Passed: "console.try.passed", verify.Failed: "console.try.failed", verify.Skipped: "console.try.skipped",
	}
	for _, c := range t.Checks {
		view.Token.Made = append(view.Token.Made, pages.TryCheck{
			Passed: c.Result == verify.Passed, State: v.text(words[c.Result]), What: c.Name, Detail: c.Detail,
		})
	}
}

// trySteps are how far the try has come.
func (v *visit) trySteps(t tryout.Try) []pages.Step {
	outcome := map[tryout.State]string{
		tryout.Waiting: "console.try.step.waiting", tryout.Allowed: "console.try.step.allowed", tryout.Rejected: "console.try.step.allowed",
		tryout.Denied: "console.try.step.denied", tryout.Expired: "console.try.step.expired",
	}
	var out []pages.Step
	for _, s := range []struct {
		what, help string
		done       bool
	}{
		{"console.try.step.asked", "", true},
		{"console.try.step.answered", outcome[t.State], t.State != tryout.Waiting},
		{"console.try.step.verified", "", t.State == tryout.Allowed},
	} {
		state := "console.todo.open"
		if s.done {
			state = "console.todo.done"
		}
		step := pages.Step{Done: s.done, State: v.text(state), What: v.text(s.what)}
		if s.help != "" {
			step.Help = v.text(s.help)
		}
		out = append(out, step)
	}
	return out
}
