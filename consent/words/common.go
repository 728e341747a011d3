package words

import (
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
)

// service is our own name. It is a name, so it is not translated.
const service = "Countersign"

// Common is what every page of a Brand needs.
type Common struct {
	Lang      i18n.Language
	BrandName string // empty: a page of the service itself
	BrandCSS  string // URL of the Brand's stylesheet
	LogoURL   string // on our own origin
	Domain    string // that the Brand has proved to be its own; may be empty

	LanguageLinks []ui.Link // from LanguageLinks
	HelpURL       string
	PrivacyURL    string
	RequestID     string // shown where something went wrong
}

// LanguageLinks is the choice of languages; href gives the address of the same
// page in a language.
func LanguageLinks(all []i18n.Language, now i18n.Language, href func(tag string) string) []ui.Link {
	links := make([]ui.Link, 0, len(all))
	for _, l := range all {
		links = append(links, ui.Link{Label: ui.Plain(l.Name), Lang: l.Tag, Href: href(l.Tag), Current: l.Tag == now.Tag})
	}
	return links
}

// page is the shell of a page with this title.
func (c Common) page(title string) ui.Page {
	p := ui.Page{
		Lang: c.Lang.Tag, Dir: c.Lang.Dir, Title: title,
		BrandName: c.BrandName, BrandCSS: c.BrandCSS, LogoURL: c.LogoURL,
		Service:       service,
		Operator:      ui.Plain(c.Lang.Text("page.operator.alone")),
		LanguageLabel: c.Lang.Text("page.languages"), Languages: c.LanguageLinks,
	}
	if c.BrandName != "" {
		p.Title = c.Lang.Text("page.title", "title", title, "brand", c.BrandName)
		p.Operator = c.say("page.operator")
		if c.Domain != "" {
			p.Operator = c.say("page.operator.proven", "domain", c.Domain)
		}
	}
	if c.HelpURL != "" {
		p.Links = append(p.Links, c.link("page.help", c.HelpURL))
	}
	if c.PrivacyURL != "" {
		p.Links = append(p.Links, c.link("page.privacy", c.PrivacyURL))
	}
	return p
}

func (c Common) account(account, switchURL string) (signedIn ui.Phrase, notYou ui.Link) {
	return c.say("account.signed", "account", account), c.link("account.switch", switchURL)
}

func (c Common) link(key, href string) ui.Link {
	return ui.Link{Label: c.say(key), Href: href}
}

func (c Common) warning(key string, args ...any) ui.Notice {
	return ui.Notice{Text: c.say(key, args...), Warning: true}
}
