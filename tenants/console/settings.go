package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// settingParts are the fields of the settings' form, as the API calls them. Agents
// has a page of its own, and signing has.
var settingParts = []struct {
	part   string
	fields []string
}{
	{"look", []string{"name", "description", "colour"}},
	{"links", []string{"support_url", "privacy_url", "connected_url"}},
	{"languages", []string{"languages"}},
	{"times", []string{"token_seconds", "grant_days", "grant_days_default", "idle_days", "grace_seconds", "rotation_days"}},
	{"asking", []string{"skip_consent", "identity_scheme"}},
}

// settingChoices are the fields that are chosen from.
var settingChoices = map[string][]string{
	"skip_consent": {"no", "yes"}, "identity_scheme": {"paJwt", "platformJwt"},
}

// settingsAs are the settings as the form writes them.
func settingsAs(s tenants.Settings) map[string]string {
	var days []string
	for _, d := range s.GrantDays {
		days = append(days, strconv.Itoa(d))
	}
	skip := "no"
	if s.SkipConsent {
		skip = "yes"
	}
	return map[string]string{
		"name": s.Name, "description": s.Description, "colour": s.Colour,
		"support_url": s.SupportURL, "privacy_url": s.PrivacyURL, "connected_url": s.ConnectedURL,
		"languages": strings.Join(s.Languages, ", "), "grant_days": strings.Join(days, ", "),
		"token_seconds": strconv.Itoa(s.TokenSeconds), "grant_days_default": strconv.Itoa(s.GrantDefault),
		"idle_days": strconv.Itoa(s.IdleDays), "grace_seconds": strconv.Itoa(s.GraceSeconds),
		"rotation_days": strconv.Itoa(s.RotationDays), "skip_consent": skip, "identity_scheme": s.IdentityScheme,
	}
}

// typedSettings is what the form holds.
func (v *visit) typedSettings() map[string]string {
	typed := make(map[string]string)
	for _, p := range settingParts {
		for _, f := range p.fields {
			typed[f] = v.typed(f)
		}
	}
	return typed
}

// fillSettings brings what was typed into the settings. What is no number is
// Problems.
func fillSettings(typed map[string]string, s *tenants.Settings) error {
	var p tenants.Problems
	s.Name, s.Description, s.Colour = typed["name"], typed["description"], typed["colour"]
	s.SupportURL, s.PrivacyURL, s.ConnectedURL = typed["support_url"], typed["privacy_url"], typed["connected_url"]
	s.Languages = list(typed["languages"])
	s.GrantDays = nil
	for _, d := range list(typed["grant_days"]) {
		if n := number("grant_days", d, &p); n != 0 || d == "0" {
			s.GrantDays = append(s.GrantDays, n)
		}
	}
	for field, n := range map[string]*int{
		"token_seconds": &s.TokenSeconds, "grant_days_default": &s.GrantDefault, "idle_days": &s.IdleDays,
		"grace_seconds": &s.GraceSeconds, "rotation_days": &s.RotationDays,
	} {
		*n = number(field, typed[field], &p)
	}
	s.SkipConsent, s.IdentityScheme = typed["skip_consent"] == "yes", typed["identity_scheme"]
	if len(p) > 0 {
		return p
	}
	return nil
}

// errSeenOther says that a form was filled in over what is not so any more.
var errSeenOther = errors.New("it was changed since the form was opened")

// showSettings is GET settings.
func (v *visit) showSettings() error {
	s, err := tenants.SettingsOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	var said []ui.Notice
	if v.r.URL.Query().Has("saved") {
		said = append(said, ui.Notice{Text: v.say("console.set.saved")})
	}
	return v.tellSettings(http.StatusOK, settingsTold{values: settingsAs(s), version: s.Version(), said: said})
}

// changeSettings is POST settings. Of all that is wrong nothing is saved, and what
// was typed stays in the form. When signing keys change is for whoever changes them:
// with a fresh touch, and every owner hears of it.
func (v *visit) changeSettings() error {
	if !v.form.Has("version") {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "settings")}
	}
	typed, version := v.typedSettings(), v.form.Get("version")
	now, err := tenants.SettingsOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	change := tenants.ChangeSettings
	if otherKeyRule(typed, now) {
		change = tenants.ChangeAllSettings
		switch err := v.mustAlso(ChangeSigningKeys); {
		case errors.Is(err, errTouch):
			return v.tellSettings(http.StatusForbidden, settingsTold{values: typed, version: version, said: v.touchForKeys()})
		case err != nil:
			return err
		}
	}
	_, err = change(v.ctx(), v.edits(), v.h.Site, v.brand.ID, func(s *tenants.Settings) error {
		if now := s.Version(); now != version {
			version = now
			return errSeenOther
		}
		return fillSettings(typed, s)
	})
	if errors.Is(err, errSeenOther) {
		return v.tellSettings(http.StatusConflict, settingsTold{
			values: typed, version: version, said: []ui.Notice{v.warning("console.set.changed")},
		})
	}
	problems, err := mistakesIn(err)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return v.tellSettings(http.StatusUnprocessableEntity, settingsTold{values: typed, version: version, problems: problems})
	}
	return v.made("settings?saved")
}

// otherKeyRule reports whether signing keys would change at other times. What is no
// number is told as such.
func otherKeyRule(typed map[string]string, now tenants.Settings) bool {
	after := now
	return fillSettings(typed, &after) == nil && after.KeyRule() != now.KeyRule()
}

// touchForKeys says what the touch is for, since most of the form needs none.
func (v *visit) touchForKeys() []ui.Notice {
	text := v.say("console.set.touch")
	text = append(text, ui.Span{Text: " "}, ui.Span{Text: v.text("console.set.touch.link"), Href: withBack("/console/touch", pageOf(v.brand.ID, "settings"))})
	return []ui.Notice{{Text: text, Warning: true}}
}

// settingsTold is what the settings' page tells besides the Brand.
type settingsTold struct {
	values   map[string]string // in the form
	version  string            // of the settings that were seen
	problems tenants.Problems
	said     []ui.Notice
	logo     string // why a picture was not taken
}

// tellSettings is the page.
func (v *visit) tellSettings(status int, told settingsTold) error {
	frame, err := v.brandFrame("settings", "console.set.heading")
	if err != nil {
		return err
	}
	form := pages.PartedForm{Action: pageOf(v.brand.ID, "settings"), Parts: v.settingParts(told.values)}
	said := append(told.said, v.beside(form.Parts, told.problems, nil)...)
	if May(v.member.Role, ChangeSettings) {
		form.Button = v.say("console.set.button")
		form.Hidden = []ui.Hidden{{Name: "version", Value: told.version}}
	}
	form.Previews = v.previews("preview")
	return v.render(status, pages.Settings(pages.SettingsView{
		Frame: frame, Heading: v.say("console.set.heading"), Lead: v.say("console.set.lead"),
		ProblemHeading: v.text("code.problem"), Notices: said, Form: form, Logo: v.logo(told.logo),
		Otherwise: v.otherwise([]string{v.call("PATCH", "settings", `{"token_seconds":600}`)}, v.ofBrand("brand show", "brand set --set token_seconds=600", "brand logo --logo logo.png")),
	}))
}

func (v *visit) settingParts(values map[string]string) []pages.Part {
	var out []pages.Part
	for _, p := range settingParts {
		part := pages.Part{Heading: v.text("console.set.part." + p.part), Text: v.say("console.set.part." + p.part + ".text")}
		for _, name := range p.fields {
			part.Fields = append(part.Fields, v.settingField(name, values[name]))
		}
		if p.part == "look" {
			part.Shades = v.shades(values["colour"])
		}
		out = append(out, part)
	}
	return out
}

func (v *visit) settingField(name, value string) ui.Field {
	const longestLine = 2048
	key := "console.set.field." + name
	f := ui.Field{Name: name, Label: v.text(key), Hint: v.text(key + ".hint"), Value: value, Longest: longestLine}
	for _, c := range settingChoices[name] {
		f.Options = append(f.Options, ui.Option{Value: c, Label: v.text("console.set.option." + strings.ToLower(c)), Chosen: c == value})
	}
	switch {
	case strings.HasSuffix(name, "_url"):
		f.Kind, f.Plain = "url", true
	case strings.HasSuffix(name, "_seconds"), strings.HasSuffix(name, "_days") && name != "grant_days", name == "grant_days_default":
		f.Kind, f.Plain = "numeric", true
	case name == "colour", name == "languages", name == "grant_days":
		f.Plain = true
	}
	return f
}
