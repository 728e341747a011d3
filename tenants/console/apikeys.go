package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// The facts that changes of API keys leave in the trail; the rules write them.
const (
	eventAPIKeyCreated = "apikey.created"
	eventAPIKeyRotated = "apikey.rotated"
	eventAPIKeyRevoked = "apikey.revoked"
)

// showAPIKeys is GET api-keys.
func (v *visit) showAPIKeys() error { return v.listAPIKeys(http.StatusOK, nil) }

// listAPIKeys is the page; wrong is why a key was not made.
func (v *visit) listAPIKeys(status int, wrong error) error {
	frame, err := v.brandFrame("api-keys", "console.apikeys.heading")
	if err != nil {
		return err
	}
	keys, err := tenants.APIKeys(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	view := pages.TableView{
		Frame: frame, Heading: v.say("console.apikeys.heading"), ProblemHeading: v.text("code.problem"),
		Lead: []ui.Phrase{v.say("console.apikeys.lead")},
		Table: pages.Table{
			Head: []string{
				v.text("console.apikeys.name"), v.text("console.apikeys.rights"), v.text("console.apikeys.made"),
				v.text("console.apikeys.used"), v.text("console.apikeys.state"), v.text("console.members.edit"),
			},
			Empty: []ui.Phrase{v.say("console.apikeys.none")}, Command: "countersign " + v.command("apikey create") + " --name checkout --rights introspect",
		},
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodGet, "api-keys", ""), v.call(http.MethodPost, "api-keys", `{"name":"checkout","rights":["introspect"]}`)},
			[]string{v.command("apikey list"), v.command("apikey create") + " --name checkout --rights introspect"},
		),
	}
	if v.r.URL.Query().Has("made") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.apikeys.already")})
	}
	for _, k := range keys {
		view.Table.Rows = append(view.Table.Rows, v.apiKeyRow(k))
	}
	if May(v.member.Role, ChangeAPIKeys) {
		view.Sections = append(view.Sections, v.newAPIKeyForm(wrong))
	}
	return v.render(status, pages.Tabled(view))
}

func (v *visit) apiKeyRow(k tenants.APIKey) pages.Row {
	used := v.text("console.apikeys.never")
	if k.LastUsedAt != nil {
		used = v.date(*k.LastUsedAt)
	}
	row := pages.Row{
		{Text: foreign(k.Name), Code: k.ID},
		cell(ui.Plain(v.rights(k.Rights))), cell(ui.Plain(v.date(k.CreatedAt))),
		cell(ui.Plain(used)), cell(v.apiKeyState(k)),
		{},
	}
	if v.opens(k) && May(v.member.Role, ChangeAPIKeys) {
		row[5].Link = v.link("console.members.change", pageOf(v.brand.ID, "api-keys/"+k.ID))
	}
	return row
}

func (v *visit) opens(k tenants.APIKey) bool { return k.RevokedAt == nil || k.RevokedAt.After(v.now) }

func (v *visit) apiKeyState(k tenants.APIKey) ui.Phrase {
	switch {
	case k.RevokedAt == nil:
		return v.say("console.apikeys.open")
	case v.opens(k):
		return v.say("console.apikeys.until", "date", v.date(*k.RevokedAt))
	}
	return v.say("console.apikeys.over", "date", v.date(*k.RevokedAt))
}

// rightWords says what each right opens.
var rightWords = map[tenants.Right]string{
	tenants.RightIntrospect: "console.apikeys.right.introspect", tenants.RightReceipts: "console.apikeys.right.receipts",
	tenants.RightStepUp: "console.apikeys.right.stepup", tenants.RightEvents: "console.apikeys.right.events",
	tenants.RightVerify: "console.apikeys.right.verify", tenants.RightAdmin: "console.apikeys.right.admin",
}

func (v *visit) rights(rights []tenants.Right) string {
	words := make([]string, len(rights))
	for i, r := range rights {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

func (v *visit) newAPIKeyForm(wrong error) pages.Section {
	bad := v.fieldProblems(wrong)
	b := &pages.Boxes{
		Name: "rights", Legend: v.text("console.apikeys.rights"), Hint: v.text("console.apikeys.rights.hint"), Problem: bad["rights"],
	}
	for _, r := range tenants.Rights() {
		if r == tenants.RightAdmin && !May(v.member.Role, ChangeAdminKeys) {
			continue
		}
		b.All = append(b.All, pages.Box{
			Name: "right-" + string(r), Label: string(r) + " – " + v.text(rightWords[r]), Chosen: v.form.Has("right-" + string(r)),
		})
	}
	return pages.Section{
		Heading: v.text("console.apikeys.new"), Text: []ui.Phrase{v.say("console.apikeys.new.why")},
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "api-keys"), Hidden: []ui.Hidden{onceField()}, Button: v.say("console.apikeys.new.button"), Boxes: b,
			Fields: []ui.Field{{
				Name: "name", Label: v.text("console.apikeys.name"), Hint: v.text("console.apikeys.name.hint"), Value: v.line("name"), Problem: bad["name"],
			}},
		},
	}
}

// addAPIKey is POST api-keys.
func (v *visit) addAPIKey() error {
	d := tenants.KeyDraft{Name: v.line("name")}
	for _, r := range tenants.Rights() {
		if v.form.Has("right-" + string(r)) {
			d.Rights = append(d.Rights, r)
		}
	}
	if err := v.mayMake(d.Rights); err != nil {
		return err
	}
	if p := d.Check(); len(p) > 0 {
		return v.listAPIKeys(http.StatusUnprocessableEntity, p)
	}
	edit, err := v.once(eventAPIKeyCreated)
	if err != nil {
		return err
	}
	key, err := tenants.NewAPIKey(v.ctx(), edit, v.brand.ID, d)
	if errors.Is(err, tenants.ErrFormSpent) {
		return v.redirect(pageOf(v.brand.ID, "api-keys?made"))
	}
	if err != nil {
		return err
	}
	return v.showKeyOnce(key)
}

// mayMake asks for the owners' right where a key can do what is theirs.
func (v *visit) mayMake(rights []tenants.Right) error {
	if slices.Contains(rights, tenants.RightAdmin) {
		return v.mustAlso(ChangeAdminKeys)
	}
	return nil
}

func (v *visit) showKeyOnce(key string) error {
	v.h.noticesDue(v.brand.ID)
	return v.showOnce("api-keys", pages.ShownView{
		Heading: v.say("console.apikeys.shown"), Lead: []ui.Phrase{v.say("console.shown.once"), v.say("console.apikeys.shown.keep")},
		Label: v.text("console.apikeys.key"), Secret: key,
		Samples: []pages.Sample{{Label: v.text("console.apikeys.shown.try"), Text: "export COUNTERSIGN_API_KEY='" + key + "'"}},
		GoOn:    v.link("console.apikeys.back", pageOf(v.brand.ID, "api-keys")),
	})
}

// showOnce shows a secret for the only time; nobody keeps the page.
func (v *visit) showOnce(page string, view pages.ShownView) error {
	frame, err := v.brandFrame(page, "console.shown.title")
	if err != nil {
		return err
	}
	view.Frame = frame
	v.w.Header().Set("Cache-Control", "no-store")
	return v.render(http.StatusOK, pages.Handover(view))
}

// apiKey finds the key in the address.
func (v *visit) apiKey() (tenants.APIKey, error) {
	keys, err := tenants.APIKeys(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return tenants.APIKey{}, err
	}
	i := slices.IndexFunc(keys, func(k tenants.APIKey) bool { return k.ID == v.r.PathValue("key") })
	if i < 0 {
		return tenants.APIKey{}, problem{kind: notFound}
	}
	return keys[i], nil
}

// showAPIKey is GET api-keys/{key}.
func (v *visit) showAPIKey() error {
	k, err := v.apiKey()
	if err != nil {
		return err
	}
	frame, err := v.brandFrame("api-keys", "console.apikey.heading", "key", k.Name)
	if err != nil {
		return err
	}
	at := pageOf(v.brand.ID, "api-keys/"+k.ID)
	used := v.say("console.apikeys.never")
	if k.LastUsedAt != nil {
		used = ui.Plain(v.date(*k.LastUsedAt))
	}
	view := pages.ThingView{
		Frame: frame, Heading: v.say("console.apikey.heading", "key", k.Name),
		Facts: []pages.Fact{
			{Name: v.text("console.apikeys.key"), Code: "cs_" + k.ID + "_…"},
			{Name: v.text("console.apikeys.rights"), Text: ui.Plain(v.rights(k.Rights))},
			{Name: v.text("console.apikeys.state"), Text: v.apiKeyState(k)},
			{Name: v.text("console.apikeys.made"), Text: ui.Plain(v.date(k.CreatedAt))},
			{Name: v.text("console.apikeys.used"), Text: used},
		},
		Back: v.link("console.apikeys.back", pageOf(v.brand.ID, "api-keys")),
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodPost, "api-keys/"+k.ID+"/rotate", ""), v.call(http.MethodDelete, "api-keys/"+k.ID, "")},
			[]string{v.command("apikey rotate") + " --id " + k.ID, v.command("apikey revoke") + " --id " + k.ID},
		),
	}
	if k.RevokedAt == nil && (!slices.Contains(k.Rights, tenants.RightAdmin) || May(v.member.Role, ChangeAdminKeys)) {
		view.Ways = append(view.Ways, pages.Section{
			Heading: v.text("console.apikey.rotate"), Text: []ui.Phrase{v.say("console.apikey.rotate.why", "hours", int(tenants.RotateOverlap.Hours()))},
			Form: pages.Form{Action: at + "/rotate", Hidden: []ui.Hidden{onceField()}, Button: v.say("console.apikey.rotate.button")},
		})
	}
	if v.opens(k) {
		view.Ways = append(view.Ways, pages.Section{
			Heading: v.text("console.apikey.revoke"),
			Text:    []ui.Phrase{v.say("console.apikey.revoke.why"), v.say("console.apikey.revoke.ends", "rights", v.rights(k.Rights))},
			Form:    pages.Form{Action: at + "/revoke", Button: v.say("console.apikey.revoke.button")},
		})
	}
	return v.render(http.StatusOK, pages.Thing(view))
}

// rotateAPIKey is POST api-keys/{key}/rotate.
func (v *visit) rotateAPIKey() error {
	k, err := v.apiKey()
	if err != nil {
		return err
	}
	if err := v.mayMake(k.Rights); err != nil {
		return err
	}
	edit, err := v.once(eventAPIKeyRotated)
	if err != nil {
		return err
	}
	key, err := tenants.RotateAPIKey(v.ctx(), edit, v.brand.ID, k.ID, tenants.RotateOverlap)
	switch {
	case errors.Is(err, tenants.ErrFormSpent):
		return v.redirect(pageOf(v.brand.ID, "api-keys?made"))
	case errors.Is(err, tenants.ErrBadKey):
		return problem{kind: stale, retry: pageOf(v.brand.ID, "api-keys")} // rotated or revoked meanwhile
	case err != nil:
		return err
	}
	return v.showKeyOnce(key)
}

// revokeAPIKey is POST api-keys/{key}/revoke.
func (v *visit) revokeAPIKey() error {
	k, err := v.apiKey()
	if err != nil {
		return err
	}
	if !v.opens(k) {
		return v.redirect(pageOf(v.brand.ID, "api-keys")) // ended twice is ended
	}
	if err := tenants.EndAPIKey(v.ctx(), v.edits(eventAPIKeyRevoked), v.brand.ID, k.ID); err != nil {
		return err
	}
	v.h.noticesDue(v.brand.ID)
	return v.redirect(pageOf(v.brand.ID, "api-keys"))
}
