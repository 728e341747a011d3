package console

import (
	"encoding/base64"
	"errors"
	"net/http"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// eventLeft is the fact that a member went by themselves.
const eventLeft = "member.left"

const accountAt = "/console/account"

// showAccount is GET /console/account: what opens the account, where it is open,
// and which Brands it works on.
func (v *visit) showAccount() error { return v.tellAccount(http.StatusOK, v.accountNews()...) }

func (v *visit) accountNews() []ui.Notice {
	return append(v.told("removed", "console.account.removed"), v.told("ended", "console.account.ended")...)
}

func (v *visit) tellAccount(status int, notices ...ui.Notice) error {
	keys, err := tenants.OwnPasskeys(v.ctx(), v.h.DB, v.person.ID)
	if err != nil {
		return err
	}
	open, err := v.h.Sessions.Own(v.ctx(), v.person.ID.String(), v.session.Session)
	if err != nil {
		return err
	}
	brands, err := tenants.Memberships(v.ctx(), v.h.DB, v.person.ID)
	if err != nil {
		return err
	}
	view := pages.AccountView{
		Frame: v.frame("console.account.heading"), Heading: v.say("console.account.heading"), Notices: notices,
		Lead: []ui.Phrase{v.say("console.account.lead", "email", v.person.EmailTyped)},
		Keys: pages.OwnTable{
			Heading: v.text("console.account.keys"), Text: v.say("console.account.keys.why"),
			Head: []string{
				v.text("console.account.key"), v.text("console.account.made"), v.text("console.account.used"), v.text("console.account.actions"),
			},
		},
		More: v.link("console.account.more", "/console/keys"),
		Open: pages.OwnTable{
			Heading: v.text("console.account.open"), Text: v.say("console.account.open.why"),
			Head: []string{v.text("console.account.browser"), v.text("console.account.since")},
		},
		Brands: pages.OwnTable{
			Heading: v.text("console.account.brands"), Text: v.say("console.account.brands.why"),
			Head: []string{v.text("console.account.brand"), v.text("console.members.role"), v.text("console.account.actions")},
		},
		Back: v.link("console.account.back", "/console/brands"),
	}
	view.Frame.Page.Wide = true
	for _, k := range keys {
		row := pages.OwnRow{Name: orElse(k.Name, v.text("console.account.key.unnamed")), Facts: []string{v.date(k.MadeAt), v.text("console.account.used.never")}}
		if k.UsedAt != nil {
			row.Facts[1] = v.date(*k.UsedAt)
		}
		row.Post = ui.Post{
			Action: accountAt + "/remove", Button: ui.Button{Label: v.say("console.account.remove")},
			Hidden: []ui.Hidden{{Name: "passkey", Value: base64.RawURLEncoding.EncodeToString(k.ID)}},
		}
		view.Keys.Rows = append(view.Keys.Rows, row)
	}
	for _, s := range open {
		row := pages.OwnRow{Name: orElse(s.Browser, v.text("console.account.browser.unknown")), Facts: []string{v.date(s.Since)}}
		if s.Here {
			row.Mark = v.text("console.account.here")
		}
		view.Open.Rows = append(view.Open.Rows, row)
	}
	if len(open) > 1 {
		view.Elsewhere = ui.Post{Action: accountAt + "/elsewhere", Button: ui.Button{Label: v.say("console.account.elsewhere")}}
	}
	for _, m := range brands {
		row := pages.OwnRow{Name: m.Name, Facts: []string{v.role(m.Role)}}
		if !m.Held {
			row.Link = v.link("console.account.quit", pageOf(m.Brand, "quit"))
		}
		view.Brands.Rows = append(view.Brands.Rows, row)
	}
	return v.render(status, pages.Account(view))
}

// removeKey is POST /console/account/remove. Whoever holds the device may be signed
// in with it: every other session ends too.
func (v *visit) removeKey() error {
	id, err := base64.RawURLEncoding.DecodeString(v.form.Get("passkey"))
	if err != nil || len(id) == 0 {
		return problem{kind: stale, retry: accountAt}
	}
	err = tenants.RemovePasskey(v.ctx(), v.h.DB, v.person.ID, id)
	switch {
	case errors.Is(err, tenants.ErrLastWay):
		return v.tellAccount(http.StatusConflict, v.warning("console.account.lastway"))
	case errors.Is(err, tenants.ErrNoPasskey):
		return v.redirect(accountAt) // removed twice is removed
	case err != nil:
		return err
	}
	v.letter(v.person.EmailTyped, "keygone")
	if _, err := v.h.Sessions.EndOthers(v.ctx(), v.person.ID.String(), v.session.Session); err != nil {
		return err
	}
	return v.redirect(accountAt + "?removed")
}

// endElsewhere is POST /console/account/elsewhere.
func (v *visit) endElsewhere() error {
	if _, err := v.h.Sessions.EndOthers(v.ctx(), v.person.ID.String(), v.session.Session); err != nil {
		return err
	}
	return v.redirect(accountAt + "?ended")
}

// showQuit is GET quit: what it means to leave the Brand.
func (v *visit) showQuit() error { return v.tellQuit(http.StatusOK) }

func (v *visit) tellQuit(status int, problems ...ui.Notice) error {
	frame, err := v.brandFrame("quit", "console.quit.heading")
	if err != nil {
		return err
	}
	return v.render(status, pages.Member(pages.MemberView{
		Frame: frame, Heading: v.say("console.quit.heading"), Problem: problems,
		Lead: []ui.Phrase{v.say("console.quit.lead"), v.say("console.quit.told")},
		Sections: []pages.Way{{
			Heading: v.text("console.quit.sure"), Text: v.say("console.quit.why"),
			Form: pages.Form{
				Action: pageOf(v.brand.ID, "quit"), Button: v.say("console.quit.button"),
				Check: &pages.Check{Name: "sure", Value: "yes", Label: v.text("console.quit.tick")},
			},
		}},
		Back: v.link("console.quit.back", accountAt),
	}))
}

// quit is POST quit: the member leaves the Brand by themselves. The last owner
// cannot.
func (v *visit) quit() error {
	if v.form.Get("sure") != "yes" {
		return v.redirect(pageOf(v.brand.ID, "quit"))
	}
	err := tenants.RemoveMember(v.ctx(), v.h.DB, v.act(eventLeft), v.person.ID)
	if errors.Is(err, tenants.ErrLastOwner) {
		return v.tellQuit(http.StatusConflict, v.warning("console.problem.lastowner"))
	}
	if err != nil {
		return err
	}
	v.h.noticesDue(v.brand.ID)
	return v.redirect("/console/brands")
}
