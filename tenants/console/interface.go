package console

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

const eventInterface = "brand.interface"

// showInterface is GET interface.
func (v *visit) showInterface() error {
	now, err := tenants.InterfaceOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	return v.tellInterface(http.StatusOK, now, now, nil, pages.Checks{})
}

// tellInterface is the page; want is what the form holds.
func (v *visit) tellInterface(status int, now, want tenants.Interface, problems map[string]string, found pages.Checks) error {
	frame, err := v.brandFrame("interface", "console.interface.heading")
	if err != nil {
		return err
	}
	code := func(key, value string) pages.Pair { return pages.Pair{Label: v.text(key), Value: value, Code: true} }
	view := pages.InterfaceView{
		Frame: frame, Heading: v.say("console.interface.heading"), Lead: []ui.Phrase{v.say("console.interface.lead")},
		Notices: append(v.told("moved", "console.interface.moved"), v.told("named", "console.provider.named")...), ProblemHeading: v.text("code.problem"),
		NowHeading: v.text("console.interface.now"),
		Now: []pages.Pair{
			{Label: v.text("console.interface.mode"), Value: v.text(wayKeys[now.Mode])},
			code("console.interface.url", now.URL), code("console.interface.issuer", now.Issuer),
			code("console.interface.card", v.brand.CardURL()),
		},
		Audience: pages.Publication{
			Heading: v.text("console.interface.audience"),
			Pairs:   []pages.Pair{code("console.interface.aud", now.Audience), code("console.interface.provider", now.Provider)},
		},
		AudienceText: v.say("console.interface.audience.own"),
		CheckHeading: v.text("console.interface.check"), CheckLead: v.say("console.interface.check.lead"), Checks: found,
		WaysHeading: v.text("console.interface.ways"),
		Otherwise:   v.otherwise(v.calls("GET interface", "POST interface/check", `PUT interface {"mode":"fronted","interface_url":"https://agents.example.com"}`, "GET providers", `PUT providers/own {"name":"Harbor Hotels"}`), v.ofBrand("brand show", "brand check", "brand move --mode fronted --interface https://agents.example.com --confirm "+string(v.brand.ID), "tenant show", `tenant name --name "Harbor Hotels"`)),
	}
	if May(v.member.Role, LookOutside) {
		view.Check = v.post("console.interface.check.button", "interface/check")
	}
	for _, m := range []tenants.Mode{tenants.Hosted, tenants.Fronted, tenants.Split} {
		way := pages.LifeWay{Heading: v.text(wayKeys[m]), Text: v.say(wayKeys[m] + ".what"), Needs: v.say(wayKeys[m] + ".needs")}
		if m == now.Mode {
			way.Current = v.text("console.interface.current")
		}
		if m == tenants.Split {
			way.Care = []ui.Notice{v.warning("console.way.split.care")}
		}
		view.Ways = append(view.Ways, way)
	}
	view.ProvidersHeading, view.ProvidersLead = v.text("console.provider.heading"), v.say("console.provider.lead")
	var all []tenants.ProviderView
	if view.Providers, all, err = v.providers(); err != nil {
		return err
	}
	for _, p := range all {
		switch {
		case !p.Present:
		case p.Shared:
			view.AudienceText = v.say("console.interface.audience.shared")
		case len(p.Brands) > 1:
			view.AudienceText = v.say("console.interface.audience.several", "provider", p.Name)
		}
	}
	view.Name = v.providerForm(all, problems)
	if May(v.member.Role, ChangeInterface) {
		if view.Move, err = v.moveForm(want, problems); err != nil {
			return err
		}
	}
	return v.render(status, pages.Interface(view))
}

var wayKeys = map[tenants.Mode]string{
	tenants.Hosted: "console.way.hosted", tenants.Fronted: "console.way.fronted", tenants.Split: "console.way.split",
}

func (v *visit) moveForm(want tenants.Interface, problems map[string]string) (pages.Invite, error) {
	own := string(v.brand.ID)
	place := want.URL
	if want.Mode == tenants.Hosted {
		place = "" // ours, and not to be typed
	}
	audience := v.field("audience", "", problems)
	if want.Provider == own {
		audience.Value = want.Audience
	}
	provider, err := v.providerChoices(want.Provider, problems)
	return pages.Invite{
		Heading: v.text("console.interface.move"), Lead: v.say("console.interface.move.lead"),
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "interface/move"), Button: v.say("console.interface.move.button"),
			Fields: []ui.Field{
				v.choice("mode", string(want.Mode), problems,
					[2]string{string(tenants.Hosted), "console.way.hosted"},
					[2]string{string(tenants.Fronted), "console.way.fronted"},
					[2]string{string(tenants.Split), "console.way.split"}),
				v.field("interface_url", place, problems),
				provider,
				audience,
			},
		},
	}, err
}

// checkInterface is POST interface/check: the Brand as a strict agent sees it.
func (v *visit) checkInterface() error {
	if err := v.limited(v.h.looks, string(v.brand.ID)); err != nil {
		return err
	}
	now, err := tenants.InterfaceOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	lines := v.h.ExamineInterface(v.ctx(), v.brand)
	return v.tellInterface(http.StatusOK, now, now, nil, v.checks("console.interface.found", "console.interface.found.lead", lines, nil))
}

// wanted is the move that the form or the address names.
func wanted(values url.Values) tenants.Interface {
	return tenants.Interface{
		Mode: tenants.Mode(values.Get("mode")), URL: values.Get("interface_url"),
		Provider: values.Get("provider"), Audience: values.Get("audience"),
	}
}

// reviewMove is GET interface/move: what the move would do, and how many lose
// what they allowed. It changes nothing.
func (v *visit) reviewMove() error {
	return v.tellMove(http.StatusOK, wanted(v.r.URL.Query()), nil, v.touchFirst(ChangeInterface))
}

func (v *visit) tellMove(status int, want tenants.Interface, problems map[string]string, notices []ui.Notice) error {
	now, err := tenants.InterfaceOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	after, err := tenants.CheckInterface(v.ctx(), v.edits(), v.h.Site, v.brand.ID, want, false)
	if wrong, ok := v.toMend(err); ok {
		return v.tellInterface(http.StatusUnprocessableEntity, now, want, wrong, pages.Checks{})
	}
	if err != nil {
		return err
	}
	frame, err := v.brandFrame("interface", "console.move.heading")
	if err != nil {
		return err
	}
	view := pages.MoveView{
		Frame: frame, Heading: v.say("console.move.heading"), ProblemHeading: v.text("code.problem"), Notices: notices,
		Back: v.link("console.move.back", pageOf(v.brand.ID, "interface")), Diff: v.diff(tenants.Diff(now, after), true, true),
	}
	if now == after {
		view.Lead = []ui.Phrase{v.say("console.move.same")}
		return v.render(status, pages.Move(view))
	}
	view.Lead = []ui.Phrase{v.say("console.move.lead")}
	form := pages.Form{
		Action: pageOf(v.brand.ID, "interface/move"), Button: v.say("console.move.button"),
		Hidden: []ui.Hidden{
			{Name: "mode", Value: string(want.Mode)},
			{Name: "interface_url", Value: want.URL},
			{Name: "provider", Value: want.Provider},
			{Name: "audience", Value: want.Audience},
			{Name: "seen", Value: seen(now)},
		},
	}
	if now.Mode != after.Mode || now.URL != after.URL || now.Issuer != after.Issuer {
		living, err := v.h.Authority.CountLiving(v.ctx(), v.brand.ID)
		if err != nil {
			return err
		}
		view.Notices = append(view.Notices, v.warning("console.move.ends", "count", living.Grants, "people", living.People, "agents", living.Agents))
		form.Button = v.say("console.move.button.ends", "count", living.Grants)
	}
	if now.Audience != after.Audience {
		view.Notices = append(view.Notices, v.warning("console.move.audience", "audience", after.Audience))
	}
	if joins, err := v.joinsAnothers(after.Provider, now.Provider); err != nil {
		return err
	} else if joins {
		view.Notices = append(view.Notices, v.warning("console.move.joins", "provider", after.Provider))
	}
	if after.Mode == tenants.Split && now.Mode != tenants.Split {
		view.Notices = append(view.Notices, v.warning("console.way.split.care"))
	}
	confirm := v.field("confirm", "", problems)
	confirm.Hint = v.text("console.move.confirm.hint", "id", v.brand.ID)
	form.Fields = []ui.Field{confirm}
	view.Form = form
	return v.render(status, pages.Move(view))
}

// seen stands for an interface as somebody saw it.
func seen(i tenants.Interface) string {
	raw, _ := json.Marshal(i) // a struct of texts
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// moveInterface is POST interface/move.
func (v *visit) moveInterface() error {
	want := wanted(v.form)
	now, err := tenants.InterfaceOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	if v.form.Get("seen") != seen(now) {
		// Somebody moved it meanwhile: what was read above the button is not true.
		return problem{kind: stale, retry: pageOf(v.brand.ID, "interface")}
	}
	if v.form.Get("confirm") != string(v.brand.ID) {
		return v.tellMove(http.StatusUnprocessableEntity, want, map[string]string{"confirm": v.text("console.move.unconfirmed", "id", v.brand.ID)}, nil)
	}
	const patience = 8 * time.Second // less than the request has: there must be time to say it
	ctx, cancel := context.WithTimeout(v.ctx(), patience)
	defer cancel()
	err = tenants.SetInterface(ctx, v.edits(eventInterface), v.h.Site, v.brand.ID, want, v.form.Get("confirm"), false)
	if problems, ok := v.toMend(err); ok {
		return v.tellInterface(http.StatusUnprocessableEntity, now, want, problems, pages.Checks{})
	}
	if errors.Is(err, context.DeadlineExceeded) && v.ctx().Err() == nil {
		// Very many grants: those that have ended stay ended, and the next press goes on.
		return problem{kind: halfway, retry: pageOf(v.brand.ID, "interface"), cause: err}
	}
	if err != nil {
		return err
	}
	return v.made("interface?moved")
}

// diff words a change, field by field, in a steady order: what was, what will be, or
// both. Of what is only made or only goes there is no column of dashes.
func (v *visit) diff(all map[string]tenants.Difference, before, after bool) pages.Diff {
	d := pages.Diff{Before: before, After: after, Head: [3]string{v.text("console.diff.what"), v.text("console.diff.before"), v.text("console.diff.after")}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, worded := v.value(name, all[name].Before)
		will, too := v.value(name, all[name].After)
		d.Rows = append(d.Rows, pages.DiffRow{Field: v.fieldName(name), Before: was, After: will, Worded: worded || too})
	}
	return d
}

// valueWords begin the keys of what a field can hold, where that has words.
var valueWords = map[string]string{
	"role": "console.role.", "impact": "console.perm.impact.", "agents": "console.rule.", "mode": "console.way.",
	"rights": "console.apikeys.right.", "format": "console.webhook.format.", "events": "console.event.",
	"state": "console.pending.state.", "proven": "console.pending.proven.",
}

// value writes what a field holds for people, and reports whether these are words.
func (v *visit) value(field string, value any) (text string, worded bool) {
	prefix, hasWords := valueWords[field]
	many, ok := value.([]any)
	if !ok {
		text = plain(value)
		if words := v.text(prefix + text); hasWords && words != "" {
			return words, true
		}
		return text, false
	}
	var each []string
	for _, one := range many { // each by its name too, as programs know it
		text := plain(one)
		if words := v.text(prefix + text); hasWords && words != "" {
			text, worded = text+" – "+words, true
		}
		each = append(each, text)
	}
	if len(each) == 0 {
		return plain(nil), false
	}
	return strings.Join(each, v.text("console.diff.and")), worded
}

// plain writes a value of JSON for people; nothing is a dash.
func plain(value any) string {
	switch value := value.(type) {
	case nil:
		return "–"
	case string:
		if value == "" {
			return "–"
		}
		return value
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return string(raw)
}

// sortedTexts are the values in the order of their fields.
func sortedTexts(by map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}
