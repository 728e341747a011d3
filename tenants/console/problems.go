package console

import (
	"errors"
	"net/http"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web"
	"countersign.dev/web/ui"
)

// kind is a way a visit can end before its end.
type kind string

// The dead ends; each has its words in the catalogue.
const (
	internal  kind = "internal"
	notFound  kind = "notfound"
	notYours  kind = "notyours"  // the role does not allow it
	forged    kind = "forged"    // the post did not come from our page
	stale     kind = "stale"     // an old page was posted
	tooOften  kind = "toooften"  // of everything
	deadLink  kind = "deadlink"  // unknown, used or too old: never said which
	wrongDoor kind = "wrongdoor" // the link is another person's
	noPasskey kind = "nopasskey" // the passkey does not count
	noMail    kind = "nomail"    // the service sends none
	lapsed    kind = "lapsed"    // signed out under an open page
	closed    kind = "closed"    // the Brand is, and that is final
	halfway   kind = "halfway"   // there is more to end than one request can
)

var statuses = map[kind]int{
	internal: http.StatusInternalServerError, notFound: http.StatusNotFound, notYours: http.StatusForbidden,
	forged: http.StatusForbidden, stale: http.StatusBadRequest, tooOften: http.StatusTooManyRequests,
	deadLink: http.StatusGone, wrongDoor: http.StatusForbidden, noPasskey: http.StatusForbidden,
	noMail: http.StatusServiceUnavailable, lapsed: http.StatusForbidden, closed: http.StatusConflict,
	halfway: http.StatusServiceUnavailable,
}

// problem is a dead end that a person must be told about.
type problem struct {
	kind   kind
	status int    // 0: what fits the kind
	retry  string // path of the way on; empty: the dashboard's door
	cause  error
}

func (p problem) Error() string { return "page problem " + string(p.kind) }
func (p problem) Unwrap() error { return p.cause }

// What stands between a visitor and a page that will be theirs.
var (
	errSignIn = errors.New("sign in first")
	errSecure = errors.New("a second passkey or codes first")
	errTouch  = errors.New("touch the passkey first")
)

// fail is the one place where an error becomes a page. What it does not know is
// our own fault; it is logged, and the page says nothing about it.
func (v *visit) fail(err error) {
	p := problem{kind: internal}
	switch {
	case errors.As(err, &p):
	case errors.Is(err, errSignIn) && v.r.Method == http.MethodGet:
		_ = v.redirect(withBack("/console/login", v.from()))
		return
	case errors.Is(err, errSignIn):
		p = problem{kind: lapsed, retry: withBack("/console/login", v.from())}
	case errors.Is(err, errSecure):
		_ = v.redirect("/console/keys")
		return
	case errors.Is(err, errTouch):
		_ = v.redirect(withBack("/console/touch", v.from()))
		return
	case errors.Is(err, tenants.ErrDeadLink), errors.Is(err, tenants.ErrNoInvitation), errors.Is(err, tenants.ErrKnownPerson):
		p = problem{kind: deadLink}
	case errors.Is(err, tenants.ErrNoBrand), errors.Is(err, tenants.ErrNotMember), errors.Is(err, tenants.ErrNoRecovery):
		p = problem{kind: notFound}
	case errors.Is(err, tenants.ErrClosed):
		p = problem{kind: closed}
	case errors.Is(err, authority.ErrUnknown):
		p = problem{kind: notFound}
	case errors.Is(err, authority.ErrTrail), tenants.Unavailable(err):
		p.status = http.StatusServiceUnavailable
	}
	if p.status == 0 {
		p.status = statuses[p.kind]
	}
	if p.kind == internal {
		v.h.Log.ErrorContext(v.ctx(), "page failed", "route", v.r.Pattern, "error", err)
	}
	words := "console.trouble." + string(p.kind)
	view := pages.TellView{
		Frame: v.frame(words + ".heading"), Heading: v.say(words + ".heading"),
		Text: []ui.Phrase{v.say(words + ".what"), v.say(words + ".next")},
		GoOn: v.link("console.trouble.on", "/console"),
	}
	if p.retry != "" {
		view.GoOn.Href = p.retry
	}
	view.Frame.Page.Reference = v.say("page.reference", "id", web.RequestID(v.ctx()))
	if err := v.render(p.status, pages.Tell(view)); err != nil {
		v.h.Log.ErrorContext(v.ctx(), "page failed", "route", v.r.Pattern, "error", err)
	}
}

// limited answers that an account has had enough of something.
func (v *visit) limited(limiter *web.Limiter, account string) error {
	if wait, ok := limiter.Take(account); !ok {
		web.RetryAfter(v.w, wait)
		return problem{kind: tooOften}
	}
	return nil
}
