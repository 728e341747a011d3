package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// ending is what somebody is about to end, or has ended: the ticked grants, one
// permission of one of them, or all of a user or an agent.
type ending struct {
	these   []uuid.UUID
	scope   string
	subject string
	agent   string
}

func (e ending) which() authority.Which {
	return authority.Which{Subject: e.subject, Agent: e.agent}
}

// askedEnding reads what the address names: exactly one of it.
func (v *visit) askedEnding() (ending, error) {
	var e ending
	if err := v.askedAll(map[string]*string{"scope": &e.scope, "subject": &e.subject}); err != nil {
		return e, err
	}
	return e.parse(v.r.URL.Query()["g"])
}

// sentEnding reads what the form of the confirmation carries.
func (v *visit) sentEnding() (ending, error) {
	e := ending{scope: v.form.Get("scope"), subject: v.form.Get("subject")}
	return e.parse(strings.Fields(v.form.Get("grants")))
}

func (e ending) parse(ids []string) (ending, error) {
	for _, text := range ids {
		id, err := uuid.Parse(text)
		if err != nil || id == uuid.Nil {
			return e, problem{kind: notFound}
		}
		if !slices.Contains(e.these, id) {
			e.these = append(e.these, id)
		}
	}
	fine := len(e.these) > 0 && e.subject == "" || len(e.these) == 0 && e.subject != ""
	if !fine || !isID(e.subject) || !isID(e.scope) || len(e.these) > grantsPage || e.scope != "" && len(e.these) != 1 {
		return e, problem{kind: stale}
	}
	return e, nil
}

// showEnd is GET grants/end: exactly what would end, and for how many people.
func (v *visit) showEnd() error {
	if q := v.r.URL.Query(); !q.Has("g") && !q.Has("subject") { // nothing was ticked
		return v.redirect(pageOf(v.brand.ID, "grants"))
	}
	e, err := v.askedEnding()
	if err != nil {
		return err
	}
	return v.confirmEnd(e)
}

// showEndAgent is GET end-agent.
func (v *visit) showEndAgent() error {
	agent, err := v.asked("agent")
	if err != nil {
		return err
	}
	if agent == "" {
		return problem{kind: notFound}
	}
	return v.confirmEnd(ending{agent: agent})
}

func (v *visit) confirmEnd(e ending) error {
	frame, err := v.brandFrame("grants", "console.end.heading")
	if err != nil {
		return err
	}
	toll, err := v.h.Authority.Toll(v.ctx(), v.brand.ID, e.which(), e.these)
	if err != nil {
		return err
	}
	view := pages.EndView{
		Frame: frame, Heading: v.say("console.end.heading"),
		Back: v.link("console.end.back", v.inQuery("grants", "subject", e.subject, "agent", e.agent)),
	}
	view.Otherwise = v.endOtherwise(e)
	items, held, err := v.whatEnds(e)
	if err != nil {
		return err
	}
	if toll.Grants == 0 || e.scope != "" && !held {
		view.Heading, view.Lead = v.say("console.end.nothing"), []ui.Phrase{v.say("console.end.nothing.text")}
		return v.render(http.StatusOK, pages.End(view))
	}
	view.Items = items
	action, button := "grants/end", "console.end.button"
	switch {
	case e.scope != "":
		view.Heading = v.say("console.end.scope", "permission", v.permission(e.scope))
		view.Lead = []ui.Phrase{v.say("console.end.scope.text"), v.say("console.end.back.no")}
		button = "console.end.scope.button"
	case e.agent != "":
		action = "end-agent"
		view.Heading = v.say("console.end.agent", "agent", e.agent)
		view.Lead = append(v.tollLines(toll), v.say("console.end.meanwhile"), v.say("console.end.back.no"), v.say("console.end.agent.again"))
	case e.subject != "":
		view.Heading = v.say("console.end.user", "user", e.subject)
		view.Lead = append(v.tollLines(toll), v.say("console.end.meanwhile"), v.say("console.end.back.no"))
	default:
		view.Heading = v.say("console.end.these", "count", toll.Grants)
		view.Lead = append(v.tollLines(toll), v.say("console.end.back.no"))
	}
	view.Form = pages.Form{Action: pageOf(v.brand.ID, action), Hidden: e.hidden(), Button: v.say(button)}
	return v.render(http.StatusOK, pages.End(view))
}

// tollLines say how much ends, and for how many people.
func (v *visit) tollLines(t authority.Toll) []ui.Phrase {
	return []ui.Phrase{
		v.say("console.end.grants", "count", t.Grants), v.say("console.end.people", "count", t.People),
		v.say("console.end.agents", "count", t.Agents),
	}
}

// whatEnds lists the ticked grants that live, and whether the first of them holds
// the permission that is meant.
func (v *visit) whatEnds(e ending) (items []pages.EndItem, holds bool, err error) {
	for _, id := range e.these {
		r, err := v.h.Authority.Look(v.ctx(), v.brand.ID, id)
		if err != nil {
			return nil, false, err
		}
		if !r.Living(v.now) {
			continue
		}
		item := pages.EndItem{Agent: v.agentName(r), User: r.Subject, May: v.permissions(r.Scopes)}
		if e.scope != "" {
			holds = slices.Contains(r.Scopes, e.scope)
			item.May = v.permission(e.scope)
		}
		items = append(items, item)
	}
	return items, holds, nil
}

func (e ending) hidden() []ui.Hidden {
	var ids []string
	for _, id := range e.these {
		ids = append(ids, id.String())
	}
	var out []ui.Hidden
	for _, h := range []ui.Hidden{
		{Name: "grants", Value: strings.Join(ids, " ")},
		{Name: "scope", Value: e.scope},
		{Name: "subject", Value: e.subject},
		{Name: "agent", Value: e.agent},
	} {
		if h.Value != "" {
			out = append(out, h)
		}
	}
	return out
}

// end is POST grants/end. Whoever ends what has ended hears that.
func (v *visit) end() error {
	e, err := v.sentEnding()
	if err != nil {
		return err
	}
	if e.subject != "" {
		return v.endAll(e)
	}
	if e.scope != "" {
		err := v.h.Authority.EndScope(v.ctx(), v.brand.ID, v.me(), e.these[0], e.scope)
		if errors.Is(err, authority.ErrUnknown) { // somebody was quicker, or it is nobody's
			return v.tellEnd(e, 0, 0, false)
		}
		if err != nil {
			return err
		}
		return v.tellEnd(e, 1, 0, false)
	}
	n, err := v.h.Authority.EndThese(v.ctx(), v.brand.ID, v.me(), e.these)
	if err != nil {
		return err
	}
	return v.tellEnd(e, n, 0, false)
}

// endAgent is POST end-agent.
func (v *visit) endAgent() error {
	e := ending{agent: v.form.Get("agent")}
	if e.agent == "" || !isID(e.agent) {
		return problem{kind: stale}
	}
	return v.endAll(e)
}

// endAll ends some thousands, and says how many are left: a page that is silent
// for minutes would be taken for dead. What ended before an error is told too.
func (v *visit) endAll(e ending) error {
	n, err := v.h.Authority.EndSome(v.ctx(), v.brand.ID, v.me(), e.which())
	if err != nil && n == 0 {
		return err
	}
	broken := err != nil
	if broken {
		v.h.Log.ErrorContext(v.ctx(), "ending many was broken off", "brand", string(v.brand.ID), "ended", n, "error", err)
	}
	left, err := v.h.Authority.Toll(v.ctx(), v.brand.ID, e.which(), nil)
	if err != nil {
		return err
	}
	return v.tellEnd(e, n, left.Grants, broken)
}

// tellEnd is the result.
func (v *visit) tellEnd(e ending, ended, left int, broken bool) error {
	frame, err := v.brandFrame("grants", "console.ended.heading")
	if err != nil {
		return err
	}
	view := pages.EndView{
		Frame: frame, Heading: v.say("console.ended.heading"),
		Lead: []ui.Phrase{v.say("console.ended.count", "count", ended), v.say("console.ended.seen")},
		Back: v.link("console.end.back", v.inQuery("grants", "subject", e.subject, "agent", e.agent)),
	}
	if len(e.these) == 1 {
		view.GoOn = v.link("console.ended.story", pageOf(v.brand.ID, "grants/"+e.these[0].String()))
	}
	switch {
	case e.scope != "" && ended > 0:
		view.Lead[0] = v.say("console.ended.scope", "permission", v.permission(e.scope))
	case left > 0:
		view.Heading = v.say("console.ended.more")
		view.Lead[0] = v.say("console.ended.count", "count", ended)
		view.Lead[1] = v.say("console.ended.left", "count", left)
		if broken {
			view.Notices = append(view.Notices, v.warning("console.ended.broken"))
		}
		action := "grants/end"
		if e.agent != "" {
			action = "end-agent"
		}
		view.Form = pages.Form{Action: pageOf(v.brand.ID, action), Hidden: e.hidden(), Button: v.say("console.ended.goon")}
		view.Otherwise = v.endOtherwise(e)
	case ended == 0:
		view.Lead = []ui.Phrase{v.say("console.ended.already")}
	}
	return v.render(http.StatusOK, pages.End(view))
}

func (v *visit) endOtherwise(e ending) pages.Otherwise {
	brand := " --brand " + string(v.brand.ID)
	var calls, commands []string
	switch {
	case e.agent != "":
		calls = append(calls, v.call(http.MethodPost, "grants/revoke", jsonOf("agent", e.agent)))
		commands = append(commands, "grants revoke"+brand+" --agent "+quoted(e.agent))
	case e.subject != "":
		calls = append(calls, v.call(http.MethodPost, "grants/revoke", jsonOf("subject", e.subject)))
		commands = append(commands, "grants revoke"+brand+" --subject "+quoted(e.subject))
	case e.scope != "":
		id := e.these[0].String()
		calls = append(calls, v.call(http.MethodPost, "grants/"+id+"/scopes/"+url.PathEscape(e.scope)+"/revoke", ""))
		commands = append(commands, "grants revoke"+brand+" --grant "+id+" --scope "+quoted(e.scope))
	default:
		for _, id := range e.these {
			calls = append(calls, v.call(http.MethodPost, "grants/"+id.String()+"/revoke", ""))
			commands = append(commands, "grants revoke"+brand+" --grant "+id.String())
		}
	}
	return v.otherwise(calls, commands)
}
