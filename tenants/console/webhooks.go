package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"countersign.dev/authority/events"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// The facts that changes of webhooks leave in the trail; the rules write them.
const (
	eventHookCreated  = "webhook.created"
	eventHookRotated  = "webhook.secret_rotated"
	eventHookEnabled  = "webhook.enabled"
	eventHookDisabled = "webhook.disabled"
	eventHookTested   = "webhook.tested"
	eventHookReplayed = "webhook.replayed"
)

// showWebhooks is GET webhooks.
func (v *visit) showWebhooks() error { return v.listWebhooks(http.StatusOK, nil) }

// listWebhooks is the page; wrong is why an endpoint was not made.
func (v *visit) listWebhooks(status int, wrong error) error {
	frame, err := v.brandFrame("webhooks", "console.webhooks.heading")
	if err != nil {
		return err
	}
	all, err := tenants.Webhooks(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	tallies, err := events.Tallies(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	of := make(map[string]events.Tally)
	for _, t := range tallies {
		of[t.Endpoint] = t
	}
	create := v.command("webhook create") + " --url https://…"
	view := pages.TableView{
		Frame: frame, Heading: v.say("console.webhooks.heading"), ProblemHeading: v.text("code.problem"),
		Lead: []ui.Phrase{v.say("console.webhooks.lead")},
		Table: pages.Table{
			Head: []string{
				v.text("console.webhooks.url"), v.text("console.webhooks.events"), v.text("console.webhooks.state"),
				v.text("console.webhooks.waiting"), v.text("console.webhooks.dead"), v.text("console.webhooks.last"),
			},
			Empty: []ui.Phrase{v.say("console.webhooks.none")}, Command: create,
		},
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodGet, "webhooks", ""), v.call(http.MethodPost, "webhooks", `{"url":"https://…","events":["grant.revoked"]}`)},
			[]string{v.command("webhook list"), create},
		),
	}
	if v.r.URL.Query().Has("made") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.webhooks.already")})
	}
	for _, w := range all {
		view.Table.Rows = append(view.Table.Rows, v.webhookRow(w, of[w.ID]))
	}
	if May(v.member.Role, ChangeWebhooks) {
		view.Sections = append(view.Sections, v.newWebhookForm(wrong))
	}
	return v.render(status, pages.Tabled(view))
}

func (v *visit) webhookRow(w tenants.Webhook, t events.Tally) pages.Row {
	last := v.say("console.webhooks.untried")
	if t.LastAt != nil {
		last = ui.Plain(v.date(*t.LastAt))
	}
	return pages.Row{
		{Link: ui.Link{Label: foreign(w.URL), Href: pageOf(v.brand.ID, "webhooks/"+w.ID)}},
		cell(ui.Plain(v.wants(w))), cell(ui.Plain(v.webhookState(w))), cell(ui.Plain(strconv.Itoa(t.Pending))),
		cell(ui.Plain(strconv.Itoa(t.Dead))), cell(last),
	}
}

func (v *visit) wants(w tenants.Webhook) string {
	if len(w.Events) == len(tenants.WebhookEvents()) {
		return v.text("console.webhooks.all")
	}
	return strings.Join(w.Events, ", ")
}

func (v *visit) webhookState(w tenants.Webhook) string {
	switch {
	case w.Enabled:
		return v.text("console.webhooks.on")
	case strings.Contains(w.Note, "410"):
		return v.text("console.webhooks.gone") // its receiver said so
	}
	return v.text("console.webhooks.off")
}

func (v *visit) newWebhookForm(wrong error) pages.Section {
	bad := v.fieldProblems(wrong)
	b := &pages.Boxes{Name: "events", Legend: v.text("console.webhooks.events"), Hint: v.text("console.webhooks.events.hint"), Problem: bad["events"]}
	for _, e := range tenants.WebhookEvents() {
		b.All = append(b.All, pages.Box{Name: "event-" + e, Label: e + " – " + what(v.lang, e), Chosen: v.form.Has("event-" + e)})
	}
	return pages.Section{
		Heading: v.text("console.webhooks.new"), Text: []ui.Phrase{v.say("console.webhooks.new.why")},
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "webhooks"), Hidden: []ui.Hidden{onceField()}, Button: v.say("console.webhooks.new.button"), Boxes: b,
			Fields: []ui.Field{{
				Name: "url", Label: v.text("console.webhooks.url"), Hint: v.text("console.webhooks.url.hint"), Kind: "url", Plain: true,
				Longest: 2000, Value: v.form.Get("url"), Problem: bad["url"],
			}},
			Check: &pages.Check{Name: "format", Value: tenants.FormatSET, Label: v.text("console.webhooks.set"), Checked: v.form.Get("format") == tenants.FormatSET},
		},
	}
}

// addWebhook is POST webhooks.
func (v *visit) addWebhook() error {
	d := tenants.WebhookDraft{URL: strings.TrimSpace(v.form.Get("url")), Format: v.form.Get("format")}
	for _, e := range tenants.WebhookEvents() {
		if v.form.Has("event-" + e) {
			d.Events = append(d.Events, e)
		}
	}
	if p := d.Check(v.h.Site); len(p) > 0 {
		return v.listWebhooks(http.StatusUnprocessableEntity, p)
	}
	edit, err := v.once(eventHookCreated)
	if err != nil {
		return err
	}
	w, secret, err := tenants.CreateWebhook(v.ctx(), edit, v.h.Sealer, v.h.Site, v.brand.ID, d)
	switch {
	case errors.Is(err, tenants.ErrFormSpent):
		return v.redirect(pageOf(v.brand.ID, "webhooks?made"))
	case len(v.fieldProblems(err)) > 0:
		return v.listWebhooks(http.StatusUnprocessableEntity, err)
	case err != nil:
		return err
	}
	return v.showHookOnce(w.ID, secret)
}

func (v *visit) showHookOnce(id, secret string) error {
	v.h.noticesDue(v.brand.ID)
	return v.showOnce("webhooks", pages.ShownView{
		Heading: v.say("console.webhooks.shown"), Lead: []ui.Phrase{v.say("console.shown.once"), v.say("console.webhooks.shown.check")},
		Label: v.text("console.webhooks.secret"), Secret: secret,
		GoOn: v.link("console.webhooks.shown.on", pageOf(v.brand.ID, "webhooks/"+id)),
	})
}
