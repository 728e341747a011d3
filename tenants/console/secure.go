package console

import (
	"net/http"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// showKeys is GET /console/keys: how one lost device will not lock its owner out.
func (v *visit) showKeys() error {
	who, err := v.holderOf(v.person)
	if err != nil {
		return err
	}
	ask, err := v.askNew(forKey, "", who)
	if err != nil {
		return err
	}
	view := pages.SecureView{
		Frame: v.withScript(v.frame("console.keys.heading")), Heading: v.say("console.keys.heading"),
		Lead: []ui.Phrase{
			v.say("console.keys.lead"),
			v.say("console.keys.passkeys", "count", v.person.Passkeys),
			v.say("console.keys.codes", "count", v.person.Codes),
		},
		Ways: []pages.Way{
			{
				Heading: v.text("console.keys.second"), Text: v.say("console.keys.second.why"),
				Form: v.passkeyForm("/console/keys", ask, "console.keys.second.button"),
			},
			{
				Heading: v.text("console.keys.print"), Text: v.say("console.keys.print.why"),
				Form: pages.Form{Action: "/console/keys/codes", Button: v.say("console.keys.print.button")},
			},
		},
	}
	if v.person.Secured() {
		view.Frame.Notices = append(view.Frame.Notices, ui.Notice{Text: v.say("console.keys.secured")})
		view.GoOn = v.link("console.keys.on", v.next())
	}
	return v.render(http.StatusOK, pages.Secure(view))
}

// next is where somebody goes who is secured: to the Brand they signed up for, or
// to those there are.
func (v *visit) next() string {
	if v.session.SignUp != nil {
		return "/console/new"
	}
	return "/console/brands"
}

// addKey is POST /console/keys.
func (v *visit) addKey() error {
	key, person, err := v.takeNew(forKey, "")
	if err != nil {
		return err
	}
	if person != v.person.ID {
		return problem{kind: stale} // somebody else signed in under the open page
	}
	if err := tenants.AddPasskey(v.ctx(), v.h.DB, v.person.ID, key, v.now); err != nil {
		return problem{kind: noPasskey, retry: "/console/keys", cause: err}
	}
	v.letter(v.person.EmailTyped, "newkey")
	return v.redirect(v.next())
}

// makeCodes is POST /console/keys/codes: the answer holds the codes, which no
// other page ever shows.
func (v *visit) makeCodes() error {
	codes, err := tenants.NewRecoveryCodes(v.ctx(), v.h.DB, v.person.ID)
	if err != nil {
		return err
	}
	v.letter(v.person.EmailTyped, "newcodes")
	return v.showCodes(http.StatusOK, codes)
}

func (v *visit) showCodes(status int, codes []string) error {
	return v.render(status, pages.Codes(pages.CodesView{
		Frame: v.frame("console.codes.heading"), Heading: v.say("console.codes.heading"),
		Lead: []ui.Phrase{v.say("console.codes.lead"), v.say("console.codes.print")}, Codes: codes,
		Form: pages.Form{
			Action: "/console/keys/kept", Button: v.say("console.codes.button"),
			Check: &pages.Check{Name: "kept", Value: "yes", Label: v.text("console.codes.kept")},
		},
	}))
}

// keepCodes is POST /console/keys/kept. Without the tick nothing is kept, and the
// page to make new codes comes again: the old ones are not shown twice.
func (v *visit) keepCodes() error {
	if v.form.Get("kept") != "yes" {
		return v.redirect("/console/keys")
	}
	if err := tenants.KeepRecoveryCodes(v.ctx(), v.h.DB, v.person.ID, v.now); err != nil {
		return err
	}
	return v.redirect(v.next())
}
