package console

import (
	"errors"
	"net/http"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// showMembers is GET members.
func (v *visit) showMembers() error { return v.listMembers(http.StatusOK, "", "") }

// listMembers is the page; typed and trouble are an invitation that did not go out.
func (v *visit) listMembers(status int, typed, trouble string) error {
	frame, err := v.brandFrame("members", "console.members.heading")
	if err != nil {
		return err
	}
	all, err := tenants.Members(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	open, err := tenants.Invitations(v.ctx(), v.h.DB, v.brand.ID, v.now)
	if err != nil {
		return err
	}
	waits, err := tenants.Recoveries(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	view := pages.MembersView{
		Frame: frame, Heading: v.say("console.members.heading"), Lead: v.say("console.members.lead"),
		ProblemHeading: v.text("code.problem"),
		Head: [4]string{
			v.text("console.members.who"), v.text("console.members.role"), v.text("console.members.since"), v.text("console.members.edit"),
		},
	}
	if v.r.URL.Query().Has("invited") {
		view.Notices = append(view.Notices, ui.Notice{Text: v.say("console.members.invited")})
	}
	names := make(map[uuid.UUID]string)
	for _, m := range all {
		names[m.Person] = m.Name
		view.Members = append(view.Members, v.memberRow(m))
	}
	for _, w := range waits {
		view.Waits = append(view.Waits, pages.Wait{
			Text: v.warning("console.members.wait", "person", names[w.Person], "date", v.date(w.DueAt)),
			Cancel: ui.Post{
				Action: pageOf(v.brand.ID, "recoveries/"+w.ID.String()+"/cancel"),
				Button: ui.Button{Label: v.say("console.members.wait.cancel")},
			},
		})
	}
	view.Open = v.openInvitations(open)
	view.Otherwise = v.otherwise(
		v.calls("GET members", `POST members {"email":"sami@example.com","role":"support"}`, `PUT members/ID/role {"role":"viewer"}`,
			"DELETE members/ID", "POST members/ID/confirm", "POST members/ID/vouch", "DELETE invitations/ID", "DELETE recoveries/ID"),
		v.ofBrand("member list", "member invite --email sami@example.com --role support", "member role --id ID --role viewer",
			"member remove --id ID", "member confirm --id ID", "member vouch --id ID", "member withdraw --id ID", "member deny --id ID"),
	)
	if May(v.member.Role, InviteMember) {
		view.Invite = v.inviteForm(typed, trouble)
	}
	return v.render(status, pages.Members(view))
}

func (v *visit) memberRow(m tenants.Member) pages.MemberRow {
	row := pages.MemberRow{Name: m.Name, Email: m.Email, Role: v.role(m.Role), Since: v.lang.Date(m.Since.UTC())}
	if m.Held {
		row.Note = v.text("console.held.other")
	}
	if May(v.member.Role, ChangeMember) {
		row.Edit = v.link("console.members.change", pageOf(v.brand.ID, "members/"+m.Person.String()))
	}
	return row
}

func (v *visit) openInvitations(open []tenants.Invitation) pages.OpenInvitations {
	out := pages.OpenInvitations{
		Heading: v.text("console.invitations.heading"),
		Head: [4]string{
			v.text("console.members.who"), v.text("console.members.role"), v.text("console.invitations.until"), v.text("console.members.edit"),
		},
	}
	for _, i := range open {
		row := pages.InvitationRow{Email: i.Email, Role: v.role(i.Role), Until: v.date(i.ExpiresAt)}
		if May(v.member.Role, WithdrawInvitation) {
			row.Withdraw = ui.Post{
				Action: pageOf(v.brand.ID, "invitations/"+i.ID.String()+"/withdraw"),
				Button: ui.Button{Label: v.say("console.invitations.withdraw")},
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func (v *visit) inviteForm(typed, trouble string) pages.Invite {
	return pages.Invite{
		Heading: v.text("console.invite.heading"), Lead: v.say("console.invite.lead"),
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "members"), Button: v.say("console.invite.button"),
			Fields: []ui.Field{
				{
					Name: "email", Label: v.text("console.field.invited"), Kind: "email", Plain: true,
					Value: typed, Problem: trouble,
				},
				v.roleField(tenants.Role(v.form.Get("role")), tenants.Viewer),
			},
		},
	}
}

func (v *visit) roleField(chosen, usual tenants.Role) ui.Field {
	if chosen == "" {
		chosen = usual
	}
	f := ui.Field{Name: "role", Label: v.text("console.members.role"), Hint: v.text("console.role.hint")}
	for _, r := range tenants.Roles() {
		f.Options = append(f.Options, ui.Option{Value: string(r), Label: v.role(r) + " – " + v.text("console.role."+string(r)+".may"), Chosen: r == chosen})
	}
	return f
}

// invite is POST members.
func (v *visit) invite() error {
	if v.h.Mail == nil {
		return problem{kind: noMail}
	}
	typed := v.line("email")
	email, err := tenants.ParseEmail(typed)
	if err != nil {
		return v.listMembers(http.StatusUnprocessableEntity, typed, v.badEmail(err))
	}
	if err := v.limited(v.h.invites, "invite "+string(v.brand.ID)); err != nil {
		return err
	}
	token, err := tenants.Invite(v.ctx(), v.h.DB, v.act(tenants.EventInvited), email, tenants.Role(v.form.Get("role")))
	switch {
	case errors.Is(err, tenants.ErrMember):
		return v.listMembers(http.StatusUnprocessableEntity, typed, v.text("console.problem.member"))
	case errors.Is(err, tenants.ErrNoRole):
		return problem{kind: stale, retry: v.from()}
	case err != nil:
		return err
	}
	v.h.noticesDue(v.brand.ID)
	v.letter(typed, "invitation", "brand", v.brand.Name, "person", v.person.Name, "link", v.h.LinkURL(token))
	return v.redirect(pageOf(v.brand.ID, "members?invited"))
}

// withdraw is POST invitations/{invitation}/withdraw.
func (v *visit) withdraw() error {
	id, err := uuid.Parse(v.r.PathValue("invitation"))
	if err != nil {
		return problem{kind: notFound}
	}
	return v.changed(tenants.Withdraw(v.ctx(), v.h.DB, v.act(tenants.EventWithdrawn), id))
}

// changed goes back to the list; ended twice is ended.
func (v *visit) changed(err error) error {
	if err != nil && !errors.Is(err, tenants.ErrNoInvitation) {
		return err
	}
	v.h.noticesDue(v.brand.ID)
	return v.redirect(pageOf(v.brand.ID, "members"))
}

// other finds the member in the address.
func (v *visit) other() (tenants.Member, error) {
	id, err := uuid.Parse(v.r.PathValue("person"))
	if err != nil {
		return tenants.Member{}, problem{kind: notFound}
	}
	m, err := tenants.MemberOf(v.ctx(), v.h.DB, v.brand.ID, id)
	if errors.Is(err, tenants.ErrNotMember) && m.Held {
		return m, nil
	}
	return m, err
}

// showMember is GET members/{person}.
func (v *visit) showMember() error {
	m, err := v.other()
	if err != nil {
		return err
	}
	return v.tellMember(http.StatusOK, m, "")
}

func (v *visit) tellMember(status int, m tenants.Member, trouble string) error {
	frame, err := v.brandFrame("members", "console.member.heading", "person", m.Name)
	if err != nil {
		return err
	}
	at := func(what string) string { return pageOf(v.brand.ID, "members/"+m.Person.String()+"/"+what) }
	section := func(what string, fields ...ui.Field) pages.Way {
		key := "console.member." + what
		return pages.Way{
			Heading: v.text(key), Text: v.say(key+".why", "person", m.Name),
			Form: pages.Form{Action: at(what), Fields: fields, Button: v.say(key + ".button")},
		}
	}
	view := pages.MemberView{
		Frame: frame, Heading: v.say("console.member.heading", "person", m.Name),
		Lead: []ui.Phrase{v.say("console.member.lead", "email", m.Email, "role", v.role(m.Role), "date", v.lang.Date(m.Since.UTC()))},
		Back: v.link("console.member.back", pageOf(v.brand.ID, "members")),
	}
	if trouble != "" {
		view.Problem = append(view.Problem, v.warning(trouble))
	}
	if m.Held {
		view.Sections = append(view.Sections, section("confirm"))
	}
	view.Sections = append(view.Sections, section("role", v.roleField(m.Role, m.Role)))
	if m.Person != v.person.ID {
		view.Sections = append(view.Sections, section("vouch"))
	}
	view.Sections = append(view.Sections, section("remove"))
	return v.render(status, pages.Member(view))
}

// changeMember makes a change of the member in the address.
func (v *visit) changeMember(event string, change func(tenants.Act, uuid.UUID) error) error {
	m, err := v.other()
	if err != nil {
		return err
	}
	err = change(v.act(event), m.Person)
	if errors.Is(err, tenants.ErrLastOwner) {
		return v.tellMember(http.StatusConflict, m, "console.problem.lastowner")
	}
	if errors.Is(err, tenants.ErrNoRole) {
		return problem{kind: stale, retry: v.from()}
	}
	return v.changed(err)
}

// changeRole is POST members/{person}/role.
func (v *visit) changeRole() error {
	return v.changeMember(tenants.EventRole, func(a tenants.Act, person uuid.UUID) error {
		return tenants.ChangeRole(v.ctx(), v.h.DB, a, person, tenants.Role(v.form.Get("role")))
	})
}

// removeMember is POST members/{person}/remove.
func (v *visit) removeMember() error {
	return v.changeMember(tenants.EventRemoved, func(a tenants.Act, person uuid.UUID) error {
		return tenants.RemoveMember(v.ctx(), v.h.DB, a, person)
	})
}

// confirmMember is POST members/{person}/confirm.
func (v *visit) confirmMember() error {
	return v.changeMember(tenants.EventConfirmed, func(a tenants.Act, person uuid.UUID) error {
		return tenants.ConfirmMember(v.ctx(), v.h.DB, a, person)
	})
}

// vouch is POST members/{person}/vouch: the member has lost all passkeys, and an
// owner knows that it is them who ask. Nobody vouches for themselves.
func (v *visit) vouch() error {
	if v.h.Mail == nil {
		return problem{kind: noMail}
	}
	return v.changeMember(tenants.EventVouched, func(a tenants.Act, person uuid.UUID) error {
		if person == v.person.ID {
			return problem{kind: notYours}
		}
		if err := v.limited(v.h.invites, "invite "+string(v.brand.ID)); err != nil {
			return err
		}
		m, err := v.other()
		if err != nil {
			return err
		}
		token, err := tenants.Vouch(v.ctx(), v.h.DB, a, person)
		if err != nil {
			return err
		}
		v.letter(m.Email, "restore", "brand", v.brand.Name, "person", v.person.Name, "link", v.h.LinkURL(token))
		return nil
	})
}
