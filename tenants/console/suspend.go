package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// showSuspend is GET users/suspend: what will stand still, and for how long.
func (v *visit) showSuspend() error { return v.confirmSuspension("suspend", "console.suspend.heading") }

// showResume is GET users/resume.
func (v *visit) showResume() error { return v.confirmSuspension("resume", "console.letgo.heading") }

func (v *visit) confirmSuspension(what, heading string) error {
	subject, err := v.asked("subject")
	if err != nil {
		return err
	}
	if subject == "" {
		return problem{kind: notFound}
	}
	frame, err := v.brandFrame("grants", heading, "user", subject)
	if err != nil {
		return err
	}
	toll, err := v.h.Authority.Toll(v.ctx(), v.brand.ID, authority.Which{Subject: subject}, nil)
	if err != nil {
		return err
	}
	away, err := v.h.Authority.Suspended(v.ctx(), v.brand.ID, subject)
	if err != nil {
		return err
	}
	view := pages.EndView{
		Frame: frame, Heading: v.say(heading, "user", subject),
		Back: v.link("console.end.back", v.inQuery("grants", "subject", subject)),
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodPost, "users/"+url.PathEscape(subject)+"/"+what, "")},
			[]string{"user " + what + " --brand " + string(v.brand.ID) + " --subject " + quoted(subject)},
		),
	}
	form := pages.Form{
		Action: pageOf(v.brand.ID, "users/"+what), Hidden: []ui.Hidden{{Name: "subject", Value: subject}},
		Button: v.say("console.suspend.button"),
	}
	switch {
	case away && what == "suspend":
		view.Lead = []ui.Phrase{v.say("console.suspend.already")}
	case !away && what == "resume":
		view.Lead = []ui.Phrase{v.say("console.letgo.already")}
	case what == "resume":
		view.Lead = []ui.Phrase{v.say("console.letgo.text"), v.say("console.letgo.grants", "count", toll.Grants)}
		form.Button = v.say("console.letgo.button")
		view.Form = form
	default:
		view.Lead = []ui.Phrase{
			v.say("console.suspend.text", "user", subject), v.say("console.suspend.grants", "count", toll.Grants),
			v.say("console.end.agents", "count", toll.Agents), v.say("console.suspend.back"),
		}
		view.Form = form
	}
	return v.render(http.StatusOK, pages.End(view))
}

// suspend is POST users/suspend.
func (v *visit) suspend() error { return v.setSuspended(v.h.Authority.Suspend) }

// resume is POST users/resume.
func (v *visit) resume() error { return v.setSuspended(v.h.Authority.Resume) }

// setSuspended goes back to the user's grants, where the change is seen; what is
// so already stays so.
func (v *visit) setSuspended(act func(context.Context, tenants.BrandID, authority.By, string) error) error {
	subject := v.form.Get("subject")
	if subject == "" || !isID(subject) {
		return problem{kind: stale}
	}
	if err := act(v.ctx(), v.brand.ID, v.me(), subject); err != nil {
		return err
	}
	return v.redirect(v.inQuery("grants", "subject", subject))
}

// jsonOf is an object with one member.
func jsonOf(name, value string) string {
	raw, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		return ""
	}
	return string(raw)
}
