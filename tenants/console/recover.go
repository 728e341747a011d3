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
	eventRecoveryCancelled = "recovery.cancelled"
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
	if err := v.limited(v.h.mails, "recover "+email); err != nil {
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
		v.letter(typed, "nobody")
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
	more, err := v.waits(l)
	if err != nil {
		return err
	}
	view.More = more
	return v.render(status, pages.Ask(view))
}

// waits are the person's Brands as owner, and how far the wait at each has come.
func (v *visit) waits(l mailed) ([]pages.Way, error) {
	all, err := tenants.Memberships(v.ctx(), v.h.DB, l.person.ID)
	if err != nil {
		return nil, err
	}
	under, err := tenants.RecoveriesOf(v.ctx(), v.h.DB, l.person.ID)
	if err != nil {
		return nil, err
	}
	at := make(map[tenants.BrandID]tenants.Recovery)
	for _, r := range under {
		at[r.Brand] = r
	}
	var out []pages.Way
	for _, m := range all {
		proven, err := v.h.proven(v.ctx(), m.Brand)
		if err != nil {
			return nil, err
		}
		if m.Role != tenants.Owner || !proven {
			continue
		}
		way := pages.Way{
			Heading: m.Name, Text: v.say("console.wait.none"),
			Form: pages.Form{
				Action: "/console/recover/wait", Button: v.say("console.wait.button"),
				Hidden: l.hidden(ui.Hidden{Name: "brand", Value: string(m.Brand)}),
			},
		}
		r, waiting := at[m.Brand]
		switch {
		case waiting && r.DueAt.After(v.now):
			way.Text, way.Form = v.say("console.wait.until", "date", v.date(r.DueAt)), pages.Form{}
		case waiting:
			way.Text, way.Form.Button = v.say("console.wait.over"), v.say("console.wait.use")
		}
		out = append(out, way)
	}
	return out, nil
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

// askToWait is POST /console/recover/wait: it begins the wait at a Brand, or, when
// that is over, leads to a new passkey. Only a Brand whose domain is proven can be
// had that way.
func (v *visit) askToWait() error {
	l, err := v.openRecovery()
	if err != nil {
		return err
	}
	brand := tenants.BrandID(v.form.Get("brand"))
	proven, err := v.h.proven(v.ctx(), brand)
	if err != nil {
		return err
	}
	if !proven {
		return problem{kind: notYours}
	}
	under, err := tenants.RecoveriesOf(v.ctx(), v.h.DB, l.person.ID)
	if err != nil {
		return err
	}
	for _, r := range under {
		if r.Brand == brand && !r.DueAt.After(v.now) {
			return v.askFirstKey(l, ui.Hidden{Name: "brand", Value: string(brand)}, ui.Hidden{Name: "recovery", Value: r.ID.String()})
		}
	}
	err = tenants.AskRecovery(v.ctx(), v.h.DB, tenants.Act{
		Brand: brand, By: l.person.ID, Event: eventRecoveryAsked, Record: v.h.record, Now: v.now,
	})
	if err != nil && !errors.Is(err, tenants.ErrNoRecovery) {
		return err
	}
	v.h.noticesDue(brand)
	return v.render(http.StatusOK, pages.Tell(pages.TellView{
		Frame: v.frame("console.wait.heading"), Heading: v.say("console.wait.heading"),
		Text: []ui.Phrase{v.say("console.wait.begun"), v.say("console.wait.return")},
	}))
}

// restore gives the person a new passkey by the link: on an owner's word, with a
// code, or after a wait. The rule looks at all of it again.
func (v *visit) restore(l mailed, person uuid.UUID, key tenants.Passkey) error {
	if l.Purpose == tenants.LinkRestore {
		return tenants.RestoreByBrand(v.ctx(), v.h.DB, l.Link, l.Data.Brand, uuid.UUID{}, person, key, v.h.record, v.now)
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
	brand := tenants.BrandID(v.form.Get("brand"))
	proven, err := v.h.proven(v.ctx(), brand)
	if err != nil {
		return err
	}
	recovery, err := uuid.Parse(v.form.Get("recovery"))
	if err != nil || !proven {
		return problem{kind: notYours}
	}
	return tenants.RestoreByBrand(v.ctx(), v.h.DB, l.Link, brand, recovery, person, key, v.h.record, v.now)
}

// cancelRecovery is POST recoveries/{recovery}/cancel.
func (v *visit) cancelRecovery() error {
	id, err := uuid.Parse(v.r.PathValue("recovery"))
	if err != nil {
		return problem{kind: notFound}
	}
	return v.changed(tenants.CancelRecovery(v.ctx(), v.h.DB, v.act(eventRecoveryCancelled), id))
}
