package console

import (
	"context"
	"net/http"

	"countersign.dev/authority"
	"countersign.dev/authority/export"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/jackc/pgx/v5"
)

// showLeave is GET leave.
func (v *visit) showLeave() error { return v.tellLeave(http.StatusOK, "") }

// tellLeave is the page; trouble is what is wrong with the id that was typed.
func (v *visit) tellLeave(status int, trouble string) error {
	frame, err := v.brandFrame("leave", "console.leave.heading")
	if err != nil {
		return err
	}
	closing, err := tenants.ClosedSince(v.ctx(), v.h.DB, v.brand.ID, v.now)
	if err != nil {
		return err
	}
	view := pages.LeaveView{
		Frame: frame, Heading: v.say("console.leave.heading"), ProblemHeading: v.text("code.problem"),
		Lead: []ui.Phrase{v.say("console.leave.lead")}, Parts: []pages.LeavePart{v.exportPart()},
	}
	if closing != nil {
		view.Lead = []ui.Phrase{
			v.say("console.leave.over", "date", v.date(closing.At)), v.say("console.leave.until", "date", v.date(closing.EmptyAt())),
		}
		return v.render(status, pages.Leave(view))
	}
	part, err := v.closePart(trouble)
	if err != nil {
		return err
	}
	view.Parts = append(view.Parts, part)
	return v.render(status, pages.Leave(view))
}

func (v *visit) exportPart() pages.LeavePart {
	return pages.LeavePart{
		Heading:   v.text("console.leave.export"),
		Text:      []ui.Phrase{v.say("console.leave.export.what"), v.say("console.leave.export.care")},
		Form:      pages.Form{Action: pageOf(v.brand.ID, "leave/export"), Button: v.say("console.leave.export.button")},
		Otherwise: v.otherwise([]string{v.call(http.MethodGet, "export", "") + " -OJ"}, v.ofBrand("brand export")),
	}
}

// closePart says exactly what ends, and for how many.
func (v *visit) closePart(trouble string) (pages.LeavePart, error) {
	living, err := v.h.Authority.CountLiving(v.ctx(), v.brand.ID)
	if err != nil {
		return pages.LeavePart{}, err
	}
	members, err := tenants.Members(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return pages.LeavePart{}, err
	}
	id := string(v.brand.ID)
	return pages.LeavePart{
		Heading: v.text("console.leave.close"), Text: []ui.Phrase{v.say("console.leave.close.what")},
		Points: []ui.Phrase{
			v.say("console.leave.close.grants", "count", living.Grants), v.say("console.leave.close.pages"),
			v.say("console.leave.close.members", "count", len(members)), v.say("console.leave.close.data"),
			v.say("console.leave.close.keys"), v.say("console.leave.close.names", "id", id),
		},
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "leave/close"), Button: v.say("console.leave.close.button"),
			Fields: []ui.Field{{
				Name: "id", Label: v.text("console.leave.close.type", "id", id), Plain: true, Longest: 40, Problem: trouble,
			}},
		},
		Otherwise: v.otherwise(v.calls(`POST close {"id":"`+id+`"}`, "DELETE changes/ID"), append(v.ofBrand("brand close --yes"), v.command("change reject --id ID"))),
	}, nil
}

// takeAlong is POST leave/export: the archive, once every owner is told of it.
func (v *visit) takeAlong() error {
	archive := export.Archive{Authority: v.h.Authority, DB: v.h.DB, Keys: v.h.Keys, Now: v.h.Now}
	noted := func(ctx context.Context) error {
		err := v.act(tenants.EventExported).Do(ctx, v.h.DB, func(pgx.Tx) error { return nil })
		v.h.noticesDue(v.brand.ID)
		return err
	}
	return archive.Serve(v.w, v.r, v.brand.ID, noted, func(err error) {
		v.h.Log.ErrorContext(v.ctx(), "an export was broken off", "brand", string(v.brand.ID), "error", err)
	})
}

// closeBrand is POST leave/close. Closed twice is closed.
func (v *visit) closeBrand() error {
	if v.form.Get("id") != string(v.brand.ID) {
		return v.tellLeave(http.StatusUnprocessableEntity, v.text("console.leave.close.mistyped", "id", string(v.brand.ID)))
	}
	// What has begun is not broken off because a browser went away.
	_, err := v.h.Authority.Close(context.WithoutCancel(v.ctx()), v.brand.ID, authority.ByMember(v.person.ID.String()))
	v.h.Brands.Forget(v.brand.ID)
	v.h.noticesDue(v.brand.ID)
	if err != nil {
		return err
	}
	return v.redirect(pageOf(v.brand.ID, "leave"))
}

// closedNotice stands on every page of a Brand that is closed.
func (v *visit) closedNotice() ([]ui.Notice, error) {
	if v.brand.State != tenants.Closed {
		return nil, nil
	}
	closing, err := tenants.ClosedSince(v.ctx(), v.h.DB, v.brand.ID, v.now)
	if err != nil || closing == nil {
		return nil, err
	}
	return []ui.Notice{v.warning("console.leave.banner", "date", v.date(closing.EmptyAt()))}, nil
}
