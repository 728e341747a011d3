package main

import (
	"log/slog"
	"net/http"

	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
)

// frontDoor is what stands at the public URL itself.
type frontDoor struct {
	catalogue *i18n.Catalogue
	brands    []demoBrand
	log       *slog.Logger
}

func (f frontDoor) common(r *http.Request) words.Common {
	lang := f.catalogue.Match(r.URL.Query().Get("ui_locales"), r.Header.Get("Accept-Language"))
	return words.Common{
		Lang: lang, RequestID: web.RequestID(r.Context()),
		LanguageLinks: words.LanguageLinks(f.catalogue.Languages(), lang, func(tag string) string {
			return r.URL.Path + "?ui_locales=" + tag
		}),
	}
}

func (f frontDoor) home(w http.ResponseWriter, r *http.Request) {
	d := words.HomeData{Common: f.common(r)}
	for _, b := range f.brands {
		d.Brands = append(d.Brands, words.DemoBrand{Name: b.brand.Name, CodeURL: b.pages + "/device", CardURL: b.brand.CardURL()})
	}
	f.render(w, r, words.Home(d))
}

// console tells operators how to work until there is a dashboard here.
func (f frontDoor) console(w http.ResponseWriter, r *http.Request) {
	f.render(w, r, words.Operators(f.common(r), []string{
		"countersign brand list --database-url …",
		"countersign brand pause --brand ID --database-url …",
		"countersign agent list --database-url …",
		"countersign agent disable --issuer URL --database-url …",
		"countersign user suspend --brand ID --subject ID --database-url …",
	}))
}

func (f frontDoor) render(w http.ResponseWriter, r *http.Request, view pages.HomeView) {
	if err := ui.Render(r.Context(), w, http.StatusOK, pages.Home(view)); err != nil {
		f.log.ErrorContext(r.Context(), "page failed", "route", r.Pattern, "error", err)
	}
}
