package console

import (
	"errors"
	"net/http"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// The facts of somebody's way back in.
const (
	eventRecoveryAsked     = "recovery.asked"
	eventRecoveryCancelled = tenants.EventRecoveryCancelled
)

// showRecover is GET /console/recover: the ways back in begin with mail.
func (v *visit) showRecover() error {
	if v.h.Mail == nil {
		return problem{kind: noMail}
	}
	return v.askRecover(http.StatusOK, "")
}

func (v *visit) askRecover(status int, trouble string) error {
	return v.render(status, pages.Ask(pages.AskView{
		Frame: v.frame("console.recover.heading"), Heading: v.say("console.recover.heading"),
		Lead: []ui.Phrase{v.say("console.recover.lead"), v.say("console.recover.owner")}, ProblemHeading: v.text("code.problem"),
		Form: pages.Form{
			Action: "/console/recover", Button: v.say("console.recover.button"),
			Fields: []ui.Field{{
				Name: "email", Label: v.text("console.field.email"), Kind: "email", Plain: true, Autocomplete: "email",
				Value: v.form.Get("email"), Problem: trouble,
			}},
		},
	}))
}

// recover is POST /console/recover. As with a sign-up, only the mail tells whether
// there is an account (B99).
func (v *visit) recover() error {
	if v.h.Mail == nil {
		return problem{kind: noMail}
	}
	typed := v.line("email")
	email, err := tenants.ParseEmail(typed)
	if err != nil {
		return v.askRecover(http.StatusUnprocessableEntity, v.text("console.problem.email"))
	}
	if err := v.mayWrite("recover", email); err != nil {
		return err
	}
	_, err = tenants.PersonByEmail(v.ctx(), v.h.DB, email)
	known := err == nil
	if err != nil && !errors.Is(err, tenants.ErrNoPerson) {
		return err
	}
	token, err := tenants.IssueLink(v.ctx(), v.h.DB, tenants.LinkRecovery, email, tenants.LinkData{}, v.now)
	if err != nil {
		return err
	}
	if known {
		v.letter(typed, "recovery", "link", v.h.LinkURL(token))
	} else {
		v.strangersLetter(typed, "nobody")
	}
	return v.sent(typed)
}

// offerRecovery is what the mailed link leads to: a code, a wait that is over, or
// a wait to begin. The mail alone opens nothing.
func (v *visit) offerRecovery(l mailed, trouble string) error {
	status := http.StatusOK
	if trouble != "" {
		status = http.StatusUnprocessableEntity
	}
	view := pages.AskView{
		Frame: v.frame("console.back.heading"), Heading: v.say("console.back.heading"),
		Lead: []ui.Phrase{v.say("console.back.lead"), v.say("console.recover.owner")}, ProblemHeading: v.text("code.problem"),
		Form: pages.Form{
			Action: "/console/recover/code", Hidden: l.hidden(), Button: v.say("console.back.button"),
			Fields: []ui.Field{{
				Name: "code", Label: v.text("console.field.code"), Hint: v.text("console.field.code.hint"), Plain: true, Problem: trouble,
			}},
		},
	}
	all, err := v.waits(l)
	if err != nil {
		return err
	}
	for _, w := range all {
		view.More = append(view.More, v.way(l, w))
	}
	view.Asides = v.signInFirst(l, all)
	return v.render(status, pages.Ask(view))
}

// openRecovery is the link of a recovery that was posted.
func (v *visit) openRecovery() (mailed, error) {
	l, err := v.openLink(v.form.Get("t"))
	if err == nil && (l.Purpose != tenants.LinkRecovery || !l.known()) {
		err = tenants.ErrDeadLink
	}
	return l, err
}

// giveCode is POST /console/recover/code: a code that counts leads to a new
// passkey, and to nothing else.
func (v *visit) giveCode() error {
	l, err := v.openRecovery()
	if err != nil {
		return err
	}
	if err := v.limited(v.h.guesses, "code "+l.person.ID.String()); err != nil {
		return err
	}
	err = tenants.CheckCode(v.ctx(), v.h.DB, l.person.ID, v.form.Get("code"))
	if errors.Is(err, tenants.ErrBadCode) {
		return v.offerRecovery(l, v.text("console.problem.code"))
	}
	if err != nil {
		return err
	}
	return v.askFirstKey(l, ui.Hidden{Name: "code", Value: v.form.Get("code")})
}

// restore gives the person a new passkey by the link: on an owner's word, with a
// code, or after a wait. The rule looks at all of it again.
func (v *visit) restore(l mailed, person uuid.UUID, key tenants.Passkey) error {
	if l.Purpose == tenants.LinkRestore {
		return tenants.RestoreByBrand(v.ctx(), v.h.DB, l.Link, l.Data.Brand, tenants.Waited{}, person, key, v.h.record, v.now)
	}
	if code := v.form.Get("code"); code != "" {
		err := tenants.RestoreByCode(v.ctx(), v.h.DB, l.Link, person, code, key, v.now)
		if err == nil {
			v.letter(l.person.EmailTyped, "newkey")
		}
		if errors.Is(err, tenants.ErrBadCode) {
			return problem{kind: noPasskey, cause: err}
		}
		return err
	}
	return v.restoreByWait(l, person, key)
}

// cancelRecovery is POST recoveries/{recovery}/cancel.
func (v *visit) cancelRecovery() error {
	id, err := uuid.Parse(v.r.PathValue("recovery"))
	if err != nil {
		return problem{kind: notFound}
	}
	return v.changed(tenants.CancelRecovery(v.ctx(), v.h.DB, v.act(eventRecoveryCancelled), id))
}
