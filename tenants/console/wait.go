package console

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// wait is how far the person's wait at a Brand of theirs has come.
type wait struct {
	tenants.Recovery // zero: none has begun
	brand            tenants.Membership
	domains          []tenants.Domain // where its token may stand
}

func (w wait) begun() bool             { return w.ID != (uuid.UUID{}) }
func (w wait) over(now time.Time) bool { return w.begun() && !w.DueAt.After(now) }

// waits are the Brands whose owner the person is and which can be had by a wait:
// those with a domain that shows whose they still are. One that the operator let
// in without any has an operator to turn to.
func (v *visit) waits(l mailed) ([]wait, error) {
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
	var out []wait
	for _, m := range all {
		if m.Role != tenants.Owner {
			continue
		}
		domains, err := tenants.StandingDomains(v.ctx(), v.h.DB, m.Brand, v.now)
		if err != nil {
			return nil, err
		}
		if len(domains) > 0 {
			out = append(out, wait{Recovery: at[m.Brand], brand: m, domains: domains})
		}
	}
	return out, nil
}

// postedWait is the wait at the Brand that was posted.
func (v *visit) postedWait(l mailed) (wait, error) {
	all, err := v.waits(l)
	if err != nil {
		return wait{}, err
	}
	for _, w := range all {
		if string(w.brand.Brand) == v.form.Get("brand") {
			return w, nil
		}
	}
	return wait{}, problem{kind: notYours}
}

// keeps reports whether whoever is here has come back by another Brand, with a passkey
// that works: then the wait at this one ends its rest, and makes no other passkey, which
// would throw away what the other Brand's wait has shown.
func (v *visit) keeps(l mailed, w wait) bool {
	return w.brand.Held && v.signedIn() && v.person.ID == l.person.ID
}

// way says where the wait stands, what to publish for it, and what to do next.
func (v *visit) way(l mailed, w wait) pages.Way {
	out := pages.Way{
		Heading: w.brand.Name, Text: v.say("console.wait.none", "brand", w.brand.Name),
		Form: pages.Form{
			Action: "/console/recover/wait", Button: v.say("console.wait.button"),
			Hidden: l.hidden(ui.Hidden{Name: "brand", Value: string(w.brand.Brand)}),
		},
	}
	if w.brand.Held {
		out.Text = v.say("console.wait.none.here", "brand", w.brand.Name)
	}
	if !w.begun() {
		return out
	}
	out.Publish = v.publications(w.Token, w.domains...)
	switch {
	case !w.over(v.now) && w.brand.Held:
		out.Text, out.Form = v.say("console.wait.until.here", "date", v.date(w.DueAt)), pages.Form{}
	case !w.over(v.now):
		out.Text, out.Form = v.say("console.wait.until", "date", v.date(w.DueAt)), pages.Form{}
	case v.keeps(l, w):
		out.Text, out.Form.Button = v.say("console.wait.over.here"), v.say("console.wait.here")
	case w.brand.Held:
		out.Text, out.Form.Button = v.say("console.wait.over.first"), v.say("console.wait.use")
	default:
		out.Text, out.Form.Button = v.say("console.wait.over"), v.say("console.wait.use")
	}
	return out
}

// signInFirst leads whoever has come back by another Brand already, and is not signed in,
// to the passkey that they made then.
func (v *visit) signInFirst(l mailed, all []wait) []ui.Link {
	first := func(w wait) bool { return w.brand.Held && !v.keeps(l, w) }
	if !slices.ContainsFunc(all, first) {
		return nil
	}
	return []ui.Link{v.link("console.wait.signin", withBack("/console/login", l.path()))}
}

// askToWait is POST /console/recover/wait: it begins the wait at a Brand, or, when
// that is over and its token stands, leads to a new passkey.
func (v *visit) askToWait() error {
	l, err := v.openRecovery()
	if err != nil {
		return err
	}
	w, err := v.postedWait(l)
	if err != nil {
		return err
	}
	if w.over(v.now) {
		if v.keeps(l, w) {
			return v.orMissing(l, v.confirmByWait(l, w))
		}
		if _, err := v.findProof(w); err != nil {
			return v.orMissing(l, err)
		}
		return v.askFirstKey(l, ui.Hidden{Name: "brand", Value: string(w.brand.Brand)}, ui.Hidden{Name: "recovery", Value: w.ID.String()})
	}
	err = tenants.AskRecovery(v.ctx(), v.h.DB, tenants.Act{
		Brand: w.brand.Brand, By: l.person.ID, Event: eventRecoveryAsked, Record: v.h.record, Now: v.now,
	})
	if err != nil && !errors.Is(err, tenants.ErrNoRecovery) { // one is under way
		return err
	}
	v.h.noticesDue(w.brand.Brand)
	if w, err = v.postedWait(l); err != nil {
		return err
	}
	return v.render(http.StatusOK, pages.Ask(pages.AskView{
		Frame: v.frame("console.wait.heading"), Heading: v.say("console.wait.heading"),
		Lead: []ui.Phrase{v.say("console.wait.begun"), v.say("console.wait.return")},
		More: []pages.Way{v.way(l, w)},
	}))
}

// confirmByWait ends the rest of the membership by the passkey that the person has, just
// touched, and the proof that stands now.
func (v *visit) confirmByWait(l mailed, w wait) error {
	if !v.isFresh() {
		return v.redirect(withBack("/console/touch", l.path()))
	}
	host, err := v.findProof(w)
	if err != nil {
		return err
	}
	id := w.brand.Brand
	err = tenants.ConfirmByWait(v.ctx(), v.h.DB, l.Link, id, tenants.Waited{Recovery: w.ID, Host: host}, v.person.ID, v.session.Since, v.h.record, v.now)
	if err != nil {
		return err
	}
	v.h.noticesDue(id)
	return v.redirect(pageOf(id, ""))
}

// findProof looks at the Brand's domains, now.
func (v *visit) findProof(w wait) (host string, err error) {
	if err := v.limited(v.h.looks, string(w.brand.Brand)); err != nil {
		return "", err
	}
	return w.FindProof(v.ctx(), v.h.DB, v.h.Prover, v.now)
}

// orMissing is the page that says what to publish and what was found instead;
// any other error it returns.
func (v *visit) orMissing(l mailed, err error) error {
	missing, ok := errors.AsType[tenants.NoProof](err)
	if !ok {
		return err
	}
	w, err := v.postedWait(l)
	if err != nil {
		return err
	}
	way := v.way(l, w)
	way.FoundAs = v.text("console.domains.found")
	way.Found, way.Lang = v.trouble(missing.Found)
	return v.render(http.StatusUnprocessableEntity, pages.Ask(pages.AskView{
		Frame: v.frame("console.wait.missing.heading"), Heading: v.say("console.wait.missing.heading"),
		Lead: []ui.Phrase{v.say("console.wait.missing")},
		More: []pages.Way{way},
	}))
}

// restoreByWait gives the person a new passkey after the wait. The page has looked
// for the proof; what counts is that it still stands.
func (v *visit) restoreByWait(l mailed, person uuid.UUID, key tenants.Passkey) error {
	w, err := v.postedWait(l)
	if err != nil {
		return err
	}
	if !w.over(v.now) || w.ID.String() != v.form.Get("recovery") {
		return tenants.ErrNoRecovery
	}
	host, err := v.findProof(w)
	if err != nil {
		return err
	}
	err = tenants.RestoreByBrand(v.ctx(), v.h.DB, l.Link, w.brand.Brand, tenants.Waited{Recovery: w.ID, Host: host}, person, key, v.h.record, v.now)
	if err == nil {
		v.h.noticesDue(w.brand.Brand)
	}
	return err
}
