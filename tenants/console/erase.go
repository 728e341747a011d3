package console

import (
	"context"
	"net/http"

	"countersign.dev/authority"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// longestSubject is more than any Brand's id of a person has.
const longestSubject = 1000

// showErase is GET erase.
func (v *visit) showErase() error { return v.askErase(http.StatusOK, "") }

// askErase asks whom. The person is posted, and never stands in an address that
// browsers and proxies keep.
func (v *visit) askErase(status int, trouble string) error {
	return v.tellErase(status, pages.LeavePart{
		Heading: v.text("console.erase.whom"), Text: []ui.Phrase{v.say("console.erase.whom.lead")},
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "erase"), Button: v.say("console.erase.look"),
			Fields: []ui.Field{{
				Name: "subject", Label: v.text("console.erase.subject"), Plain: true, Longest: longestSubject,
				Value: v.form.Get("subject"), Problem: trouble,
			}},
		},
		Otherwise: v.eraseOtherwise(),
	})
}

func (v *visit) tellErase(status int, part pages.LeavePart, notices ...ui.Notice) error {
	frame, err := v.brandFrame("erase", "console.erase.heading")
	if err != nil {
		return err
	}
	return v.render(status, pages.Erase(pages.EraseView{
		Frame: frame, Heading: v.say("console.erase.heading"), Notices: notices, ProblemHeading: v.text("code.problem"),
		Lead: []ui.Phrase{v.say("console.erase.lead")}, Part: part,
	}))
}

func (v *visit) eraseOtherwise() pages.Otherwise {
	return v.otherwise([]string{v.call(http.MethodPost, "users/USER/erase", "")}, []string{v.command("user erase") + " --subject USER --yes"})
}

// erase is POST erase: first it shows what there is of the person, and with the
// name typed once more it is gone.
func (v *visit) erase() error {
	subject, again := v.form.Get("subject"), v.form.Get("again")
	if subject == "" {
		return v.askErase(http.StatusUnprocessableEntity, v.text("console.erase.missing"))
	}
	if !v.form.Has("again") {
		return v.confirmErase(http.StatusOK, subject, "")
	}
	if again != subject {
		return v.confirmErase(http.StatusUnprocessableEntity, subject, v.text("console.erase.mistyped"))
	}
	// What has begun is not broken off because a browser went away.
	e, err := v.h.Authority.Erase(context.WithoutCancel(v.ctx()), v.brand.ID, authority.ByMember(v.person.ID.String()), subject)
	if err != nil {
		return err
	}
	v.form = nil // the person is gone from the page too
	return v.tellErase(http.StatusOK, pages.LeavePart{
		Heading: v.text("console.erase.done"),
		Text: []ui.Phrase{
			v.say("console.erase.ended", "count", e.Grants), v.say("console.erase.events", "count", int(e.Events)), v.say("console.erase.sound"),
		},
	})
}

// confirmErase says what ends and what goes.
func (v *visit) confirmErase(status int, subject, trouble string) error {
	n, err := v.h.Authority.CountPerson(v.ctx(), v.brand.ID, subject)
	if err != nil {
		return err
	}
	part := pages.LeavePart{
		Heading: v.text("console.erase.sure"), Text: []ui.Phrase{v.say("console.erase.of", "subject", subject)},
		Points: []ui.Phrase{
			v.say("console.erase.living", "count", n.Living), v.say("console.erase.over", "count", n.Ended),
			v.say("console.erase.answers", "count", n.Answers), v.say("console.erase.trail"), v.say("console.erase.stays"),
		},
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "erase"), Hidden: []ui.Hidden{{Name: "subject", Value: subject}}, Button: v.say("console.erase.button"),
			Fields: []ui.Field{{Name: "again", Label: v.text("console.erase.again"), Plain: true, Longest: longestSubject, Problem: trouble}},
		},
		Otherwise: v.eraseOtherwise(),
	}
	if n == (authority.PersonCount{}) {
		part.Text = append(part.Text, v.say("console.erase.nothing"))
	}
	return v.tellErase(status, part)
}
