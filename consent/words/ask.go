package words

import (
	"slices"
	"time"

	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// AskData is what the question needs.
type AskData struct {
	Common
	Account   string // as the Brand names it: alex@example
	SwitchURL string // to sign in as somebody else
	AgentsURL string // My agents

	Agent    Agent
	Purpose  string // the agent's claims: shown as its own words, decide nothing
	Place    string
	UserCode string
	StepUp   bool      // the Brand asks, in the middle of a conversation
	Reason   string    // the Brand's words on why, at a step-up; may be empty
	AskedAt  time.Time // its time zone is the one shown
	Now      time.Time

	Action string
	Hidden []ui.Hidden
	Scopes []Scope
	Until  []Until

	Notices []Notice
}

// Until is a choice of how long; zero At means until the person ends it.
type Until struct {
	Value    string // what the form sends
	Days     int
	At       time.Time
	Selected bool
}

// Notice is something that must be said above the question.
type Notice int

// What may have to be said.
const (
	ListChanged  Notice = iota // since the page was opened
	OtherAccount               // another account of this Brand already lets this agent act
	SignedInAgain
)

// Ask words the question.
func Ask(d AskData) pages.AskView {
	agent := d.Agent.called()
	v := pages.AskView{
		Opening: d.opening(d.question()),

		Action: d.Action, Hidden: d.Hidden,
		PermissionsLegend: d.say("ask.permissions", "agent", agent),
		PermissionsHint:   d.hint(),
		Groups:            d.groups(d.Scopes),
		Tally:             d.tally(len(d.Scopes)),

		UntilLegend: d.Lang.Text("ask.until"),
		Until:       d.until(),

		Next: d.sayLinked(links{"agents": d.AgentsURL}, "ask.next",
			"agent", agent, "agents", d.Lang.Text("agents.name")),
		Allow: d.say("ask.allow"), Deny: d.say("ask.deny"),
	}
	v.Page = d.page(v.Question.String())
	return v
}

// question says "more" where a step-up adds to what is held.
func (d AskData) question() ui.Phrase {
	held := slices.ContainsFunc(d.Scopes, func(s Scope) bool { return s.Held })
	if d.StepUp && held {
		return d.say("ask.question.more", "agent", d.Agent.called())
	}
	return d.say("ask.question", "agent", d.Agent.called())
}

// opening words what comes before what is asked. A step-up was started by the
// Brand's own server, and the agent passed on a link and perhaps no code.
func (d AskData) opening(question ui.Phrase) pages.Opening {
	asked, label, why := "ask.asked", "ask.code.label", "ask.code.why"
	if d.StepUp {
		asked, label, why = "ask.asked.stepup", "ask.code.label.stepup", "ask.code.why.stepup"
	}
	o := pages.Opening{
		Question: question,
		Asked:    d.say(asked, "host", d.Agent.host(), "ago", d.ago(), "when", d.Lang.DateTime(d.AskedAt)),
		Care:     d.say("ask.care"),
		Warnings: d.warnings(d.Agent),
		Claims:   d.claims(),

		CodeLabel: d.Lang.Text(label), Code: d.UserCode, CodeWhy: d.say(why),
	}
	if o.Picture = d.Agent.picture(); o.Picture != "" {
		o.PictureSays = d.say("ask.picture", "agent", d.Agent.called())
	}
	if d.Reason != "" {
		o.Said = d.say("ask.said", "words", d.Reason)
	}
	o.Account.SignedIn, o.Account.NotYou = d.account(d.Account, d.SwitchURL)
	for _, n := range d.Notices {
		o.Notice = append(o.Notice, d.notice(n))
	}
	return o
}

func (d AskData) ago() string {
	minutes := int(d.Now.Sub(d.AskedAt) / time.Minute)
	if minutes < 1 {
		return d.Lang.Text("ask.ago.now")
	}
	return d.Lang.Text("ask.ago.minutes", "count", minutes)
}

// hint says what unticking does; for what is held it does more.
func (d AskData) hint() ui.Phrase {
	for _, s := range d.Scopes {
		if s.Held {
			return d.say("ask.permissions.held")
		}
	}
	return d.say("ask.permissions.hint")
}

func (d AskData) claims() pages.Claims {
	var said []ui.Phrase
	if d.Agent.Name != "" && !d.Agent.NameVerified {
		said = append(said, d.say("ask.claims.name", "name", d.Agent.Name))
	}
	if d.Purpose != "" {
		said = append(said, d.say("ask.claims.quote", "words", d.Purpose))
	}
	if d.Place != "" {
		said = append(said, d.say("ask.claims.place", "place", d.Place))
	}
	return pages.Claims{
		Heading: d.say("ask.claims.heading", "agent", d.Agent.called()),
		Badge:   d.Lang.Text("ask.claims.badge"), Words: said,
	}
}

func (d AskData) until() []pages.Until {
	var choices []pages.Until
	for _, u := range d.Until {
		choice := pages.Until{Value: u.Value, Selected: u.Selected}
		if u.At.IsZero() {
			choice.Label = d.Lang.Text("ask.until.open")
		} else {
			choice.Label = d.Lang.Text("ask.until.days", "count", u.Days)
			choice.Date = d.Lang.Text("ask.until.date", "date", d.Lang.Date(u.At))
		}
		choices = append(choices, choice)
	}
	return choices
}

func (d AskData) notice(n Notice) ui.Notice {
	switch n {
	case OtherAccount:
		return d.warning("ask.notice.other", "agent", d.Agent.called())
	case SignedInAgain:
		return ui.Notice{Text: d.say("ask.notice.again")}
	case ListChanged:
	}
	return d.warning("ask.notice.changed")
}
