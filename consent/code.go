package consent

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/ui"
)

// showCode is GET {pages}/device: the page to type a code on, or, with the code
// in the link, the page before the sign-in. It changes nothing (R16), and both
// ways go on by the same path (B07).
func (h *Handler) showCode(v *visit) error {
	typed := v.r.URL.Query()["user_code"]
	if len(typed) == 0 {
		return v.askForCode("", words.NoProblem, http.StatusOK)
	}
	if len(typed) > 1 || !v.navigates() {
		return problem{kind: words.DeadCode}
	}
	_, code, err := h.Authority.Find(v.ctx(), v.brand.ID, typed[0], v.visitor())
	if err != nil {
		return err
	}
	signIn, err := v.signInURL(code.String())
	if err != nil {
		return err
	}
	view := words.Start(words.StartData{
		Common:    v.common(v.at("device", "user_code", code.String())),
		SignInURL: signIn,
	})
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Start(view))
}

// typeCode is POST {pages}/device.
func (h *Handler) typeCode(v *visit) error {
	if !h.sameOrigin(v.r) {
		return problem{kind: words.ForgedForm}
	}
	form, err := readForm(v)
	if err != nil {
		return err
	}
	typed := form.Get("user_code")
	if typed == "" {
		return v.askForCode("", words.CodeEmpty, http.StatusUnprocessableEntity)
	}
	// A session, so that wrong codes count against this browser too.
	if err := v.keep(); err != nil {
		return err
	}
	_, code, err := h.Authority.Find(v.ctx(), v.brand.ID, typed, v.visitor())
	if errors.Is(err, authority.ErrUnknown) {
		const longest = 64
		return v.askForCode(typed[:min(len(typed), longest)], words.CodeWrong, http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.pages("device", "user_code", code.String()))
}

// navigates reports whether a person's browser goes to this page. A picture or a
// frame on some other site that names our address must not use up the codes
// that its visitor may still mistype.
func (v *visit) navigates() bool {
	dest := v.r.Header.Get("Sec-Fetch-Dest")
	return dest == "" || dest == "document"
}

func (v *visit) askForCode(typed string, p words.CodeProblem, status int) error {
	view := words.Code(words.CodeData{
		Common: v.common(v.at("device")), Action: v.pages("device"), Typed: typed, Problem: p,
	})
	return ui.Render(v.ctx(), v.w, status, pages.Code(view))
}

// visitor is whom wrong codes are counted against.
func (v *visit) visitor() authority.Visitor {
	who := authority.Visitor{Session: v.browser.secret, Address: v.h.Addresses.Of(v.r)}
	if l, ok := v.browser.login(v.brand.ID, v.h.Now()); ok {
		who.Subject = l.Subject
	}
	return who
}

// readForm reads one of our own forms. A field may come twice only where a form
// has it twice (B100).
func readForm(v *visit, repeatable ...string) (url.Values, error) {
	const largest = 64 << 10
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, largest)
	if err := v.r.ParseForm(); err != nil {
		return nil, problem{kind: words.StaleForm, cause: err}
	}
	for name, values := range v.r.PostForm {
		if len(values) > 1 && !slices.Contains(repeatable, name) {
			return nil, problem{kind: words.StaleForm}
		}
	}
	// The language stands in the form's address.
	v.locales = v.r.URL.Query().Get("ui_locales")
	v.speak()
	return v.r.PostForm, nil
}
