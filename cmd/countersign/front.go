package main

import (
	"log/slog"
	"net/http"

	"countersign.dev/cmd/countersign/shell"
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

// operations are commands with the flags that they need; words in capitals are
// to be filled in. Anybody may read the page, so only dev tells how the program
// was started.
func (f frontDoor) operations() []string {
	program, brand := "countersign", "BRAND"
	if len(f.brands) > 0 {
		program, brand = shell.Program(), string(f.brands[0].brand.ID)
	}
	var out []string
	for _, operation := range []string{
		"brand list",
		"brand pause --brand " + brand,
		"brand resume --as-operator --brand " + brand,
		"agent list",
		"agent add --issuer URL --jwks-uri URL --name NAME",
		"agent disable --issuer URL",
		"member invite --brand " + brand + " --email ADDRESS --role support --master-key-file FILE",
		"user suspend --brand " + brand + " --subject SUBJECT",
		"grants list --brand " + brand,
		"grants revoke --brand " + brand + " --grant GRANT",
		"grants revoke --agent URL",
		"audit verify --brand " + brand,
		"keys list --brand " + brand,
		"apikey create --brand " + brand + " --name NAME --rights introspect --master-key-file FILE",
		"webhook create --brand " + brand + " --url URL --master-key-file FILE",
		"webhook deliveries --brand " + brand,
	} {
		out = append(out, program+" "+operation+" --database-url URL")
	}
	return out
}

func (f frontDoor) render(w http.ResponseWriter, r *http.Request, view pages.HomeView) {
	if err := ui.Render(r.Context(), w, http.StatusOK, pages.Home(view)); err != nil {
		f.log.ErrorContext(r.Context(), "page failed", "route", r.Pattern, "error", err)
	}
}
