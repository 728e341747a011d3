package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// A permission's form names its fields as the API does. The words in one more
// language stand in fields of their own, until that has its tag.
const (
	textsPrefix = "texts."
	moreTag     = "more.language"
	moreText    = "more.description"
	moreUndo    = "more.undo"
)

// permissionTold is what the page of one permission tells besides.
type permissionTold struct {
	scope    tenants.Scope
	more     [3]string // language, description and undo of one more
	seen     string    // the version that the form was opened with; empty: it is new
	stored   *tenants.StoredScope
	problems tenants.Problems
	said     []ui.Notice
}

// showNewPermission is GET permissions/new.
func (v *visit) showNewPermission() error {
	return v.tellPermission(http.StatusOK, permissionTold{scope: tenants.Scope{Effect: "sees", Impact: "low"}})
}

// storedScope finds the permission with the id.
func (v *visit) storedScope(id string) (*tenants.StoredScope, error) {
	all, err := tenants.Scopes(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s tenants.StoredScope) bool { return s.ID == id })
	if i < 0 {
		return nil, problem{kind: notFound}
	}
	return &all[i], nil
}

// showPermission is GET permissions/one.
func (v *visit) showPermission() error {
	s, err := v.storedScope(v.r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	return v.tellPermission(http.StatusOK, permissionTold{scope: s.Scope, seen: s.Version(), stored: s})
}

// typedScope is what the form holds, the words in one more language among it.
func (v *visit) typedScope() (s tenants.Scope, more [3]string, twice bool) {
	s = tenants.Scope{
		ID: v.typed("id"), Description: v.typed("description"), Effect: v.typed("effect"), Impact: v.typed("impact"),
		Undo: v.typed("undo"), Texts: make(map[string]tenants.ScopeText),
	}
	for name := range v.form {
		tag, ok := strings.CutPrefix(name, textsPrefix)
		if tag, whole := strings.CutSuffix(tag, ".description"); ok && whole {
			t := tenants.ScopeText{Description: v.typed(name), Undo: v.typed(textsPrefix + tag + ".undo")}
			if t != (tenants.ScopeText{}) {
				s.Texts[tag] = t
			}
		}
	}
	more = [3]string{v.typed(moreTag), v.typed(moreText), v.typed(moreUndo)}
	_, twice = s.Texts[more[0]]
	if more != ([3]string{}) && !twice { // what stands in its own fields is not lost
		s.Texts[more[0]] = tenants.ScopeText{Description: more[1], Undo: more[2]}
	}
	return s, more, twice
}

// savePermission is POST permissions/one. A new one writes over none that is there.
func (v *visit) savePermission() error {
	if !v.form.Has("seen") {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "permissions")}
	}
	s, more, twice := v.typedScope()
	told := permissionTold{scope: s, more: more, seen: v.form.Get("seen")}
	var err error
	if twice {
		err = tenants.Problems{{Field: moreTag, Mistake: tenants.Twice, About: [2]string{more[0]}}}
	} else {
		err = tenants.ReviseScope(v.ctx(), v.edits(), v.brand.ID, told.seen, s)
	}
	stale := errors.Is(err, tenants.ErrScopeStale)
	if err == nil {
		return v.made("permissions?saved")
	}
	problems, other := mistakesIn(err)
	if other != nil && !stale {
		return err
	}
	if told.seen != "" {
		if told.stored, err = v.storedScope(s.ID); err != nil {
			return err
		}
	}
	switch {
	case stale && told.seen == "":
		told.problems = tenants.Problems{{Field: "id", Mistake: takenID}}
		return v.tellPermission(http.StatusConflict, told)
	case stale:
		told.seen = told.stored.Version()
		told.said = append(told.said, v.warning("console.set.changed"))
		return v.tellPermission(http.StatusConflict, told)
	}
	told.problems = problems
	return v.tellPermission(http.StatusUnprocessableEntity, told)
}

// takenID is a mistake of the form for a new permission.
const takenID tenants.Mistake = "taken"

// previewPermission is POST permissions/preview: the Brand with this permission as
// the form has it.
func (v *visit) previewPermission() error {
	if !v.form.Has("seen") {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "permissions")}
	}
	s, _, _ := v.typedScope()
	b := *v.brand
	b.Scopes = slices.Clone(b.Scopes)
	if i := slices.IndexFunc(b.Scopes, func(o tenants.Scope) bool { return o.ID == s.ID }); i >= 0 {
		b.Scopes[i] = s
	} else {
		b.Scopes = append(b.Scopes, s)
	}
	return v.preview(b, v.form.Get("preview"))
}

// retirePermission is POST permissions/retire.
func (v *visit) retirePermission() error {
	return v.permissionDone(tenants.RetireScope(v.ctx(), v.edits(), v.brand.ID, v.form.Get("id")))
}

// restorePermission is POST permissions/restore. What it lacks by now is told on
// its page.
func (v *visit) restorePermission() error {
	err := tenants.RestoreScope(v.ctx(), v.edits(), v.brand.ID, v.form.Get("id"))
	problems, other := mistakesIn(err)
	if len(problems) == 0 {
		return v.permissionDone(other)
	}
	s, err := v.storedScope(v.form.Get("id"))
	if err != nil {
		return err
	}
	return v.tellPermission(http.StatusUnprocessableEntity, permissionTold{scope: s.Scope, seen: s.Version(), stored: s, problems: problems})
}

func (v *visit) permissionDone(err error) error {
	if errors.Is(err, tenants.ErrNoScope) {
		return problem{kind: notFound}
	}
	if err != nil {
		return err
	}
	return v.made("permissions?saved")
}

// tellPermission is the page of one permission.
func (v *visit) tellPermission(status int, told permissionTold) error {
	title, id, called := "console.perm.new", "ID", ""
	if told.stored != nil {
		title, id, called = "console.perm.one", told.stored.ID, told.stored.Description
	}
	frame, err := v.brandFrame("permissions", title, "permission", called)
	if err != nil {
		return err
	}
	form := pages.PartedForm{Action: pageOf(v.brand.ID, "permissions/one"), Parts: v.permissionParts(told)}
	said := append(told.said, v.beside(form.Parts, told.problems, told.field)...)
	if May(v.member.Role, ChangePermissions) {
		form.Button = v.say("console.perm.save")
		form.Previews = v.previews("permissions/preview")
		form.Hidden = []ui.Hidden{{Name: "seen", Value: told.seen}}
		if told.stored != nil {
			form.Hidden = append(form.Hidden, ui.Hidden{Name: "id", Value: told.stored.ID})
		}
	}
	view := pages.PermissionView{
		Frame: frame, Heading: v.say(title, "permission", called), ProblemHeading: v.text("code.problem"), Notices: said, Form: form,
		Lead: []ui.Phrase{v.say(title + ".lead")}, Back: v.link("console.perm.back", pageOf(v.brand.ID, "permissions")),
		Otherwise: v.otherwise([]string{v.call("PUT", "scopes/"+id, `{"description":"…","effect":"sees","impact":"low","undo":"","texts":{}}`)}, v.ofBrand("scope set --scope "+id+" --set impact=high", "scope retire --scope "+id, "scope restore --scope "+id)),
	}
	if told.stored != nil {
		if view.Ends, err = v.permissionEnds(*told.stored); err != nil {
			return err
		}
	}
	return v.render(status, pages.Permission(view))
}

// field is the form's field for a mistake in what the API calls name.
func (told permissionTold) field(name string) string {
	if told.more != ([3]string{}) {
		switch name {
		case textsPrefix + told.more[0]:
			return moreTag
		case textsPrefix + told.more[0] + ".description":
			return moreText
		case textsPrefix + told.more[0] + ".undo":
			return moreUndo
		}
	}
	if strings.HasPrefix(name, textsPrefix) && !strings.HasSuffix(name, ".description") && !strings.HasSuffix(name, ".undo") {
		return name + ".description"
	}
	return name
}

func (v *visit) permissionParts(told permissionTold) []pages.Part {
	s := told.scope
	field := func(name, value string, key string, args ...any) ui.Field {
		return ui.Field{Name: name, Label: v.text(key, args...), Hint: v.text(key+".hint", args...), Value: value}
	}
	choice := func(name, value string, from ...string) ui.Field {
		f := field(name, value, "console.perm.field."+name)
		for _, c := range from {
			f.Options = append(f.Options, ui.Option{Value: c, Label: v.text("console.perm." + name + "." + c + ".long"), Chosen: c == value})
		}
		return f
	}
	first := pages.Part{Heading: v.text("console.perm.part.own"), Text: v.say("console.perm.part.own.text")}
	if told.stored == nil {
		id := field("id", s.ID, "console.perm.field.id")
		id.Plain = true
		first.Fields = append(first.Fields, id)
	}
	first.Fields = append(
		first.Fields,
		field("description", s.Description, "console.perm.field.description"),
		choice("effect", s.Effect, "sees", "changes", "pays"),
		choice("impact", s.Impact, "low", "medium", "high"),
		field("undo", s.Undo, "console.perm.field.undo"),
	)
	parts := []pages.Part{first}
	tags := slices.Clone(v.brand.Languages)
	for tag := range s.Texts {
		if !slices.Contains(tags, tag) && (told.more == ([3]string{}) || tag != told.more[0]) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	for _, tag := range tags {
		t := s.Texts[tag]
		parts = append(parts, pages.Part{
			Heading: v.text("console.perm.part.language", "language", tag),
			Fields: []ui.Field{
				field(textsPrefix+tag+".description", t.Description, "console.perm.field.translated"),
				field(textsPrefix+tag+".undo", t.Undo, "console.perm.field.undone"),
			},
		})
	}
	if May(v.member.Role, ChangePermissions) {
		more := pages.Part{Heading: v.text("console.perm.part.more"), Text: v.say("console.perm.part.more.text"), Fields: []ui.Field{
			field(moreTag, told.more[0], "console.perm.field.tag"),
			field(moreText, told.more[1], "console.perm.field.translated"),
			field(moreUndo, told.more[2], "console.perm.field.undone"),
		}}
		more.Fields[0].Plain = true
		parts = append(parts, more)
	}
	return parts
}

// permissionEnds is how it leaves the card or comes back, and what that does to
// how many people.
func (v *visit) permissionEnds(s tenants.StoredScope) ([]pages.Way, error) {
	do, action := "retire", RetirePermission
	if s.RetiredAt != nil {
		do, action = "restore", RestorePermission
	}
	if !May(v.member.Role, action) {
		return nil, nil
	}
	held, err := v.h.Authority.CountHeld(v.ctx(), v.brand.ID, authority.Filter{Scope: s.ID})
	if err != nil {
		return nil, err
	}
	key := "console.perm." + do
	return []pages.Way{{
		Heading: v.text(key), Text: append(append(v.say(key+".count", "count", held.People), ui.Span{Text: " "}),
			v.say(key+".why", "minutes", int((v.brand.TokenLifetime+time.Minute-1)/time.Minute))...),
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "permissions/"+do), Button: v.say(key + ".button"),
			Hidden: []ui.Hidden{{Name: "id", Value: s.ID}},
		},
	}}, nil
}
