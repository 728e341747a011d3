package words

import (
	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// StartData is what the page before the sign-in needs. It cannot carry what is
// asked (M19).
type StartData struct {
	Common
	SignInURL string
	Agents    bool // the way to My agents, instead of to a request
}

// Start words the page for visitors who are not signed in.
func Start(d StartData) pages.StartView {
	signIn := d.link("start.go", d.SignInURL)
	if d.Agents {
		heading := d.say("start.agents.heading")
		return pages.StartView{
			Page: d.page(heading.String()), Heading: heading, Lead: d.say("start.agents.lead"), GoOn: signIn,
		}
	}
	heading := d.say("start.heading")
	return pages.StartView{
		Page: d.page(heading.String()), Heading: heading, Lead: d.say("start.lead"),
		Steps: []ui.Phrase{d.say("start.step.sign"), d.say("start.step.read"), d.say("start.step.decide")},
		GoOn:  signIn, Care: d.say("start.care"),
	}
}
