package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"countersign.dev/authority/events"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// deliveriesPage is how many deliveries a page shows.
const deliveriesPage = 25

// webhook finds the endpoint in the address.
func (v *visit) webhook() (tenants.Webhook, error) {
	all, err := tenants.Webhooks(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return tenants.Webhook{}, err
	}
	i := slices.IndexFunc(all, func(w tenants.Webhook) bool { return w.ID == v.r.PathValue("webhook") })
	if i < 0 {
		return tenants.Webhook{}, problem{kind: notFound}
	}
	return all[i], nil
}

// showWebhook is GET webhooks/{webhook}.
func (v *visit) showWebhook() error {
	w, err := v.webhook()
	if err != nil {
		return err
	}
	return v.tellWebhook(http.StatusOK, w)
}

func (v *visit) tellWebhook(status int, w tenants.Webhook, notices ...ui.Notice) error {
	frame, err := v.brandFrame("webhooks", "console.webhook.heading")
	if err != nil {
		return err
	}
	more, dead, err := v.deliveries(w)
	if err != nil {
		return err
	}
	api := "webhooks/" + w.ID
	view := pages.ThingView{
		Frame: frame, Heading: v.say("console.webhook.heading"), Notices: notices, More: more,
		Facts: []pages.Fact{
			{Name: v.text("console.webhooks.url"), Code: w.URL},
			{Name: v.text("console.webhooks.state"), Text: ui.Plain(v.webhookState(w))},
			{Name: v.text("console.webhooks.events"), Text: ui.Plain(v.wants(w))},
			{Name: v.text("console.webhook.format"), Text: v.webhookFormat(w)},
			{Name: v.text("console.webhook.made"), Text: ui.Plain(v.date(w.CreatedAt))},
		},
		Back: v.link("console.webhook.back", pageOf(v.brand.ID, "webhooks")),
		Otherwise: v.otherwise(
			[]string{
				v.call(http.MethodGet, api+"/deliveries?state=dead", ""), v.call(http.MethodPost, api+"/rotate", ""),
				v.call(http.MethodPost, api+"/disable", ""), v.call(http.MethodPost, api+"/enable", ""),
				v.call(http.MethodPost, api+"/test", ""), v.call(http.MethodPost, api+"/replay", `{}`),
			},
			[]string{
				v.command("webhook deliveries") + " --id " + w.ID + " --state dead", v.command("webhook rotate") + " --id " + w.ID,
				v.command("webhook disable") + " --id " + w.ID, v.command("webhook enable") + " --id " + w.ID,
				v.command("webhook test") + " --id " + w.ID, v.command("webhook replay") + " --id " + w.ID,
			},
		),
	}
	if w.FormerUntil != nil && w.FormerUntil.After(v.now) {
		view.Facts = append(view.Facts, pages.Fact{Name: v.text("console.webhook.former"), Text: v.say("console.webhook.former.until", "date", v.date(*w.FormerUntil))})
	}
	q := v.r.URL.Query()
	for param, key := range map[string]string{"tested": "console.webhook.tested", "replayed": "console.webhook.replayed"} {
		if q.Has(param) {
			view.Notices = append(view.Notices, ui.Notice{Text: v.say(key)})
		}
	}
	if May(v.member.Role, ChangeWebhooks) {
		view.Ways = v.webhookWays(w, dead)
	}
	return v.render(status, pages.Thing(view))
}

func (v *visit) webhookFormat(w tenants.Webhook) ui.Phrase {
	if w.Format == tenants.FormatSET {
		return v.say("console.webhook.format.set")
	}
	return v.say("console.webhook.format.json")
}

// webhookWays are what can be done with the endpoint as it now stands.
func (v *visit) webhookWays(w tenants.Webhook, dead int) []pages.Section {
	at := pageOf(v.brand.ID, "webhooks/"+w.ID)
	way := func(heading string, text ui.Phrase, form pages.Form) pages.Section {
		return pages.Section{Heading: heading, Text: []ui.Phrase{text}, Form: form}
	}
	secret := way(v.text("console.webhook.rotate"), v.say("console.webhook.rotate.why", "hours", int(tenants.WebhookOverlap.Hours())), pages.Form{
		Action: at + "/secret", Hidden: []ui.Hidden{onceField()}, Button: v.say("console.webhook.rotate.button"),
		Check: &pages.Check{Name: "at-once", Value: "yes", Label: v.text("console.webhook.rotate.now")},
	})
	if !w.Enabled {
		return []pages.Section{
			way(v.text("console.webhook.enable"), v.say("console.webhook.enable.why"), pages.Form{Action: at + "/enable", Button: v.say("console.webhook.enable.button")}),
			secret,
		}
	}
	ways := []pages.Section{
		way(v.text("console.webhook.test"), v.say("console.webhook.test.why"), pages.Form{Action: at + "/test", Button: v.say("console.webhook.test.button")}),
	}
	if dead > 0 {
		ways = append(ways, way(v.text("console.webhook.replay"), v.say("console.webhook.replay.why", "count", dead), pages.Form{
			Action: at + "/replay", Button: v.say("console.webhook.replay.button"),
		}))
	}
	return append(ways, secret,
		way(v.text("console.webhook.disable"), v.say("console.webhook.disable.why"), pages.Form{Action: at + "/disable", Button: v.say("console.webhook.disable.button")}))
}

// deliveryWords are the states of a delivery; the empty one is all of them.
var deliveryWords = []struct{ state, key string }{
	{"", "console.delivery.all"},
	{"pending", "console.delivery.pending"},
	{"delivered", "console.delivery.delivered"},
	{"dead", "console.delivery.dead"},
}

// deliveries is the table below the endpoint: one state and one page of it, as
// the address says. What it does not understand there it passes over.
func (v *visit) deliveries(w tenants.Webhook) (more pages.More, dead int, err error) {
	q := v.r.URL.Query()
	which := events.Which{Endpoint: w.ID, State: q.Get("state")}
	if !slices.ContainsFunc(deliveryWords, func(d struct{ state, key string }) bool { return d.state == which.State }) {
		which.State = ""
	}
	which.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64)
	which.Before = max(which.Before, 0)
	list, err := events.Some(v.ctx(), v.h.DB, v.brand.ID, which, deliveriesPage+1)
	if err != nil {
		return more, 0, err
	}
	tallies, err := events.Tallies(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return more, 0, err
	}
	for _, t := range tallies {
		if t.Endpoint == w.ID {
			dead = t.Dead
		}
	}
	at := pageOf(v.brand.ID, "webhooks/"+w.ID)
	more = pages.More{Heading: v.text("console.deliveries.heading"), Label: v.text("console.deliveries.filter"), Table: pages.Table{
		Head: []string{
			v.text("console.changes.what"), v.text("console.webhooks.state"), v.text("console.delivery.attempts"),
			v.text("console.delivery.last"), v.text("console.delivery.answer"), v.text("console.members.edit"),
		},
		Empty: []ui.Phrase{v.say("console.deliveries.none")},
	}}
	for _, d := range deliveryWords {
		l := v.link(d.key, at+"?"+url.Values{"state": {d.state}}.Encode())
		l.Current = d.state == which.State
		more.Filters = append(more.Filters, l)
	}
	for i, d := range list {
		if i == deliveriesPage {
			more.Older = v.link("console.deliveries.older", at+"?"+url.Values{
				"state": {which.State}, "before": {strconv.FormatInt(list[i-1].Seq, 10)},
			}.Encode())
			break
		}
		more.Table.Rows = append(more.Table.Rows, v.deliveryRow(w, d))
	}
	return more, dead, nil
}

func (v *visit) deliveryRow(w tenants.Webhook, d events.Delivery) pages.Row {
	state := ""
	for _, one := range deliveryWords {
		if one.state == d.State {
			state = v.text(one.key)
		}
	}
	last, answer, note := v.text("console.delivery.untried"), "–", v.cause(d.LastError)
	if d.LastAt != nil {
		last = v.date(*d.LastAt)
	}
	if d.LastStatus != nil {
		answer = strconv.Itoa(*d.LastStatus)
	}
	if d.State == "pending" {
		state += ", " + v.text("console.delivery.due", "date", v.date(d.DueAt))
	}
	row := pages.Row{
		{Text: ui.Plain(what(v.lang, d.Event)), Code: d.ID.String()},
		cell(ui.Plain(state)), cell(ui.Plain(strconv.Itoa(d.Attempts))),
		cell(ui.Plain(last)),
		{Text: ui.Plain(answer), Note: note},
		{},
	}
	if d.State != "pending" && w.Enabled && May(v.member.Role, SendWebhooks) {
		row[5].Button = ui.Post{
			Action: pageOf(v.brand.ID, "webhooks/"+w.ID+"/replay"), Hidden: []ui.Hidden{{Name: "delivery", Value: d.ID.String()}},
			Button: ui.Button{Label: v.say("console.delivery.again")},
		}
	}
	return row
}

// renewWebhook is POST webhooks/{webhook}/secret.
func (v *visit) renewWebhook() error {
	w, err := v.webhook()
	if err != nil {
		return err
	}
	edit, err := v.once(eventHookRotated)
	if err != nil {
		return err
	}
	overlap := tenants.WebhookOverlap
	if v.form.Get("at-once") == "yes" {
		overlap = 0
	}
	secret, err := tenants.RotateWebhook(v.ctx(), edit, v.h.Sealer, v.brand.ID, w.ID, overlap)
	if errors.Is(err, tenants.ErrFormSpent) {
		return v.redirect(pageOf(v.brand.ID, "webhooks?made"))
	}
	if err != nil {
		return err
	}
	return v.showHookOnce(w.ID, secret)
}

// disableWebhook is POST webhooks/{webhook}/disable.
func (v *visit) disableWebhook() error { return v.switchWebhook(eventHookDisabled, false) }

// enableWebhook is POST webhooks/{webhook}/enable.
func (v *visit) enableWebhook() error { return v.switchWebhook(eventHookEnabled, true) }

func (v *visit) switchWebhook(event string, on bool) error {
	w, err := v.webhook()
	if err != nil {
		return err
	}
	if w.Enabled != on { // what was done already tells nobody anything
		err = tenants.EnableWebhook(v.ctx(), v.edits(event), v.brand.ID, w.ID, on, "")
		if errors.Is(err, tenants.ErrTooManyWebhooks) {
			return v.tellWebhook(http.StatusConflict, w, v.warning("console.webhook.toomany"))
		}
		if err != nil {
			return err
		}
		v.h.noticesDue(v.brand.ID)
	}
	return v.redirect(pageOf(v.brand.ID, "webhooks/"+w.ID))
}

// testWebhook is POST webhooks/{webhook}/test.
func (v *visit) testWebhook() error {
	w, err := v.webhook()
	if err != nil {
		return err
	}
	if err := v.limited(v.h.invites, "webhook test "+string(v.brand.ID)); err != nil {
		return err
	}
	act := v.act(eventHookTested)
	act.Detail = map[string]any{"endpoint": w.ID}
	err = v.h.DB.Tx(v.ctx(), v.brand.ID, func(tx pgx.Tx) error {
		if err := act.In(v.ctx(), tx); err != nil {
			return err
		}
		return v.h.Outbox.Test(v.ctx(), tx, v.brand.ID, w.ID)
	})
	return v.sentOff(w, err, "tested")
}

// replayWebhook is POST webhooks/{webhook}/replay: one delivery, or all dead ones.
func (v *visit) replayWebhook() error {
	w, err := v.webhook()
	if err != nil {
		return err
	}
	id := w.ID
	if one := v.form.Get("delivery"); one != "" {
		if _, err := uuid.Parse(one); err != nil {
			return problem{kind: stale, retry: v.from(), cause: err}
		}
		id = one
	}
	act := v.act(eventHookReplayed)
	act.Detail = map[string]any{"endpoint": w.ID}
	_, err = v.h.Outbox.Replay(v.ctx(), v.brand.ID, id, func(ctx context.Context, tx pgx.Tx) error { return act.In(ctx, tx) })
	return v.sentOff(w, err, "replayed")
}

// sentOff says what became of something to send.
func (v *visit) sentOff(w tenants.Webhook, err error, param string) error {
	switch {
	case errors.Is(err, events.ErrOff):
		return v.tellWebhook(http.StatusConflict, w, v.warning("console.webhook.isoff"))
	case errors.Is(err, events.ErrNoDelivery):
		return v.tellWebhook(http.StatusConflict, w, v.warning("console.webhook.nothing"))
	case err != nil:
		return err
	}
	return v.redirect(pageOf(v.brand.ID, "webhooks/"+w.ID+"?"+param))
}
