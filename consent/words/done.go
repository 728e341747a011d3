package words

import (
	"time"

	"countersign.dev/consent/pages"
)

// Outcome is how the person decided.
type Outcome int

// The outcomes.
const (
	Denied  Outcome = iota // nothing changed
	Allowed                // something is ticked
	Emptied                // nothing is ticked, and what was held has ended
)

// DoneData is what the closing page needs.
type DoneData struct {
	Common
	Agent     Agent
	Outcome   Outcome
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
		v.Allowed = true
		v.Heading = d.say("done.allowed.heading", "agent", agent)
		v.Lead = d.say("done.allowed.lead", "agent", agent)
		v.Lists = append(v.Lists, pages.List{Heading: d.Lang.Text("done.allowed.list"), Items: d.Allowed})
		v.Until = d.say("done.until.open")
		if !d.Until.IsZero() {
			v.Until = d.say("done.until", "date", d.Lang.Date(d.Until))
		}
		v.More = d.sayLinked(links{"agents": d.AgentsURL}, "done.more", "agents", d.Lang.Text("agents.name"))
	case Emptied:
		v.Heading = d.say("done.emptied.heading", "agent", agent)
		v.Lead = d.say("done.emptied.lead")
	case Denied:
		v.Heading = d.say("done.denied.heading")
		v.Lead = d.say("done.denied.lead", "agent", agent)
	}
	if len(d.Ended) > 0 && d.Outcome != Denied {
		v.Lists = append(v.Lists, pages.List{Heading: d.Lang.Text("done.ended.list"), Items: d.Ended})
	}
	v.Page = d.page(v.Heading.String())
	return v
}
