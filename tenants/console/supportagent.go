package console

import (
	"errors"
	"net/http"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// The facts that changes of the Brand's own agent leave in the trail; the rules
// write them.
const (
	eventEndpointSet     = "agent_endpoint.set"
	eventEndpointRemoved = "agent_endpoint.removed"
	eventEndpointRotated = "agent_endpoint.secret_rotated"
)

// showSupportAgent is GET support-agent: where the Brand's own agent is called.
func (v *visit) showSupportAgent() error {
	return v.tellSupportAgent(http.StatusOK, nil, v.told("removed", "console.supportagent.removed")...)
}

// tellSupportAgent is the page; wrong is why the address was not taken.
func (v *visit) tellSupportAgent(status int, wrong error, notices ...ui.Notice) error {
	frame, err := v.brandFrame("support-agent", "console.supportagent.heading")
	if err != nil {
		return err
	}
	at, err := tenants.AgentEndpointOf(v.ctx(), v.h.DB, v.brand.ID)
	known := err == nil
	if err != nil && !errors.Is(err, tenants.ErrNoAgentEndpoint) {
		return err
	}
	view := pages.ThingView{
		Frame: frame, Heading: v.say("console.supportagent.heading"), ProblemHeading: v.text("code.problem"), Notices: notices,
		Back: v.link("console.supportagent.back", pageOf(v.brand.ID, "interface")),
		Otherwise: v.otherwise(
			v.calls("GET agent-endpoint", `PUT agent-endpoint {"url":"https://…"}`, "POST agent-endpoint/rotate", "POST agent-endpoint/check"),
			v.ofBrand("endpoint show", "endpoint set --url https://…", "endpoint rotate", "endpoint check"),
		),
	}
	if v.brand.Mode != tenants.Hosted {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.supportagent.elsewhere")})
	}
	view.Facts = []pages.Fact{{Name: v.text("console.supportagent.url"), Text: v.say("console.supportagent.none")}}
	if known {
		view.Facts = []pages.Fact{
			{Name: v.text("console.supportagent.url"), Code: at.URL},
			{Name: v.text("console.supportagent.since"), Text: ui.Plain(v.date(at.ChangedAt))},
		}
		if at.FormerUntil != nil && at.FormerUntil.After(v.now) {
			view.Facts = append(view.Facts, pages.Fact{Name: v.text("console.webhook.former"), Text: v.say("console.webhook.former.until", "date", v.date(*at.FormerUntil))})
		}
	}
	view.Ways = v.supportAgentWays(at, known, v.fieldProblems(wrong))
	return v.render(status, pages.Thing(view))
}

// supportAgentWays are what the member can do with it.
func (v *visit) supportAgentWays(at tenants.AgentEndpoint, known bool, bad map[string]string) []pages.Section {
	way := func(key string, form pages.Form, args ...any) pages.Section {
		if form.Button == nil {
			form.Button = v.say(key + ".button")
		}
		return pages.Section{Heading: v.text(key), Text: []ui.Phrase{v.say(key+".why", args...)}, Form: form}
	}
	place := func(to string) string { return pageOf(v.brand.ID, "support-agent"+to) }
	var ways []pages.Section
	if known && May(v.member.Role, LookOutside) {
		ways = append(ways, way("console.supportagent.check", pages.Form{Action: place("/check")}))
	}
	if !May(v.member.Role, ChangeAgentEndpoint) {
		return ways
	}
	url := at.URL
	if v.form.Has("url") {
		url = v.form.Get("url")
	}
	ways = append(ways, way("console.supportagent.set", pages.Form{
		Action: place(""), Hidden: []ui.Hidden{onceField()},
		Fields: []ui.Field{{
			Name: "url", Label: v.text("console.supportagent.url"), Hint: v.text("console.webhooks.url.hint"), Kind: "url", Plain: true,
			Longest: 2000, Value: url, Problem: bad["url"],
		}},
	}))
	if known {
		ways = append(ways,
			way("console.supportagent.rotate", pages.Form{
				Action: place("/secret"), Hidden: []ui.Hidden{onceField()},
				Check: &pages.Check{Name: "at-once", Value: "yes", Label: v.text("console.webhook.rotate.now")},
			}, "hours", int(tenants.AgentOverlap.Hours())),
			way("console.supportagent.remove", pages.Form{Action: place("/remove")}))
	}
	return ways
}

// setSupportAgent is POST support-agent.
func (v *visit) setSupportAgent() error {
	url := strings.TrimSpace(v.form.Get("url"))
	if p := tenants.CheckAgentURL(url, v.h.Site); len(p) > 0 {
		return v.tellSupportAgent(http.StatusUnprocessableEntity, p)
	}
	edit, err := v.once(eventEndpointSet)
	if err != nil {
		return err
	}
	secret, err := tenants.SetAgentEndpoint(v.ctx(), edit, v.h.Sealer, v.h.Site, v.brand.ID, url)
	if errors.Is(err, tenants.ErrFormSpent) {
		return v.redirect(pageOf(v.brand.ID, "support-agent"))
	}
	if err != nil {
		return err
	}
	if secret == "" { // it is called there already
		return v.made("support-agent")
	}
	return v.showAgentSecret(secret)
}

// renewAgentSecret is POST support-agent/secret.
func (v *visit) renewAgentSecret() error {
	edit, err := v.once(eventEndpointRotated)
	if err != nil {
		return err
	}
	overlap := tenants.AgentOverlap
	if v.form.Get("at-once") == "yes" {
		overlap = 0
	}
	secret, err := tenants.RotateAgentSecret(v.ctx(), v.h.DB, edit, v.h.Sealer, v.brand.ID, overlap)
	switch {
	case errors.Is(err, tenants.ErrFormSpent):
		return v.redirect(pageOf(v.brand.ID, "support-agent"))
	case errors.Is(err, tenants.ErrNoAgentEndpoint):
		return problem{kind: stale, retry: pageOf(v.brand.ID, "support-agent"), cause: err}
	case err != nil:
		return err
	}
	return v.showAgentSecret(secret)
}

func (v *visit) showAgentSecret(secret string) error {
	v.h.noticesDue(v.brand.ID)
	return v.showOnce("support-agent", pages.ShownView{
		Heading: v.say("console.supportagent.shown"), Lead: []ui.Phrase{v.say("console.shown.once"), v.say("console.supportagent.shown.check")},
		Label: v.text("console.webhooks.secret"), Secret: secret,
		GoOn: v.link("console.webhooks.shown.on", pageOf(v.brand.ID, "support-agent")),
	})
}

// removeSupportAgent is POST support-agent/remove.
func (v *visit) removeSupportAgent() error {
	_, err := tenants.SetAgentEndpoint(v.ctx(), v.edits(eventEndpointRemoved), v.h.Sealer, v.h.Site, v.brand.ID, "")
	if err != nil {
		return err
	}
	return v.made("support-agent?removed")
}

// checkSupportAgent is POST support-agent/check: a signed test call, and what came
// back.
func (v *visit) checkSupportAgent() error {
	if err := v.limited(v.h.looks, string(v.brand.ID)); err != nil {
		return err
	}
	t, err := v.h.TryAgent(v.ctx(), v.brand.ID)
	if errors.Is(err, tenants.ErrNoAgentEndpoint) {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "support-agent"), cause: err}
	}
	if err != nil {
		return err
	}
	if t.Wrong != "" {
		return v.tellSupportAgent(http.StatusOK, nil, v.warning("console.supportagent.wrong", "ms", int(t.Took.Milliseconds()), "why", v.cause(t.Wrong)))
	}
	said := v.say("console.supportagent.answered", "ms", int(t.Took.Milliseconds()))
	const most = 300 // of what may be a long text
	text := []rune(t.Text)
	if len(text) > most {
		text = append(text[:most], '…')
	}
	said = append(said, ui.Span{Text: " "}, ui.Span{Text: string(text), Origin: ui.Foreign})
	return v.tellSupportAgent(http.StatusOK, nil, ui.Notice{Text: said})
}
