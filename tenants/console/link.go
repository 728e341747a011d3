package console

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// mailed is a link that somebody opened, and whose it is.
type mailed struct {
	tenants.Link
	token  string
	person tenants.Person // zero: the address is nobody's yet
}

func (l mailed) known() bool { return l.person.ID != (uuid.UUID{}) }

// what binds a ceremony to this very link.
func (l mailed) what() string { return hex.EncodeToString(l.Hash) }

// path is where the link leads.
func (l mailed) path() string {
	return "/console/link?" + url.Values{"t": {l.token}}.Encode()
}

func (l mailed) hidden(more ...ui.Hidden) []ui.Hidden {
	return append([]ui.Hidden{{Name: "t", Value: l.token}}, more...)
}

func (v *visit) openLink(token string) (mailed, error) {
	l, err := tenants.OpenLink(v.ctx(), v.h.DB, token, v.now)
	if err != nil {
		return mailed{}, err
	}
	out := mailed{Link: l, token: token}
	out.person, err = tenants.PersonByEmail(v.ctx(), v.h.DB, l.Email)
	if errors.Is(err, tenants.ErrNoPerson) {
		return out, nil
	}
	return out, err
}

// showLink is GET /console/link: what the link leads to. It spends nothing: mail
// programs look at links too (R16).
func (v *visit) showLink() error {
	l, err := v.openLink(v.r.URL.Query().Get("t"))
	if err != nil {
		return err
	}
	switch {
	case l.Purpose == tenants.LinkInvitation && l.known():
		return v.askToAccept(l)
	case l.Purpose == tenants.LinkSignUp && l.known():
		return tenants.ErrDeadLink // the other link of two was used
	case l.Purpose == tenants.LinkRecovery && l.known():
		return v.offerRecovery(l, "")
	case l.Purpose == tenants.LinkRestore && l.known(), l.Purpose == tenants.LinkDemo,
		l.Purpose == tenants.LinkSignUp, l.Purpose == tenants.LinkInvitation:
		return v.askFirstKey(l)
	}
	return tenants.ErrDeadLink
}

// askFirstKey is the page on which a passkey is made by a link.
func (v *visit) askFirstKey(l mailed, hidden ...ui.Hidden) error {
	who := holder{id: l.person.ID, email: l.Email, name: l.person.Name}
	if !l.known() {
		who.id, who.name = uuid.Must(uuid.NewRandom()), l.Email
	}
	if l.Purpose == tenants.LinkRecovery || l.Purpose == tenants.LinkDemo && l.known() {
		var err error
		if who, err = v.holderOf(l.person); err != nil {
			return err
		}
	}
	ask, err := v.askNew(forLink, l.what(), who)
	if err != nil {
		return err
	}
	key := "console.link." + string(l.Purpose)
	lead, err := v.linkLead(l)
	if err != nil {
		return err
	}
	form := v.passkeyForm("/console/link", ask, "console.passkey.make", l.hidden(hidden...)...)
	if !l.known() {
		form.Fields = []ui.Field{{
			Name: "name", Label: v.text("console.field.name"), Hint: v.text("console.field.name.hint"), Autocomplete: "name",
		}}
	}
	return v.render(http.StatusOK, pages.Ask(pages.AskView{
		Frame: v.withScript(v.frame(key + ".heading")), Heading: v.say(key + ".heading"),
		Lead: []ui.Phrase{lead, v.say("console.passkey.why"), v.say("console.link.email", "email", l.Email)}, Form: form,
	}))
}

// linkLead says what the link is for; one of a Brand names the Brand.
func (v *visit) linkLead(l mailed) (ui.Phrase, error) {
	key := "console.link." + string(l.Purpose) + ".lead"
	if l.Data.Brand == "" {
		return v.say(key), nil
	}
	b, err := v.h.Brands.Brand(v.ctx(), l.Data.Brand)
	if err != nil {
		return nil, err
	}
	return v.say(key, "brand", b.Name), nil
}

// useLink is POST /console/link: the passkey was made.
func (v *visit) useLink() error {
	l, err := v.openLink(v.form.Get("t"))
	if err != nil {
		return err
	}
	key, person, err := v.takeNew(forLink, l.what())
	if err != nil {
		return err
	}
	if l.known() && person != l.person.ID {
		return problem{kind: stale} // the page is from before the address was known
	}
	switch l.Purpose {
	case tenants.LinkSignUp, tenants.LinkInvitation:
		err = tenants.Register(v.ctx(), v.h.DB, l.Link, v.newcomer(l, person), key, v.h.record, v.now)
	case tenants.LinkDemo:
		err = tenants.ClaimDemo(v.ctx(), v.h.DB, l.Link, v.newcomer(l, person), key, v.now)
	case tenants.LinkRecovery, tenants.LinkRestore:
		err = v.restore(l, person, key)
	}
	if errors.Is(err, tenants.ErrPasskeyTaken) {
		return problem{kind: noPasskey, cause: err}
	}
	if err != nil {
		return v.orMissing(l, err)
	}
	if l.Purpose == tenants.LinkSignUp {
		v.session.SignUp = &l.Data
	}
	if err := v.logIn(person); err != nil {
		return err
	}
	if l.Data.Brand != "" {
		v.h.noticesDue(l.Data.Brand)
	}
	return v.redirect("/console/keys")
}

func (v *visit) newcomer(l mailed, id uuid.UUID) tenants.Newcomer {
	n := tenants.Newcomer{ID: id, Typed: l.Data.Typed, Name: v.line("name"), Language: v.lang.Tag}
	if n.Name == "" {
		n.Name, _, _ = strings.Cut(l.Email, "@")
	}
	return n
}

// askToAccept is the page for somebody who is known already: they sign in as
// themselves, and join with one button.
func (v *visit) askToAccept(l mailed) error {
	if !v.signedIn() {
		return v.redirect(withBack("/console/login", back(v.r.URL.RequestURI())))
	}
	if v.person.ID != l.person.ID {
		return problem{kind: wrongDoor, retry: "/console/brands"}
	}
	lead, err := v.linkLead(l)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, pages.Ask(pages.AskView{
		Frame: v.frame("console.link.invitation.heading"), Heading: v.say("console.link.invitation.heading"),
		Lead: []ui.Phrase{lead},
		Form: pages.Form{Action: "/console/link/accept", Hidden: l.hidden(), Button: v.say("console.link.accept")},
	}))
}

// acceptInvitation is POST /console/link/accept.
func (v *visit) acceptInvitation() error {
	l, err := v.openLink(v.form.Get("t"))
	if err != nil {
		return err
	}
	if l.Purpose != tenants.LinkInvitation {
		return tenants.ErrDeadLink
	}
	if v.person.ID != l.person.ID {
		return problem{kind: wrongDoor, retry: "/console/brands"}
	}
	if err := tenants.Accept(v.ctx(), v.h.DB, l.Link, v.person.ID, v.h.record, v.now); err != nil {
		return err
	}
	v.h.noticesDue(l.Data.Brand)
	return v.redirect(pageOf(l.Data.Brand, ""))
}
