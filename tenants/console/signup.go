package console

import (
	"errors"
	"net/http"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// landing is GET /console: the door, or, for whoever is inside, the Brands.
func (v *visit) landing() error {
	if v.signedIn() {
		return v.redirect("/console/brands")
	}
	return v.render(http.StatusOK, pages.Landing(pages.LandingView{
		Frame: v.frame("console.landing.heading"), Heading: v.say("console.landing.heading"),
		Lead:   []ui.Phrase{v.say("console.landing.lead"), v.say("console.landing.keys")},
		SignUp: v.link("console.landing.signup", "/console/signup"),
		SignIn: v.link("console.landing.signin", "/console/login"),
		Commands: pages.CommandList{
			Heading: v.text("console.operators.heading"), Lead: v.text("console.operators.lead"), Commands: v.h.Commands,
		},
	}))
}

// showSignUp is GET /console/signup.
func (v *visit) showSignUp() error {
	if v.h.Mail == nil {
		return problem{kind: noMail}
	}
	return v.askSignUp(http.StatusOK, nil)
}

func (v *visit) askSignUp(status int, problems map[string]string) error {
	field := func(name, label, kind, autocomplete string) ui.Field {
		return ui.Field{
			Name: name, Label: v.text(label), Hint: v.text(label + ".hint"), Kind: kind, Autocomplete: autocomplete,
			Value: v.form.Get(name), Problem: problems[name], Plain: kind == "email",
		}
	}
	return v.render(status, pages.Ask(pages.AskView{
		Frame: v.frame("console.signup.heading"), Heading: v.say("console.signup.heading"),
		Lead: []ui.Phrase{v.say("console.signup.lead")}, ProblemHeading: v.text("code.problem"),
		Form: pages.Form{
			Action: "/console/signup", Button: v.say("console.signup.button"),
			Fields: []ui.Field{
				field("organisation", "console.field.organisation", "", "organization"),
				field("brand", "console.field.brand", "", ""),
				field("email", "console.field.email", "email", "email"),
			},
		},
		Asides: []ui.Link{v.link("console.signup.signin", "/console/login")},
	}))
}

// badEmail says why the address is not taken.
func (v *visit) badEmail(err error) string {
	if errors.Is(err, tenants.ErrOtherEmail) {
		return v.text("console.problem.email.letters")
	}
	return v.text("console.problem.email")
}

// signUp is POST /console/signup. Whether the address is known changes neither the
// answer nor what is done for it; only the mail tells (B99).
func (v *visit) signUp() error {
	if v.h.Mail == nil {
		return problem{kind: noMail}
	}
	problems := make(map[string]string)
	data := tenants.LinkData{Organisation: v.line("organisation"), BrandName: v.line("brand")}
	for name, value := range map[string]string{"organisation": data.Organisation, "brand": data.BrandName} {
		if value == "" {
			problems[name] = v.text("console.problem.empty." + name)
		}
	}
	data.Typed = strings.TrimSpace(v.form.Get("email")) // uncut: what is mailed is what was checked
	email, err := tenants.ParseEmail(data.Typed)
	if err != nil {
		problems["email"] = v.badEmail(err)
	}
	if len(problems) > 0 {
		return v.askSignUp(http.StatusUnprocessableEntity, problems)
	}
	if err := v.mayWrite("signup", email); err != nil {
		return err
	}
	_, err = tenants.PersonByEmail(v.ctx(), v.h.DB, email)
	known := err == nil
	if err != nil && !errors.Is(err, tenants.ErrNoPerson) {
		return err
	}
	token, err := tenants.IssueLink(v.ctx(), v.h.DB, tenants.LinkSignUp, email, data, v.now)
	if err != nil {
		return err
	}
	if known {
		v.strangersLetter(data.Typed, "known")
	} else {
		v.strangersLetter(data.Typed, "signup", "link", v.h.LinkURL(token))
	}
	return v.sent(data.Typed)
}

// mayWrite keeps what visitors have us mail to whoever they name within its budgets.
// They are spent before anything is looked up, so whoever is refused learns nothing
// of the mailbox (B99). An address has little, and all of them together not enough to
// make the Limiter forget a mailbox before its budget has come back anyhow.
func (v *visit) mayWrite(kind, email string) error {
	if err := v.limited(v.h.writers, v.h.Addresses.Of(v.r)); err != nil {
		return err
	}
	// What an address has used up costs the others nothing, nor one door the other.
	if err := v.limited(v.h.allWriters, kind); err != nil {
		return err
	}
	return v.limited(v.h.mails, kind+" "+email)
}

// sent says that mail is on its way, if it is.
func (v *visit) sent(email string) error {
	return v.render(http.StatusOK, pages.Tell(pages.TellView{
		Frame: v.frame("console.sent.heading"), Heading: v.say("console.sent.heading"),
		Text: []ui.Phrase{v.say("console.sent.lead", "email", email), v.say("console.sent.next")},
	}))
}
