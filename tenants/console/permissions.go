package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// showPermissions is GET permissions.
func (v *visit) showPermissions() error {
	frame, err := v.brandFrame("permissions", "console.perm.heading")
	if err != nil {
		return err
	}
	all, err := tenants.Scopes(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	types, err := tenants.DetailTypes(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	view := pages.PermissionsView{
		Frame: frame, Heading: v.say("console.perm.heading"), Lead: v.say("console.perm.lead"),
		Head: [5]string{
			v.text("console.perm.place"), v.text("console.perm.what"), v.text("console.perm.effect"),
			v.text("console.perm.impact"), v.text("console.perm.edit"),
		},
		Empty: pages.EmptyState{
			Text: v.say("console.perm.empty"),
			Command: "countersign scope set --brand " + string(v.brand.ID) +
				` --scope bookings:read --set effect=sees --set impact=low --set "description=See your bookings"`,
		},
		Preview: v.previewLinks(),
		Types: pages.DetailTypes{
			Heading: v.text("console.perm.types"), Text: v.say("console.perm.types.text"),
			Head: [2]string{v.text("console.perm.types.words"), v.text("console.perm.what")},
		},
		Retired: pages.RetiredPermissions{
			Heading: v.text("console.perm.retired"), Text: v.say("console.perm.retired.text"),
			Head: [3]string{v.text("console.perm.what"), v.text("console.perm.since"), v.text("console.perm.edit")},
		},
		Otherwise: v.otherwise([]string{v.call("GET", "scopes", ""), v.call("GET", "detail-types", "")}, v.ofBrand("scope list", "scope order --order ID,ID,…", "detail list")),
	}
	for _, t := range types {
		view.Types.Rows = append(view.Types.Rows, pages.DetailTypeRow{Words: t.Words, Type: t.Type, Scope: t.Scope})
	}
	if v.r.URL.Query().Has("saved") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.perm.saved")})
	}
	if May(v.member.Role, ChangePermissions) {
		view.Add = v.link("console.perm.add", pageOf(v.brand.ID, "permissions/new"))
	}
	onCard := slices.IndexFunc(all, func(s tenants.StoredScope) bool { return s.RetiredAt != nil })
	if onCard < 0 {
		onCard = len(all)
	}
	for i, s := range all {
		if s.RetiredAt != nil {
			view.Retired.Rows = append(view.Retired.Rows, pages.RetiredRow{
				Text: s.Description, ID: s.ID, Since: v.lang.Date(s.RetiredAt.UTC()), Edit: v.permissionLink(s.ID),
			})
			continue
		}
		view.Rows = append(view.Rows, v.permissionRow(s.Scope, i, onCard))
	}
	return v.render(http.StatusOK, pages.Permissions(view))
}

func (v *visit) permissionRow(s tenants.Scope, place, of int) pages.PermissionRow {
	row := pages.PermissionRow{
		Place: strconv.Itoa(place + 1), Text: s.Description, ID: s.ID, Effect: v.text("console.perm.effect." + s.Effect),
		Impact: v.text("console.perm.impact." + s.Impact), Sensitive: s.Impact == "high", Edit: v.permissionLink(s.ID),
	}
	if !May(v.member.Role, ChangePermissions) {
		return row
	}
	// The place is where it goes to, not by how much: pressed twice is once.
	move := func(key string, to int) ui.Post {
		return ui.Post{
			Action: pageOf(v.brand.ID, "permissions/move"),
			Hidden: []ui.Hidden{{Name: "id", Value: s.ID}, {Name: "place", Value: strconv.Itoa(to)}},
			Button: ui.Button{Label: v.say(key)},
		}
	}
	if place > 0 {
		row.Up = move("console.perm.up", place-1)
	}
	if place < of-1 {
		row.Down = move("console.perm.down", place+1)
	}
	return row
}

func (v *visit) permissionLink(id string) ui.Link {
	key := "console.perm.look"
	if May(v.member.Role, ChangePermissions) {
		key = "console.perm.change"
	}
	return v.link(key, pageOf(v.brand.ID, "permissions/one?"+url.Values{"id": {id}}.Encode()))
}

// movePermission is POST permissions/move: to a place on the card.
func (v *visit) movePermission() error {
	all, err := tenants.Scopes(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	var order []string
	for _, s := range all {
		if s.RetiredAt == nil {
			order = append(order, s.ID)
		}
	}
	from := slices.Index(order, v.form.Get("id"))
	to, err := strconv.Atoi(v.form.Get("place"))
	if from < 0 || err != nil || to < 0 || to >= len(order) {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "permissions")}
	}
	id := order[from]
	order = slices.Insert(slices.Delete(order, from, from+1), to, id)
	problems, err := mistakesIn(tenants.OrderScopes(v.ctx(), v.edits(), v.brand.ID, order))
	if err != nil {
		return err
	}
	if len(problems) > 0 { // somebody added or retired one at this moment
		return problem{kind: stale, retry: pageOf(v.brand.ID, "permissions")}
	}
	return v.made("permissions")
}
