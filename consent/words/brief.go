package words

import (
	"time"

	"countersign.dev/consent/pages"
)

// BriefData is what the question in brief needs: its Scopes and Until stay
// empty.
type BriefData struct {
	AskData
	May       []string // descriptions of all that the agent may do already
	Ends      time.Time
	ChangeURL string // the question in full
	EndURL    string // where it is ended
}

// Brief words the question where the agent asks only for what it has.
func Brief(d BriefData) pages.BriefView {
	agent := d.Agent.called()
	v := pages.BriefView{
		Opening: d.opening(d.say("brief.question", "agent", agent)),
		Nothing: d.say("brief.nothing"),
		Holds:   d.say("brief.may", "agent", agent),
		May:     d.May,
		Until:   d.say("done.until", "date", d.Lang.Date(d.Ends)),
		Change:  d.link("brief.change", d.ChangeURL),
		End:     d.link("brief.end", d.EndURL),

		Action: d.Action, Hidden: d.Hidden,
		Next:     d.say("brief.next", "agent", agent),
		Continue: d.say("brief.continue"), Deny: d.say("ask.deny"),
	}
	v.Page = d.page(v.Question.String())
	return v
}
