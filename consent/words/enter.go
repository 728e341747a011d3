package words

import (
	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// EnterData is what the page between the Brand's own sign-in and My agents needs.
type EnterData struct {
	Common
	Account   string // as the Brand names it
	SwitchURL string // to sign in as somebody else
	Action    string
	Hidden    []ui.Hidden
}

// Enter words it.
func Enter(d EnterData) pages.EnterView {
	heading := d.say("enter.heading")
	v := pages.EnterView{
		Page: d.page(heading.String()), Heading: heading, Lead: d.say("enter.lead"),
		Action: d.Action, Hidden: d.Hidden, GoOn: ui.Button{Label: d.say("enter.go")},
	}
	v.Account.SignedIn, v.Account.NotYou = d.account(d.Account, d.SwitchURL)
	return v
}
