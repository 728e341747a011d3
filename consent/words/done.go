package words

import (
	"time"

	"countersign.dev/consent/pages"
)

// Outcome is how the person decided.
type Outcome int

// The outcomes.
const (
	Denied    Outcome = iota // nothing changed
	Allowed                  // something is ticked
	Emptied                  // nothing is ticked, and what was held has ended
	Continued                // nothing was asked that was not held; all stays as it was
)

// DoneData is what the closing page needs.
type DoneData struct {
	Common
	Agent     Agent
	Outcome   Outcome
	StepUp    bool     // it came in the middle of a conversation, to which they go back
	Allowed   []string // descriptions, as they were shown
	Ended     []string // held before, and unticked now
	Until     time.Time
	AgentsURL string
}

// Done words the closing page.
func Done(d DoneData) pages.DoneView {
	agent := d.Agent.called()
	var v pages.DoneView
	switch d.Outcome {
	case Allowed:
		v.Heading = d.say("done.allowed.heading", "agent", agent)
		d.holds(&v, "done.allowed.list")
	case Continued:
		v.Heading = d.say("done.continued.heading", "agent", agent)
		d.holds(&v, "done.continued.list")
	case Emptied:
		v.Heading = d.say("done.emptied.heading", "agent", agent)
		v.Lead = d.say("done.emptied.lead")
	case Denied:
		v.Heading = d.say("done.denied.heading")
		v.Lead = d.say("done.denied.lead", "agent", agent)
	}
	if d.StepUp {
		v.Lead = d.say(stepUpLeads[d.Outcome], "agent", agent)
	}
	if len(d.Ended) > 0 && d.Outcome != Denied {
		v.Lists = append(v.Lists, pages.List{Heading: d.Lang.Text("done.ended.list"), Items: d.Ended})
	}
	v.Page = d.page(v.Heading.String())
	return v
}

// stepUpLeads lead back to the conversation. The agent hears nothing by itself
// there: it tries again once the person writes.
var stepUpLeads = map[Outcome]string{
	Allowed: "done.allowed.stepup", Continued: "done.allowed.stepup",
	Emptied: "done.emptied.stepup", Denied: "done.denied.stepup",
}

// holds words what the agent may do from now on, until when, and where it ends.
func (d DoneData) holds(v *pages.DoneView, list string) {
	v.Allowed = true
	v.Lead = d.say("done.allowed.lead", "agent", d.Agent.called())
	v.Lists = append(v.Lists, pages.List{Heading: d.Lang.Text(list), Items: d.Allowed})
	v.Until = d.say("done.until.open")
	if !d.Until.IsZero() {
		v.Until = d.say("done.until", "date", d.Lang.Date(d.Until))
	}
	v.More = d.sayLinked(links{"agents": d.AgentsURL}, "done.more", "agents", d.Lang.Text("agents.name"))
}
