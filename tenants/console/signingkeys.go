package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/jackc/pgx/v5"
)

// The facts that changes of signing keys leave in the trail; the rules write them.
const (
	eventKeyPrepared = "key.next"
	eventKeyRetired  = "key.retired"
	eventKeyRevoked  = "key.revoked"
)

// by is how the trail names the member.
func (v *visit) by() authority.By { return authority.ByMember(v.person.ID.String()) }

// keys are the Brand's as the member changes them: what becomes of them and the
// notices of the event come true together. What else happens on the way, such as
// the making of a next key, is noted and mails nobody.
func (v *visit) keys(event string) *signing.Keys {
	note := v.h.Authority.NoteKeys(v.by())
	return v.h.Keys.Noted(func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, moves []signing.Move) error {
		if slices.ContainsFunc(moves, func(m signing.Move) bool { return "key."+m.After == event }) {
			if err := v.act(event).Notify(ctx, tx); err != nil {
				return err
			}
		}
		return note(ctx, tx, brand, moves)
	})
}

// showSigningKeys is GET signing-keys.
func (v *visit) showSigningKeys() error { return v.listSigningKeys(http.StatusOK) }

func (v *visit) listSigningKeys(status int, notices ...ui.Notice) error {
	frame, err := v.brandFrame("signing-keys", "console.signingkeys.heading")
	if err != nil {
		return err
	}
	keys, err := v.h.Keys.List(v.ctx(), v.brand.ID)
	if err != nil {
		return err
	}
	view := pages.TableView{
		Frame: frame, Heading: v.say("console.signingkeys.heading"), ProblemHeading: v.text("code.problem"),
		Lead:    []ui.Phrase{v.say("console.signingkeys.lead"), v.say("console.signingkeys.turn", "count", v.brand.RotationDays)},
		Notices: append(notices, v.signerTrouble(keys)...),
		Table: pages.Table{
			Head: []string{
				v.text("console.signingkeys.key"), v.text("console.signingkeys.state"), v.text("console.signingkeys.good"),
				v.text("console.signingkeys.since"), v.text("console.signingkeys.rests"), v.text("console.members.edit"),
			},
			Empty: []ui.Phrase{v.say("console.signingkeys.none")}, Command: "countersign " + v.command("keys list"),
		},
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodGet, "keys", ""), v.call(http.MethodPost, "keys", ""), v.call(http.MethodPost, "keys/KID/retire", ""), v.call(http.MethodPost, "keys/KID/revoke", `{"reason":"…"}`)},
			[]string{v.command("keys list"), v.command("keys rotate"), v.command("keys retire") + " --kid KID", v.command("keys revoke") + " --kid KID --reason TEXT"},
		),
	}
	if q := v.r.URL.Query(); q.Has("published") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.signingkeys.published")})
	} else if q.Has("revoked") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.signingkeys.revoked")})
	}
	for _, k := range keys {
		view.Table.Rows = append(view.Table.Rows, v.signingKeyRow(k))
	}
	waits := slices.ContainsFunc(keys, func(k signing.KeyInfo) bool { return k.State == "next" })
	if May(v.member.Role, ChangeSigningKeys) && !waits {
		view.Sections = append(view.Sections, pages.Section{
			Heading: v.text("console.signingkeys.rotate"), Text: []ui.Phrase{v.say("console.signingkeys.rotate.why")},
			Form: pages.Form{Action: pageOf(v.brand.ID, "signing-keys"), Button: v.say("console.signingkeys.rotate.button")},
		})
	}
	return v.render(status, pages.Tabled(view))
}

// signerTrouble tries the key that signs, as it will be asked to.
func (v *visit) signerTrouble(keys []signing.KeyInfo) []ui.Notice {
	const patience = 2 * time.Second
	i := slices.IndexFunc(keys, func(k signing.KeyInfo) bool { return k.State == "current" })
	if i < 0 {
		return []ui.Notice{v.warning("console.signingkeys.trouble.none")}
	}
	ctx, cancel := context.WithTimeout(v.ctx(), patience)
	defer cancel()
	switch err := v.h.Keys.SelfTest(ctx, v.brand.ID); {
	case err == nil:
		return nil
	case errors.Is(err, signing.ErrUnavailable), ctx.Err() != nil:
		return []ui.Notice{v.warning("console.signingkeys.trouble.away", "store", v.store(keys[i].Backend))}
	default:
		v.h.Log.ErrorContext(v.ctx(), "ALARM: a Brand's key does not sign", "brand", string(v.brand.ID), "error", err)
		return []ui.Notice{v.warning("console.signingkeys.trouble.broken", "store", v.store(keys[i].Backend))}
	}
}

// store words where a key rests.
func (v *visit) store(backend string) string {
	if backend == "local" {
		return v.text("console.signingkeys.local")
	}
	return v.text("console.signingkeys.vault", "store", backend)
}

func (v *visit) signingKeyRow(k signing.KeyInfo) pages.Row {
	state, good := v.keyState(k)
	row := pages.Row{
		{Code: k.KID, Note: string(k.Alg)},
		cell(ui.Plain(state)), cell(good), cell(ui.Plain(v.date(k.ChangedAt))),
		cell(ui.Plain(v.store(k.Backend))),
		{},
	}
	if k.State != "revoked" && May(v.member.Role, ChangeSigningKeys) {
		row[5].Link = v.link("console.members.change", pageOf(v.brand.ID, "signing-keys/"+k.KID), "key", k.KID)
	}
	return row
}

// keyState words the state of a key and what it is good for.
func (v *visit) keyState(k signing.KeyInfo) (state string, good ui.Phrase) {
	switch k.State {
	case "next":
		return v.text("console.signingkeys.next"), v.say("console.signingkeys.next.good", "date", v.date(k.SignsFrom()))
	case "current":
		return v.text("console.signingkeys.current"), v.say("console.signingkeys.current.good")
	case "retired":
		return v.text("console.signingkeys.retired"), v.say("console.signingkeys.retired.good")
	}
	return v.text("console.signingkeys.over"), v.say("console.signingkeys.over.good", "reason", *k.Reason)
}

// publishNextKey is POST signing-keys.
func (v *visit) publishNextKey() error {
	p := v.h.Policy(v.brand)
	_, err := v.keys(eventKeyPrepared).Prepare(v.ctx(), v.brand.ID, p.Backend, p.Alg)
	switch {
	case errors.Is(err, signing.ErrNextExists):
		return v.listSigningKeys(http.StatusConflict, v.warning("console.signingkeys.exists"))
	case errors.Is(err, signing.ErrUnavailable):
		return v.listSigningKeys(http.StatusServiceUnavailable, v.warning("console.signingkeys.unmade"))
	case err != nil:
		return err
	}
	v.h.noticesDue(v.brand.ID)
	return v.redirect(pageOf(v.brand.ID, "signing-keys?published"))
}

// signingKey finds the key in the address.
func (v *visit) signingKey() (signing.KeyInfo, error) {
	keys, err := v.h.Keys.List(v.ctx(), v.brand.ID)
	if err != nil {
		return signing.KeyInfo{}, err
	}
	i := slices.IndexFunc(keys, func(k signing.KeyInfo) bool { return k.KID == v.r.PathValue("kid") })
	if i < 0 {
		return signing.KeyInfo{}, problem{kind: notFound}
	}
	return keys[i], nil
}

// showSigningKey is GET signing-keys/{kid}.
func (v *visit) showSigningKey() error {
	k, err := v.signingKey()
	if err != nil {
		return err
	}
	return v.tellSigningKey(http.StatusOK, k, "", "")
}

func (v *visit) tellSigningKey(status int, k signing.KeyInfo, typed, trouble string) error {
	frame, err := v.brandFrame("signing-keys", "console.signingkey.heading")
	if err != nil {
		return err
	}
	living, err := v.h.Authority.CountLiving(v.ctx(), v.brand.ID)
	if err != nil {
		return err
	}
	at := pageOf(v.brand.ID, "signing-keys/"+k.KID)
	state, good := v.keyState(k)
	view := pages.ThingView{
		Frame: frame, Heading: v.say("console.signingkey.heading"), ProblemHeading: v.text("code.problem"),
		Facts: []pages.Fact{
			{Name: v.text("console.signingkeys.key"), Code: k.KID},
			{Name: v.text("console.signingkeys.state"), Text: ui.Plain(state)},
			{Name: v.text("console.signingkeys.good"), Text: good},
			{Name: v.text("console.signingkey.made"), Text: ui.Plain(v.date(k.CreatedAt))},
			{Name: v.text("console.signingkeys.since"), Text: ui.Plain(v.date(k.ChangedAt))},
			{Name: v.text("console.signingkeys.rests"), Text: ui.Plain(v.store(k.Backend))},
		},
		Back: v.link("console.signingkey.back", pageOf(v.brand.ID, "signing-keys")),
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodPost, "keys/"+k.KID+"/revoke", `{"reason":"…"}`)},
			[]string{v.command("keys revoke") + " --kid " + k.KID + " --reason TEXT"},
		),
	}
	if k.State == "next" {
		view.Ways = append(view.Ways, pages.Section{
			Heading: v.text("console.signingkey.takeback"), Text: []ui.Phrase{v.say("console.signingkey.takeback.why")},
			Form: pages.Form{Action: at + "/retire", Button: v.say("console.signingkey.takeback.button")},
		})
	}
	if k.State != "revoked" {
		view.Ways = append(view.Ways, pages.Section{
			Heading: v.text("console.signingkey.revoke"), Text: v.endsWith(k, living),
			Form: pages.Form{
				Action: at + "/revoke", Button: v.say("console.signingkey.revoke.button"),
				Fields: []ui.Field{{
					Name: "reason", Label: v.text("console.signingkey.reason"), Hint: v.text("console.signingkey.reason.hint"),
					Value: typed, Problem: trouble,
				}},
			},
		})
	}
	return v.render(status, pages.Thing(view))
}

// endsWith says what ends with the key, and for how many people.
func (v *visit) endsWith(k signing.KeyInfo, living authority.LivingCount) []ui.Phrase {
	out := []ui.Phrase{v.say("console.signingkey.revoke.why")}
	switch k.State {
	case "next":
		return append(out, v.say("console.signingkey.revoke.next"))
	case "current":
		out = append(out,
			v.say("console.signingkey.revoke.tokens", "count", living.Grants),
			v.say("console.signingkey.revoke.renewed", "count", int(v.brand.TokenLifetime/time.Minute)))
	case "retired":
		out = append(out, v.say("console.signingkey.revoke.old"))
	}
	return append(out, v.say("console.signingkey.revoke.receipts"))
}

// takeKeyBack is POST signing-keys/{kid}/retire.
func (v *visit) takeKeyBack() error {
	k, err := v.signingKey()
	if err != nil {
		return err
	}
	err = v.keys(eventKeyRetired).Retire(v.ctx(), v.brand.ID, k.KID)
	if errors.Is(err, signing.ErrInUse) {
		return v.listSigningKeys(http.StatusConflict, v.warning("console.signingkeys.inuse"))
	}
	if err != nil {
		return err
	}
	v.h.noticesDue(v.brand.ID)
	return v.redirect(pageOf(v.brand.ID, "signing-keys"))
}

// revokeSigningKey is POST signing-keys/{kid}/revoke: the emergency.
func (v *visit) revokeSigningKey() error {
	const longest = 200 // bytes, as the API allows
	k, err := v.signingKey()
	if err != nil {
		return err
	}
	reason := strings.TrimSpace(v.line("reason"))
	if reason == "" || len(reason) > longest {
		return v.tellSigningKey(http.StatusUnprocessableEntity, k, reason, v.text("console.signingkey.reason.problem"))
	}
	err = v.keys(eventKeyRevoked).Revoke(v.ctx(), v.brand.ID, k.KID, reason, v.h.Policy(v.brand))
	if errors.Is(err, signing.ErrNoSuccessor) {
		// It is revoked; the list says that no key signs.
		v.h.Log.ErrorContext(v.ctx(), "ALARM: no key signs for a Brand", "brand", string(v.brand.ID), "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	v.h.noticesDue(v.brand.ID)
	return v.redirect(pageOf(v.brand.ID, "signing-keys?revoked"))
}
