package consent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign.dev/authority"
	"countersign.dev/consent/federation"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
)

// Config is what a Handler needs.
type Config struct {
	Authority  *authority.Authority
	Brands     *tenants.Directory
	DB         *tenants.DB
	Sealer     tenants.Sealer
	Federation *federation.Client
	Sessions   *web.Store
	Addresses  web.Addresses
	Catalogue  *i18n.Catalogue
	// MAC makes form tokens and login secrets under keys outside the database.
	MAC func(brand tenants.BrandID, purpose string, data []byte) ([]byte, error)
	// PublicURL is the origin of every page; never taken from a request.
	PublicURL string
	// CookieName is the __Host- cookie of the browser session.
	CookieName string
	// Tried is where the answer to a test login of the Brand's own members goes on:
	// providers know one address of ours, so it comes where all answers come. nil:
	// there are none.
	Tried func(brand tenants.BrandID, answer url.Values) string
	// DevHTTP lets login connections be plain http on loopback.
	DevHTTP bool
	Now     func() time.Time
	Log     *slog.Logger
}

// Handler serves the person's pages of every Brand.
type Handler struct {
	Config
	journeys journeys
	logins   *tenants.Logins
	origin   string
}

// New returns a Handler.
func New(c Config) *Handler {
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	return &Handler{Config: c, journeys: journeys{c.DB, c.Now}, logins: tenants.NewLogins(c.DB, c.Sealer, c.Now), origin: c.PublicURL}
}

// Routes registers every page. In all three modes of a Brand they live only
// here, on our own origin.
func (h *Handler) Routes(mux *http.ServeMux) {
	const pages = "/b/{brand}/"
	mux.Handle("GET "+pages+"device", h.page(h.showCode))
	mux.Handle("POST "+pages+"device", h.page(h.typeCode))
	mux.Handle("GET "+pages+"login", h.page(h.login))
	mux.Handle("GET "+pages+"callback", h.page(h.callback))
	mux.Handle("GET "+pages+"consent", h.page(h.show))
	mux.Handle("POST "+pages+"consent/decision", h.page(h.decide))
	mux.Handle("POST "+pages+"consent", h.page(h.arrive))
	mux.Handle("POST "+pages+"agents", h.page(h.arriveAtAgents))
	mux.Handle("POST "+pages+"agents/enter", h.page(h.enterAgents))
	mux.Handle("GET "+pages+"agents", h.page(h.grants))
	mux.Handle("POST "+pages+"agents/end", h.page(h.endGrant))
	mux.Handle("POST "+pages+"agents/signout", h.page(h.signOut))
	// Phones open a put-away tab by its address alone, which may be a form's.
	mux.Handle("GET "+pages+"agents/end", h.page(backToAgents))
	mux.Handle("GET "+pages+"agents/signout", h.page(backToAgents))
	mux.HandleFunc("GET "+pages+"brand.css", h.brandCSS)
	mux.HandleFunc("GET "+pages+"logo", h.logo)
	mux.HandleFunc("GET "+pages+"agents/logo", h.agentLogo)
	mux.HandleFunc("GET "+pages+"login/jwks.json", h.loginKeys)
}

// FromElsewhere are the patterns of the posts that come from other sites: a Brand's
// own login page says there who somebody is. They look at Origin themselves.
func FromElsewhere() []string {
	return []string{"POST /b/{brand}/consent", "POST /b/{brand}/agents"}
}

// visit is one request of one browser at one Brand.
type visit struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	brand   *tenants.Brand
	browser *browser
	lang    i18n.Language
	locales string // what the link asked for, carried along
	// alone: the person came from another site, without our cookie. What their
	// form carries stands for it, and no address leads back to this page.
	alone bool
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// page is the way into every page: the Brand, the browser, the language; and
// out of it, where an error becomes a page.
func (h *Handler) page(serve func(*visit) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{h: h, w: w, r: r}
		if r.Method == http.MethodGet {
			v.locales = r.URL.Query().Get("ui_locales")
		}
		v.speak()
		brand, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
		if errors.Is(err, tenants.ErrNoBrand) || err == nil && (!brand.Delegation || !brand.Exists()) {
			v.fail(problem{kind: words.NotFound})
			return
		}
		if err != nil {
			v.fail(err)
			return
		}
		v.brand = brand
		if v.browser, err = h.openBrowser(r); err != nil {
			v.fail(err)
			return
		}
		if err := serve(v); err != nil {
			v.fail(err)
		}
	})
}

// speak chooses the language of the answer.
func (v *visit) speak() {
	const longest = 64
	if len(v.locales) > longest || !utf8.ValidString(v.locales) || strings.ContainsFunc(v.locales, unicode.IsControl) {
		v.locales = ""
	}
	v.lang = v.h.Catalogue.Match(v.locales, v.r.Header.Get("Accept-Language"))
}

// pages returns the path of one of the Brand's pages, with parameters in pairs.
func (v *visit) pages(name string, params ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			q.Set(params[i], params[i+1])
		}
	}
	if v.locales != "" {
		q.Set("ui_locales", v.locales)
	}
	path := "/b/" + string(v.brand.ID) + "/" + name
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

func (v *visit) redirect(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// common is what every page shows around its content. here is this page with
// its parameters, for the language links.
func (v *visit) common(here func(tag string) string) words.Common {
	c := v.branded()
	c.RequestID = web.RequestID(v.ctx())
	if here != nil {
		c.LanguageLinks = words.LanguageLinks(v.h.Catalogue.Languages(), v.lang, here)
	}
	return c
}

// branded is what of it is the Brand's.
func (v *visit) branded() words.Common {
	c := words.Common{Lang: v.lang}
	if v.brand != nil {
		c.BrandName = v.brand.Name
		c.BrandCSS = "/b/" + string(v.brand.ID) + "/brand.css?c=" + strings.TrimPrefix(v.brand.Colour, "#")
		c.HelpURL, c.PrivacyURL, c.Domain = v.brand.SupportURL, v.brand.PrivacyURL, v.brand.Domain
		if v.brand.Logo != "" {
			c.LogoURL = "/b/" + string(v.brand.ID) + "/logo?v=" + url.QueryEscape(v.brand.Logo)
		}
	}
	return c
}

// at returns the language links' addresses for the page with the parameters.
func (v *visit) at(name string, params ...string) func(string) string {
	if v.alone {
		return nil
	}
	return func(tag string) string {
		other := *v
		other.locales = tag
		return other.pages(name, params...)
	}
}

// brandCSS is the Brand's one colour, corrected for contrast. Its address names
// the colour, so it may be kept for as long as anybody likes.
func (h *Handler) brandCSS(w http.ResponseWriter, r *http.Request) {
	brand, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	_, _ = w.Write(ui.BrandCSS(brand.Colour))
}
