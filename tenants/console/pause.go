package console

import (
	"errors"
	"net/http"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// showPause is GET pause: the kill switch, and exactly what it does.
func (v *visit) showPause() error { return v.tellPause(http.StatusOK) }

func (v *visit) tellPause(status int, said ...ui.Notice) error {
	// What it says must be so now, whichever instance the switch was pressed at.
	v.h.Brands.Forget(v.brand.ID)
	b, err := v.h.Brands.Brand(v.ctx(), v.brand.ID)
	if err != nil {
		return err
	}
	frame, err := v.brandFrame("pause", "console.pause.heading")
	if err != nil {
		return err
	}
	living, err := v.h.Authority.CountLiving(v.ctx(), b.ID)
	if err != nil {
		return err
	}
	view := pages.PauseView{
		Frame: frame, Heading: v.say("console.pause.heading"), Notices: said,
		Otherwise: v.otherwise(v.calls("POST pause", "POST resume"), v.ofBrand("brand pause", "brand resume")),
	}
	minutes := int((b.TokenLifetime + time.Minute - 1) / time.Minute)
	now := v.say("console.pause.now", "count", living.Grants)
	switch b.State {
	case tenants.Active:
		view.Lead = []ui.Phrase{v.say("console.pause.active"), now}
		view.What = pages.WhatHappens{Heading: v.text("console.pause.what"), Points: []ui.Phrase{
			v.say("console.pause.what.agents"), v.say("console.pause.what.tokens", "minutes", minutes),
			v.say("console.pause.what.people"), v.say("console.pause.what.kept"), v.say("console.pause.what.told"),
		}}
		if May(v.member.Role, PauseBrand) {
			view.Form = pages.Form{Action: pageOf(b.ID, "pause"), Button: v.say("console.pause.button")}
		}
	case tenants.Paused:
		view.Lead = []ui.Phrase{v.say("console.pause.paused"), now}
		view.What = pages.WhatHappens{Heading: v.text("console.resume.what"), Points: []ui.Phrase{
			v.say("console.resume.what.agents"), v.say("console.resume.what.people"), v.say("console.resume.what.told"),
		}}
		if May(v.member.Role, ResumeBrand) {
			view.Form = pages.Form{Action: pageOf(b.ID, "resume"), Button: v.say("console.resume.button")}
		}
	case tenants.Pending, tenants.Closed:
		view.Lead = []ui.Phrase{v.say("console.pause.neither")}
	}
	return v.render(status, pages.Pause(view))
}

// pauseBrand is POST pause; paused twice is paused.
func (v *visit) pauseBrand() error { return v.switched(tenants.Stop(v.ctx(), v.edits(), v.brand.ID)) }

// resumeBrand is POST resume.
func (v *visit) resumeBrand() error {
	return v.switched(tenants.Start(v.ctx(), v.edits(), v.brand.ID))
}

func (v *visit) switched(err error) error {
	if errors.Is(err, tenants.ErrPendingBrand) {
		return v.tellPause(http.StatusConflict, v.warning("console.pause.refused"))
	}
	if err != nil {
		return err
	}
	return v.made("pause")
}
