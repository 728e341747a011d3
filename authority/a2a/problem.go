package a2a

import (
	"context"
	"errors"
	"net/http"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/agent"
	"countersign.dev/tenants"
)

var errPaused = &surface.Problem{
	Code: http.StatusServiceUnavailable, Status: "UNAVAILABLE", Reason: "UNAVAILABLE", Message: "This Brand is paused. Nothing was lost.",
	RetryAfter: 30 * time.Second, // somebody paused it, and takes a while
}

// errNever: the Brand's agent was called, and how that ended nobody knows or it failed.
var errNever = surface.Invalid("This messageId came before and will have no reply: the Brand's agent was called with it, and it came to nothing or its answer was lost. Look what was done before you send a new message.")

// errBacklog: nothing is done that may have no receipt.
var errBacklog = &surface.Problem{
	Code: http.StatusServiceUnavailable, Status: "UNAVAILABLE", Reason: "UNAVAILABLE",
	Message:    "Too many answers of this Brand wait for their receipts. Nothing was sent to its agent; send the same message again later.",
	RetryAfter: 30 * time.Second,
}

// answerTo is the one place where an error becomes a problem, and how long to wait
// where the problem itself does not say.
// What it does not know is our own fault, and says nothing about it.
func answerTo(err error) (*surface.Problem, time.Duration) {
	limit := new(authority.LimitError)
	known, ok := errors.AsType[*surface.Problem](err)
	switch {
	case ok:
		return known, 0
	case errors.As(err, &limit):
		return surface.ErrBusy, limit.RetryAfter
	case errors.Is(err, authority.ErrContext):
		return surface.ErrContext, 0
	case errors.Is(err, authority.ErrSpent):
		return errNever, 0
	case errors.Is(err, authority.ErrNoReply):
		return surface.ErrNoReply, 0
	case errors.Is(err, authority.ErrPaused):
		return errPaused, 0
	case errors.Is(err, authority.ErrBacklog):
		return errBacklog, 0
	case isAway(err):
		return surface.ErrAway, 0
	}
	return surface.ErrInternal, 0
}

// isAway reports whether what we need does not answer now.
func isAway(err error) bool {
	return errors.Is(err, authority.ErrUnavailable) || errors.Is(err, authority.ErrTrail) || tenants.Unavailable(err)
}

// fail writes the error; the log gets what is not said. brand may be nil.
func (h *Interface) fail(w http.ResponseWriter, r *http.Request, brand *tenants.Brand, err error) {
	switch {
	case errors.Is(err, agent.ErrRefused), errors.Is(err, authority.ErrAgentDisabled):
		h.log.InfoContext(r.Context(), "pa-jwt refused", "brand", string(brand.ID), "reason", err)
		unauthorized(w, `Bearer realm="a2a"`)
		return
	case errors.Is(err, authority.ErrToken):
		unauthorized(w, `Bearer realm="a2a", error="invalid_token"`)
		return
	case r.Context().Err() != nil && errors.Is(err, context.Canceled):
		return // the caller is gone
	}
	p, wait := answerTo(err)
	if p == surface.ErrInternal || p == surface.ErrAway {
		h.log.ErrorContext(r.Context(), "call failed", "route", r.Pattern, "error", err)
	}
	surface.WriteProblem(w, p, wait)
}

// unauthorized has no body, so that a forger learns nothing (M7, M21).
func unauthorized(w http.ResponseWriter, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusUnauthorized)
}
