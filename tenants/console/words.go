package console

import (
	"net/http"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/static"
	"countersign.dev/web/ui"
)

// service is our own name. It is a name, so it is not translated.
const service = "Countersign"

// ours are the placeholders that take words of our own; all others take somebody
// else's, which are isolated in their own direction.
var ours = map[string]bool{"count": true, "date": true, "role": true, "id": true, "hours": true, "minutes": true, "ratio": true, "needed": true, "people": true, "agents": true}

// say words a sentence whose parts keep their origin. The Brand's name is always
// at hand.
func (v *visit) say(key string, args ...any) ui.Phrase {
	if v.brand != nil {
		args = append([]any{"brand", v.brand.Name}, args...)
	}
	var phrase ui.Phrase
	for _, p := range v.lang.Pieces(key, args...) {
		span := ui.Span{Text: p.Text}
		if p.Arg != "" && !ours[p.Arg] {
			span.Origin = ui.Foreign
		}
		phrase = append(phrase, span)
	}
	return phrase
}

func (v *visit) text(key string, args ...any) string { return v.say(key, args...).String() }

func (v *visit) link(key, href string, args ...any) ui.Link {
	return ui.Link{Label: v.say(key, args...), Href: href}
}

func (v *visit) warning(key string, args ...any) ui.Notice {
	return ui.Notice{Text: v.say(key, args...), Warning: true}
}

func (v *visit) role(r tenants.Role) string { return v.text("console.role." + string(r)) }

func (v *visit) date(t time.Time) string { return v.lang.DateTime(t.UTC()) }

// frame is what stands around the page with this title.
func (v *visit) frame(title string, args ...any) pages.Frame {
	f := pages.Frame{Page: ui.Page{
		Lang: v.lang.Tag, Dir: v.lang.Dir, Title: v.text(title, args...) + " – " + service, Service: service,
		Operator: v.say("page.operator.alone"), LanguageLabel: v.text("page.languages"),
		Style: static.URL("console.css"),
	}}
	if v.r.Method == http.MethodGet {
		f.Page.Languages = v.languages()
	}
	if v.signedIn() {
		f.Account = v.link("console.account", accountAt, "person", v.person.Name)
		f.SignOut = ui.Post{Action: "/console/logout", Button: ui.Button{Label: v.say("console.signout")}}
	}
	return f
}

// languages are this page in each language.
func (v *visit) languages() []ui.Link {
	var links []ui.Link
	for _, l := range v.h.Catalogue.Languages() {
		q := v.r.URL.Query()
		q.Set("ui_locales", l.Tag)
		links = append(links, ui.Link{
			Label: ui.Plain(l.Name), Lang: l.Tag, Href: v.r.URL.EscapedPath() + "?" + q.Encode(), Current: l.Tag == v.lang.Tag,
		})
	}
	return links
}

// brandFrame is the frame of a page of the Brand; page is which of the menu.
func (v *visit) brandFrame(page, title string, args ...any) (pages.Frame, error) {
	f := v.frame(title, args...)
	f.Page.Wide = true
	f.Page.BrandName = v.brand.Name
	f.Page.BrandCSS = "/b/" + string(v.brand.ID) + "/brand.css?c=" + v.brand.Colour[1:]
	f.NavLabel = v.text("console.nav", "brand", v.brand.Name)
	f.Nav, f.SubNav = v.menu(page)
	all, err := tenants.Memberships(v.ctx(), v.h.DB, v.person.ID)
	if err != nil {
		return f, err
	}
	f.Brands.Label = v.text("console.switch")
	for _, m := range all {
		if !m.Held {
			f.Brands.Links = append(f.Brands.Links, ui.Link{
				Label: ui.Phrase{{Text: m.Name, Origin: ui.Foreign}}, Href: pageOf(m.Brand, ""), Current: m.Brand == v.brand.ID,
			})
		}
	}
	f.Brands.Links = append(f.Brands.Links, v.link("console.switch.all", "/console/brands"))
	if f.Notices, err = v.closedNotice(); err != nil || len(f.Notices) > 0 {
		return f, err
	}
	proven, err := v.h.proven(v.ctx(), v.brand.ID)
	if err != nil {
		return f, err
	}
	if !proven {
		f.Notices = append(f.Notices, v.warning("console.banner.unproven"))
	}
	return f, nil
}
