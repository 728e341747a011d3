package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what a run needs of the world. What is missing leaves out the
// checks that need it, and the report says which.
type Config struct {
	Card string // the Brand's interface URL, or its agent card
	PA   *Agent // registered at the server
	// OtherPA is a second registered agent: what one holds must be of no use to
	// the other.
	OtherPA *Agent
	// OtherCard is another Brand that knows PA.
	OtherCard string
	// OtherAudience is what PA names as aud there; empty: the same, where both Brands
	// are one Provider's.
	OtherAudience string
	// People sign in at the Brand and decide.
	People People
	// BrandKey is a credential of the Brand's own server.
	BrandKey string
	// Operator does what only the server's operator can; nil: nobody does.
	Operator Operator
	// Grace is how long a spent refresh token still gets its successor; the one
	// check that needs it waits that long. 0: it is not made.
	Grace time.Duration
	// Verify is where the Brand's proxy asks who calls; empty: {issuer}/verify. A
	// proxy in front of the issuer need not forward what only the Brand's own sends.
	Verify string
	// Texts are what to tell the Brand's agent so that it needs a scope.
	Texts map[string]string
	// Only names rules; empty: all.
	Only []string
	// StopAtFailure ends the run with the first check that fails.
	StopAtFailure bool
}

// Operator acts as the server's operator. The action is one of suspend-user and
// resume-user with a subject, disable-agent and enable-agent with an issuer,
// retire-scope and restore-scope with a scope, pause-brand, resume-brand. Whoever is
// let in again is let in when it returns: the next check goes on from there.
type Operator func(ctx context.Context, action, object string) error

// What a check came to.
const (
	Pass      = "pass"
	Fail      = "FAIL"
	NotServed = "not served" // the server has no such surface
	NotRun    = "not run"    // this run lacks what the check needs
)

// Result is what one check came to.
type Result struct {
	Rule   string `json:"rule"`
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"` // of everything but a pass
}

// check is one question about one rule.
type check struct {
	rule, name string
	ask        func(*trial)
}

// checks are all there are, in the order of the rules.
func checks() []check {
	all := slices.Concat(
		identityChecks(), claimChecks(), doorChecks(), discoveryChecks(), deviceChecks(),
		tokenChecks(), standingChecks(), refreshChecks(), issuedChecks(), consentChecks(),
		turnChecks(), proxyChecks(), stepUpChecks(), receiptChecks(), surfaceChecks(), sendChecks(),
		logChecks(), streamChecks(), limitChecks(),
	)
	slices.SortStableFunc(all, func(a, b check) int { return cmp.Compare(order(a.rule), order(b.rule)) })
	return all
}

// order is the number of an M-rule; the A2A operations (§9) and what is beyond PACT
// (§10) come after them.
func order(rule string) int {
	const sections = 100
	if n, err := strconv.Atoi(strings.TrimPrefix(rule, "§")); err == nil {
		return sections + n
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(rule, "M"))
	return n
}

// Rules are the rules that have checks, in order.
func Rules() []string {
	var all []string
	for _, c := range checks() {
		if !slices.Contains(all, c.rule) {
			all = append(all, c.rule)
		}
	}
	return all
}

// Run makes the checks one after the other. An error is no verdict: the server
// could not be asked at all.
func Run(ctx context.Context, c Config) ([]Result, error) {
	for _, rule := range c.Only {
		if !slices.Contains(Rules(), rule) {
			return nil, fmt.Errorf("there is no rule %q; there are %s", rule, strings.Join(Rules(), ", "))
		}
	}
	s, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, one := range checks() {
		if len(c.Only) > 0 && !slices.Contains(c.Only, one.rule) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return results, err
		}
		result := s.try(ctx, one)
		results = append(results, result)
		if c.StopAtFailure && result.Result == Fail {
			break
		}
	}
	return results, nil
}

// Verdict sums up: Fail if any check failed, NotRun if any could not be made or
// nothing was checked at all, otherwise Pass.
func Verdict(results []Result) string {
	verdict := Pass
	if len(results) == 0 {
		verdict = NotRun
	}
	for _, r := range results {
		switch r.Result {
		case Fail:
			return Fail
		case NotServed, NotRun:
			verdict = NotRun
		}
	}
	return verdict
}

// trial is one check being made.
type trial struct {
	*suite
	ctx      context.Context
	admitted bool // a good pa-jwt was let in
	atAgent  bool // forgeries are sent to the Brand's agent, and not to the authority
}

// verdict ends a trial from any depth.
type verdict struct{ result, detail string }

func (s *suite) try(ctx context.Context, c check) (r Result) {
	r = Result{Rule: c.rule, Check: c.name, Result: Pass}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case verdict:
			r.Result, r.Detail = v.result, v.detail
		default:
			panic(v)
		}
	}()
	c.ask(&trial{suite: s, ctx: ctx})
	return r
}

// fail ends the trial: the server broke the rule.
func (t *trial) fail(format string, args ...any) {
	panic(verdict{Fail, fmt.Sprintf(format, args...)})
}

// needs ends the trial unless the run has what it takes.
func (t *trial) needs(there bool, what string) {
	if !there {
		panic(verdict{NotRun, "needs " + what})
	}
}

// notServed ends the trial: there is nothing to ask.
func (t *trial) notServed(what string) {
	panic(verdict{NotServed, what})
}
