package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign.dev/tenants"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
	"github.com/a-h/templ"
)

// visit is one request of one browser.
type visit struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	action  Action
	right   right
	now     time.Time
	lang    i18n.Language
	session *session
	person  tenants.Person // zero: nobody is signed in
	brand   *tenants.Brand // nil: a page of no Brand
	member  tenants.Member // the person at the Brand
	form    url.Values     // of a POST
	file    []byte         // of a POST with one
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// page is the way into every page: not too often, by whom, with which right; and
// out of it, where an error becomes a page.
func (h *Handler) page(action Action, right right, serve func(*visit) error) http.Handler {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{h: h, w: w, r: r, action: action, right: right, now: h.now()}
		v.speak("")
		err := v.enter()
		if err == nil {
			err = serve(v)
		}
		if err != nil {
			v.fail(err)
		}
	})
	return web.Chain(page, web.Limited(h.flood, h.Addresses.Of, func(w http.ResponseWriter, r *http.Request) {
		v := &visit{h: h, w: w, r: r, now: h.now()}
		v.speak("")
		v.fail(problem{kind: tooOften})
	}))
}

// enter finds out who is there and whether the right is theirs. Nothing is read
// of what was sent before that.
func (v *visit) enter() error {
	if v.r.Method == http.MethodPost && !v.sameOrigin() {
		return problem{kind: forged}
	}
	if err := v.open(); err != nil {
		return err
	}
	if err := v.chooseLanguage(); err != nil {
		return err
	}
	if err := v.admit(); err != nil {
		return err
	}
	if v.r.Method == http.MethodPost {
		return v.readForm()
	}
	return nil
}

// admit holds the visitor against the line of the rights table. The role comes
// before the touch: nobody is asked for a passkey in vain.
func (v *visit) admit() error {
	if v.right.who == anybody {
		return nil
	}
	if !v.signedIn() {
		return errSignIn
	}
	if v.right.who != signedIn && !v.person.Secured() {
		return errSecure
	}
	if v.right.who == member {
		if err := v.admitMember(); err != nil {
			return err
		}
	}
	return v.touched()
}

func (v *visit) touched() error {
	if v.right.touch && v.r.Method == http.MethodPost && !v.isFresh() {
		return errTouch
	}
	return nil
}

// mustAlso holds a member against a further line of the rights table, where what
// was posted means more than its door. That line then says who is told.
func (v *visit) mustAlso(do Action) error {
	if !May(v.member.Role, do) {
		return problem{kind: notYours}
	}
	v.action, v.right = do, rights[do]
	return v.touched()
}

// admitMember finds the Brand in the address and what the person is to it. A Brand
// that is not theirs is told from none by nothing.
func (v *visit) admitMember() error {
	id := tenants.BrandID(v.r.PathValue("brand"))
	m, err := tenants.MemberOf(v.ctx(), v.h.DB, id, v.person.ID)
	if errors.Is(err, tenants.ErrNotMember) {
		return problem{kind: notFound}
	}
	if err != nil {
		return err
	}
	if !May(m.Role, v.action) {
		return problem{kind: notYours}
	}
	v.member = m
	v.brand, err = v.h.Brands.Brand(v.ctx(), id)
	return err
}

// act is the change that the right allows, under the member's name.
func (v *visit) act(event string) tenants.Act {
	return tenants.Act{
		Brand: v.brand.ID, By: v.person.ID, Event: event, Tell: v.right.tell,
		Record: v.h.record, Now: v.now,
	}
}

// speak chooses the language of the answer: what is wished for, then what the
// browser prefers.
func (v *visit) speak(wish string) {
	v.lang = v.h.Catalogue.Match(wish, v.r.Header.Get("Accept-Language"))
}

// chooseLanguage remembers in the session what the person chose.
func (v *visit) chooseLanguage() error {
	const longest = 64
	wish := v.r.URL.Query().Get("ui_locales")
	if v.r.Method != http.MethodGet || wish == "" || len(wish) > longest || !utf8.ValidString(wish) || strings.ContainsFunc(wish, unicode.IsControl) {
		v.speak(v.session.Locales)
		return nil
	}
	v.speak(wish)
	v.session.Locales = wish
	return v.save()
}

// sameOrigin reports whether one of our own pages made this post; who does not
// say so does not post here.
func (v *visit) sameOrigin() bool {
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return v.r.Header.Get("Origin") == v.h.PublicURL
}

// readForm reads one of our own forms. No field comes twice (B100).
func (v *visit) readForm() error {
	if v.action == ChangeLogo {
		return v.readFile("logo", tenants.LargestLogo)
	}
	const largest = 64 << 10
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, largest)
	if err := v.r.ParseForm(); err != nil {
		return problem{kind: stale, cause: err}
	}
	for _, values := range v.r.PostForm {
		if len(values) > 1 {
			return problem{kind: stale}
		}
	}
	v.form = v.r.PostForm
	return nil
}

// line is a field as one line of text without what cannot be seen; what is too
// long is cut.
func (v *visit) line(name string) string {
	const longest = 80
	text := strings.Join(strings.Fields(v.form.Get(name)), " ")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > longest {
		text = strings.TrimSpace(string(runes[:longest]))
	}
	return text
}

func (v *visit) redirect(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// pageOf is the path of one of the Brand's pages.
func pageOf(brand tenants.BrandID, rest string) string {
	return "/console/b/" + string(brand) + "/" + rest
}

// back is a path of the dashboard that somebody is to be sent on to; anything
// else is none.
func back(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(path, "\\\r\n") ||
		!strings.HasPrefix(path, "/console/") || strings.Contains(u.Path, "//") {
		return ""
	}
	return path
}

// from is the page that made this post, to come back to.
func (v *visit) from() string {
	if v.r.Method == http.MethodGet {
		return back(v.r.URL.RequestURI())
	}
	u, err := url.Parse(v.r.Referer())
	if err != nil || u.Scheme+"://"+u.Host != v.h.PublicURL {
		return ""
	}
	return back(u.RequestURI())
}

func withBack(path, to string) string {
	if to == "" {
		return path
	}
	return path + "?" + url.Values{"back": {to}}.Encode()
}

func (v *visit) render(status int, page templ.Component) error {
	return ui.Render(v.ctx(), v.w, status, page)
}
