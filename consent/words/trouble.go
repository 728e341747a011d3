package words

import (
	"net/http"
	"time"

	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// TroubleKind is a way a journey can end before its end.
type TroubleKind int

// The dead ends.
const (
	Internal         TroubleKind = iota // something of ours broke
	NotFound                            // no such page
	Expired                             // seen after login: the request ran out
	AlreadyDenied                       // the person said no before
	AlreadyAnswered                     // the person, in another window, said yes before
	DeadCode                            // before login: unknown, dead or used, never said which
	TooManyTries                        // of codes
	LoginRefused                        // the Brand's sign-in came back without a person
	LoginUnreachable                    // the Brand's sign-in did not answer
	SessionLapsed                       // the login ran out under an open page
	AgentsLapsed                        // the same, on a page of My agents
	AccountSuspended                    // at the Brand: nothing may act for it
	WrongAccount                        // the request expects another account
	AgentDisabled                       // since it asked
	BrandPaused                         // for all agents
	CookieMissing                       // blocked or lost
	StaleForm                           // an old page was posted
	StaleAgents                         // an old page of My agents was posted
	ForgedForm                          // the post did not come from our page
)

// TroubleData is what a dead end needs; leave empty what does not apply.
type TroubleData struct {
	Common
	Agent      Agent
	Account    string // who is signed in
	RetryURL   string // the same request again, or its sign-in
	CodeURL    string // where a code is typed
	AgentsURL  string // My agents
	RetryAfter time.Duration
	Deny       *ui.Post // Action and Hidden; offered only where the person is signed in
}

// trouble is the wording of one dead end, and its way on.
type trouble struct {
	status              int
	heading, what, next string
	safe                string
	goOn                string // label of the way on
	way                 func(TroubleData) string
}

func retry(d TroubleData) string  { return d.RetryURL }
func code(d TroubleData) string   { return d.CodeURL }
func agents(d TroubleData) string { return d.AgentsURL }

// troubles holds one line for each dead end. A page that says nothing was
// shared must be sure of it: after an answer, or a fault of ours, it is not.
var troubles = map[TroubleKind]trouble{
	Internal:         {http.StatusInternalServerError, "trouble.internal.heading", "trouble.internal.what", "trouble.internal.next", "trouble.internal.safe", "trouble.again", retry},
	NotFound:         {http.StatusNotFound, "trouble.notfound.heading", "trouble.notfound.what", "trouble.notfound.next", "trouble.nothing", "trouble.code", code},
	Expired:          {http.StatusGone, "trouble.expired.heading", "trouble.expired.what", "trouble.newlink", "trouble.nothing", "trouble.agents", agents},
	AlreadyDenied:    {http.StatusConflict, "trouble.denied.heading", "trouble.denied.what", "trouble.denied.next", "trouble.nothing", "trouble.agents", agents},
	AlreadyAnswered:  {http.StatusConflict, "trouble.answered.heading", "trouble.answered.what", "trouble.answered.next", "trouble.answered.safe", "trouble.agents", agents},
	DeadCode:         {http.StatusNotFound, "trouble.dead.heading", "trouble.dead.what", "trouble.dead.next", "trouble.nothing", "trouble.code", code},
	TooManyTries:     {http.StatusTooManyRequests, "trouble.tries.heading", "trouble.tries.what", "trouble.tries.next", "trouble.nothing", "trouble.again", code},
	LoginRefused:     {http.StatusForbidden, "trouble.refused.heading", "trouble.refused.what", "trouble.refused.next", "trouble.nothing", "trouble.again", retry},
	LoginUnreachable: {http.StatusBadGateway, "trouble.unreachable.heading", "trouble.unreachable.what", "trouble.unreachable.next", "trouble.nothing", "trouble.again", retry},
	SessionLapsed:    {http.StatusForbidden, "trouble.lapsed.heading", "trouble.lapsed.what", "trouble.lapsed.next", "trouble.nothing", "start.go", retry},
	AgentsLapsed:     {http.StatusForbidden, "trouble.lapsed.heading", "trouble.lapsed.what", "trouble.lapsed.agents", "trouble.nothing", "start.go", retry},
	AccountSuspended: {http.StatusForbidden, "trouble.suspended.heading", "trouble.suspended.what", "trouble.suspended.next", "trouble.nothing", "trouble.account.go", retry},
	WrongAccount:     {http.StatusForbidden, "trouble.account.heading", "trouble.account.what", "trouble.account.next", "trouble.nothing", "trouble.account.go", retry},
	AgentDisabled:    {http.StatusForbidden, "trouble.agent.heading", "trouble.agent.what", "trouble.agent.next", "trouble.nothing", "trouble.agents", agents},
	BrandPaused:      {http.StatusServiceUnavailable, "trouble.paused.heading", "trouble.paused.what", "trouble.paused.next", "trouble.nothing", "trouble.agents", agents},
	CookieMissing:    {http.StatusBadRequest, "trouble.cookie.heading", "trouble.cookie.what", "trouble.cookie.next", "trouble.nothing", "trouble.restart", retry},
	StaleForm:        {http.StatusBadRequest, "trouble.stale.heading", "trouble.stale.what", "trouble.stale.next", "trouble.nothing", "trouble.restart", retry},
	StaleAgents:      {http.StatusBadRequest, "trouble.list.heading", "trouble.list.what", "trouble.list.next", "trouble.nothing", "trouble.agents", agents},
	ForgedForm:       {http.StatusForbidden, "trouble.forged.heading", "trouble.forged.what", "trouble.forged.next", "trouble.nothing", "trouble.restart", retry},
}

// Status is the HTTP status that fits.
func (k TroubleKind) Status() int { return troubles[k].status }

// Trouble words a dead end. An unknown kind is an Internal one.
func Trouble(kind TroubleKind, d TroubleData) pages.TroubleView {
	t, known := troubles[kind]
	if !known {
		t = troubles[Internal]
	}
	args := []any{"agent", d.Agent.called(), "account", d.Account, "count", minutes(d.RetryAfter)}
	v := pages.TroubleView{
		Heading: d.say(t.heading, args...),
		What:    d.say(t.what, args...),
		Safe:    d.Lang.Text(t.safe),
		Next:    d.say(t.next, args...),
		GoOn:    d.link(t.goOn, t.way(d)),
	}
	v.Page = d.page(v.Heading.String())
	if d.RequestID != "" {
		v.Page.Reference = d.say("page.reference", "id", d.RequestID)
	}
	if v.GoOn.Href == "" && d.CodeURL != "" {
		// Where the best way on is unknown, typing the code still works (B45).
		v.GoOn = d.link("trouble.code", d.CodeURL)
	}
	if t.goOn == "trouble.agents" {
		// The way on is at the agent; what is allowed is only a look aside.
		v.Aside, v.GoOn = v.GoOn, ui.Link{}
	}
	if d.Deny != nil {
		deny := *d.Deny
		deny.Button = ui.Button{Name: "decision", Value: "deny", Label: d.say("trouble.deny")}
		v.Decide = []ui.Post{deny}
	}
	return v
}

// minutes rounds up: nobody may be told to come back too early.
func minutes(d time.Duration) int {
	return max(1, int((d+time.Minute-1)/time.Minute))
}
