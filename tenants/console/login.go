package console

import (
	"net/http"

	"countersign.dev/tenants/console/pages"
	"countersign.dev/web"
	"countersign.dev/web/ui"
)

// showLogin is GET /console/login. Nobody types a name: the passkey knows whose
// it is, so the page tells nobody which accounts there are.
func (v *visit) showLogin() error {
	to := back(v.r.URL.Query().Get("back"))
	if v.signedIn() {
		return v.redirect(orElse(to, "/console/brands"))
	}
	ask, err := v.askLogin()
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, pages.Ask(pages.AskView{
		Frame: v.withScript(v.frame("console.login.heading")), Heading: v.say("console.login.heading"),
		Lead: []ui.Phrase{v.say("console.login.lead")},
		Form: v.passkeyForm("/console/login", ask, "console.login.button", ui.Hidden{Name: "back", Value: to}),
		Asides: []ui.Link{
			v.link("console.login.lost", "/console/recover"),
			v.link("console.landing.signup", "/console/signup"),
		},
	}))
}

// login is POST /console/login.
func (v *visit) login() error {
	person, err := v.takeLogin()
	if err != nil {
		return err
	}
	v.session.SignUp = nil // another person's, perhaps
	if err := v.logIn(person.ID); err != nil {
		return err
	}
	return v.redirect(orElse(back(v.form.Get("back")), "/console/brands"))
}

// logout is POST /console/logout.
func (v *visit) logout() error {
	if err := v.h.Sessions.End(v.r, v.w, v.session.Session); err != nil {
		return err
	}
	return v.redirect("/console")
}

// showTouch is GET /console/touch: once more with the passkey, before something
// that a stolen session must not do.
func (v *visit) showTouch() error {
	ask, err := v.askTouch()
	if err != nil {
		return err
	}
	to := back(v.r.URL.Query().Get("back"))
	return v.render(http.StatusOK, pages.Ask(pages.AskView{
		Frame: v.withScript(v.frame("console.touch.heading")), Heading: v.say("console.touch.heading"),
		Lead: []ui.Phrase{v.say("console.touch.lead"), v.say("console.touch.again")},
		Form: v.passkeyForm("/console/touch", ask, "console.touch.button", ui.Hidden{Name: "back", Value: to}),
	}))
}

// touch is POST /console/touch.
func (v *visit) touch() error {
	if err := v.takeTouch(); err != nil {
		return err
	}
	v.session.Touched = v.now
	if err := v.save(); err != nil {
		return err
	}
	return v.redirect(orElse(back(v.form.Get("back")), "/console/brands"))
}

// withScript lets this page run the one script that asks for passkeys.
func (v *visit) withScript(f pages.Frame) pages.Frame {
	web.AllowScript(v.w)
	return scripted(f)
}

func orElse(path, other string) string {
	if path == "" {
		return other
	}
	return path
}
