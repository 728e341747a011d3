package console

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web"
	"countersign.dev/web/ui"
)

// shades say what becomes of the colour where it could not be read.
func (v *visit) shades(hex string) []pages.Shade {
	light, dark, ok := ui.Shades(hex)
	if !ok {
		return nil
	}
	shade := func(s ui.Shade, key string) pages.Shade {
		if s.Moved {
			key += ".moved"
		}
		return pages.Shade{Hex: s.Hex, Text: v.say(key, "hex", s.Hex, "own", hex,
			"ratio", ratio(s.Contrast), "needed", ratio(ui.ReadableContrast))}
	}
	return []pages.Shade{shade(light, "console.set.shade.light"), shade(dark, "console.set.shade.dark")}
}

func ratio(r float64) string { return strconv.FormatFloat(r, 'f', 1, 64) }

// logo is the picture and what may be done about it; trouble is why another one
// was not taken.
func (v *visit) logo(trouble string) pages.Logo {
	l := pages.Logo{
		Heading: v.text("console.logo.heading"), Text: v.say("console.logo.text"), Alt: v.text("console.logo.alt"),
		Upload: pages.Upload{
			Action: pageOf(v.brand.ID, "settings/logo"), Accept: "image/png,image/jpeg,image/webp,image/gif",
			Field: ui.Field{Name: "logo", Label: v.text("console.logo.field"), Problem: trouble},
		},
	}
	if v.brand.Logo != "" {
		l.Current = "/b/" + string(v.brand.ID) + "/logo?v=" + url.QueryEscape(v.brand.Logo)
	}
	if May(v.member.Role, ChangeLogo) {
		l.Upload.Button = v.say("console.logo.button")
		if v.brand.Logo != "" {
			l.Remove = ui.Post{Action: pageOf(v.brand.ID, "settings/logo/remove"), Button: ui.Button{Label: v.say("console.logo.remove")}}
		}
	}
	return l
}

// setLogo is POST settings/logo.
func (v *visit) setLogo() error {
	err := tenants.SetLogo(v.ctx(), v.edits(), v.brand.ID, v.file)
	problems, err := mistakesIn(err)
	if err != nil {
		return err
	}
	if len(problems) == 0 {
		return v.made("settings?saved#logo")
	}
	s, err := tenants.SettingsOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	return v.tellSettings(http.StatusUnprocessableEntity, settingsTold{
		values: settingsAs(s), version: s.Version(), logo: v.text("console.logo.field") + ": " + v.mistake(problems[0]),
	})
}

// removeLogo is POST settings/logo/remove.
func (v *visit) removeLogo() error {
	if err := tenants.RemoveLogo(v.ctx(), v.edits(), v.brand.ID); err != nil {
		return err
	}
	return v.made("settings?saved#logo")
}

// readFile reads the one file of a form. One byte more than is taken is kept of
// it, for the rule to say so; the rest is read and forgotten, or the browser would
// show a broken connection instead of the reason.
func (v *visit) readFile(name string, most int64) error {
	const largest = 16 << 20
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, largest)
	parts, err := v.r.MultipartReader()
	if err != nil {
		return problem{kind: stale, cause: err}
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return problem{kind: stale, cause: err}
		}
		if part.FormName() != name || v.file != nil {
			return problem{kind: stale}
		}
		if v.file, err = io.ReadAll(io.LimitReader(part, most+1)); err == nil {
			_, err = io.Copy(io.Discard, part)
		}
		if err != nil {
			return problem{kind: stale, cause: err}
		}
	}
}

// previews are the buttons that show the form's values, in each language.
func (v *visit) previews(page string) pages.Previews {
	p := pages.Previews{Action: pageOf(v.brand.ID, page), Text: v.say("console.preview.text")}
	for _, l := range v.h.Catalogue.Languages() {
		p.Buttons = append(p.Buttons, ui.Button{Name: "preview", Value: l.Tag, Label: v.say("console.preview.button", "language", l.Name)})
	}
	return p
}

// previewLinks show the Brand as it is saved.
func (v *visit) previewLinks() []ui.Link {
	var links []ui.Link
	for _, l := range v.h.Catalogue.Languages() {
		links = append(links, v.link("console.preview.link", pageOf(v.brand.ID, "preview?in="+l.Tag), "language", l.Name))
	}
	return links
}

// showPreview is GET preview: the Brand as it is.
func (v *visit) showPreview() error { return v.preview(*v.brand, v.r.URL.Query().Get("in")) }

// previewSettings is POST preview: the Brand as the form would make it. Nothing is
// saved, so mistakes are no matter; what cannot be shown is left out.
func (v *visit) previewSettings() error {
	if !v.form.Has("version") {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "settings")}
	}
	s, err := tenants.SettingsOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	_ = fillSettings(v.typedSettings(), &s)
	b := *v.brand
	b.Name, b.Colour, b.GrantDays, b.GrantDefault = s.Name, s.Colour, s.GrantDays, s.GrantDefault
	b.SupportURL, b.PrivacyURL = webLink(s.SupportURL), webLink(s.PrivacyURL)
	return v.preview(b, v.form.Get("preview"))
}

// webLink is the link if it is one that a page may hold.
func webLink(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return raw
}

// preview is the page on which people decide, for this Brand and in this language.
// No form of it can be sent.
func (v *visit) preview(b tenants.Brand, tag string) error {
	v.speakAs(tag)
	if len(b.Scopes) == 0 {
		b.Scopes = []tenants.Scope{{ID: "example", Description: v.text("console.preview.example"), Effect: "sees", Impact: "low"}}
	}
	v.brand = &b
	web.ForbidForms(v.w)
	css := pageOf(b.ID, "preview.css?"+url.Values{"c": {b.Colour}}.Encode())
	return v.render(http.StatusOK, v.h.Preview(&b, v.lang, css, ui.Notice{Text: v.say("console.preview.said"), Warning: true}))
}

// speakAs answers in the language with the tag, if there is one.
func (v *visit) speakAs(tag string) {
	for _, l := range v.h.Catalogue.Languages() {
		if l.Tag == tag {
			v.lang = l
		}
	}
}

// previewCSS is GET preview.css: any colour as ours, like the Brand's own.
func (v *visit) previewCSS() error {
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, err := v.w.Write(ui.BrandCSS(v.r.URL.Query().Get("c")))
	return err
}
