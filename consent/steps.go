package consent

import (
	"slices"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// step is what comes next in a journey.
type step int

const (
	stepLogin     step = iota // sign in at the Brand first
	stepTrouble               // the last sign-in failed: try again, or leave it
	stepAsk                   // the question
	stepDone                  // answered, in this journey
	stepAnswered              // answered elsewhere
	stepGone                  // over, and nobody has signed in who may know how
	stepExpired               // too late
	stepDisabled              // the agent was disabled meanwhile
	stepPaused                // the Brand was paused meanwhile
	stepSuspended             // the account may not act
	stepWrongUser             // a step-up for somebody else
	stepAgents                // My agents
)

// who says under which login the journey goes on: the one made in this journey,
// as long as the browser still has that same login; or the browser's own, where
// no fresh one is needed.
func who(j journey, l login, loggedIn, needFresh bool, now time.Time) (login, bool) {
	if !loggedIn {
		return login{}, false
	}
	if madeFor(j, l, now) && (j.Fresh || !needFresh) {
		return l, true
	}
	return l, !needFresh
}

// madeFor reports whether the login was made in this journey and still counts.
func madeFor(j journey, l login, now time.Time) bool {
	return j.Subject != nil && *j.Subject == l.Subject && j.LoggedInAt != nil && now.Sub(*j.LoggedInAt) < loginLife
}

// signIn is how the person had signed in, for the record: by the login made for
// this very request, if there was one.
func (s standing) signIn(now time.Time) authority.SeenLogin {
	if s.journey.Fresh && madeFor(s.journey, s.login, now) {
		seen := authority.SeenLogin{At: s.journey.LoggedInAt.UTC(), Fresh: true}
		if s.journey.VouchedBy != nil {
			seen.By = *s.journey.VouchedBy
		}
		return seen
	}
	return authority.SeenLogin{At: s.login.At.UTC(), By: s.login.By}
}

// needsFresh reports whether the person must sign in for this very request: at
// an agent's first grant, and where something sensitive is asked for or held.
func needsFresh(b *tenants.Brand, q *authority.Question) bool {
	if q.FirstGrant {
		return true
	}
	for _, id := range append(offered(q), q.HeldByAny...) {
		if s, ok := b.Scope(id); ok && s.Impact == "high" {
			return true
		}
	}
	return false
}

// offered is what may be ticked: what is asked for, then what is held.
func offered(q *authority.Question) []string {
	out := append([]string(nil), q.Requested...)
	for _, id := range q.Held {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// next is the one place that decides what comes next, from what is stored. q is
// nil on the way to My agents, and has been asked for the login in l.
func next(b *tenants.Brand, j journey, q *authority.Question, l login, loggedIn bool, now time.Time) step {
	if q == nil {
		switch {
		case loggedIn:
			return stepAgents
		case j.Trouble != nil:
			return stepTrouble
		}
		return stepLogin
	}
	// What became of a request is for those to know who signed in for it (B03).
	known := loggedIn && j.Subject != nil && *j.Subject == l.Subject
	over := q.State != "pending" || q.Expired(now) || !q.AgentOn
	_, enough := who(j, l, loggedIn, needsFresh(b, q), now)
	switch {
	case over && !known:
		return stepGone
	case q.WrongUser && (known || enough):
		return stepWrongUser // whatever became of it is not theirs to know
	case q.State != "pending" && j.Outcome != nil && !q.DecidedOver:
		return stepDone
	case q.State != "pending":
		return stepAnswered
	case q.Expired(now):
		return stepExpired
	case !q.AgentOn:
		return stepDisabled
	case !q.BrandOn:
		return stepPaused
	}
	switch {
	case !enough && j.Trouble != nil:
		return stepTrouble
	case !enough:
		return stepLogin
	case q.Suspended:
		return stepSuspended
	}
	return stepAsk
}
