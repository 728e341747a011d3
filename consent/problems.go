package consent

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
	"countersign.dev/web/ui"
)

// problem is a dead end that a person must be told about, with the way on.
type problem struct {
	kind       words.TroubleKind
	status     int    // 0: what fits the kind
	retry      string // path of the way on
	agent      words.Agent
	retryAfter time.Duration
	deny       *ui.Post
	cause      error // for the log
}

func (p problem) Error() string { return "page problem " + strconv.Itoa(int(p.kind)) }
func (p problem) Unwrap() error { return p.cause }

// fail is the one place where an error becomes a page. What it does not know is
// our own fault; it is logged, and the page says nothing about it.
func (v *visit) fail(err error) {
	p := problem{kind: words.Internal, status: http.StatusInternalServerError}
	limit := new(authority.LimitError)
	switch {
	case errors.As(err, &p):
	case errors.As(err, &limit):
		p = problem{kind: words.TooManyTries, retryAfter: limit.RetryAfter}
	case errors.Is(err, errNoJourney) && !v.browser.known():
		p = problem{kind: words.CookieMissing}
	case errors.Is(err, errNoJourney):
		p = problem{kind: words.Expired}
	case errors.Is(err, authority.ErrUnknown):
		p = problem{kind: words.DeadCode}
	case errors.Is(err, authority.ErrExpired):
		p = problem{kind: words.Expired}
	case errors.Is(err, authority.ErrAgentDisabled):
		p = problem{kind: words.AgentDisabled}
	case errors.Is(err, authority.ErrPaused):
		p = problem{kind: words.BrandPaused}
	case errors.Is(err, authority.ErrSuspended):
		p = problem{kind: words.AccountSuspended}
	case errors.Is(err, authority.ErrWrongUser):
		p = problem{kind: words.WrongAccount}
	case errors.Is(err, authority.ErrTrail), tenants.Unavailable(err):
		p.status = http.StatusServiceUnavailable
	}
	if p.status == 0 {
		p.status = p.kind.Status()
	}
	if p.kind == words.Internal {
		v.h.Log.ErrorContext(v.ctx(), "page failed", "route", v.r.Pattern, "error", err)
	}
	if p.retryAfter > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	d := words.TroubleData{
		Common: v.common(v.here()), Agent: p.agent, RetryURL: p.retry, RetryAfter: p.retryAfter, Deny: p.deny,
	}
	if v.brand != nil {
		d.CodeURL, d.AgentsURL = v.pages("device"), v.pages("agents")
		if v.browser != nil {
			l, _ := v.browser.login(v.brand.ID, v.h.Now())
			d.Account = l.Account
		}
	}
	view := words.Trouble(p.kind, d)
	if err := ui.Render(v.ctx(), v.w, p.status, pages.Trouble(view)); err != nil {
		v.h.Log.ErrorContext(v.ctx(), "page failed", "route", v.r.Pattern, "error", err)
	}
}

// here gives this page's address in another language, where asking for it again
// is safe: a callback counts once, and a post is not an address.
func (v *visit) here() func(string) string {
	if v.r.Method != http.MethodGet || strings.HasSuffix(v.r.URL.Path, "/callback") || strings.HasSuffix(v.r.URL.Path, "/login") {
		return nil
	}
	return func(tag string) string {
		q := v.r.URL.Query()
		q.Set("ui_locales", tag)
		return v.r.URL.EscapedPath() + "?" + q.Encode()
	}
}

// Failed is the page for a panic: it knows nothing of what was going on.
func (h *Handler) Failed(w http.ResponseWriter, r *http.Request) {
	v := &visit{h: h, w: w, r: r}
	v.speak()
	v.fail(problem{kind: words.Internal})
}

// NotFound is the page for an address that leads nowhere.
func (h *Handler) NotFound(w http.ResponseWriter, r *http.Request) {
	v := &visit{h: h, w: w, r: r}
	v.speak()
	v.fail(problem{kind: words.NotFound})
}

// Forged is the page for a post that another site made.
func (h *Handler) Forged(w http.ResponseWriter, r *http.Request) {
	v := &visit{h: h, w: w, r: r}
	v.speak()
	v.fail(problem{kind: words.ForgedForm})
}
