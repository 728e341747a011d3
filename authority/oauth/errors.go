package oauth

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/ory/fosite"
)

func refusal(status int, code, description string) *fosite.RFC6749Error {
	return &fosite.RFC6749Error{CodeField: status, ErrorField: code, DescriptionField: description}
}

func invalidRequest(description string) *fosite.RFC6749Error {
	return refusal(http.StatusBadRequest, "invalid_request", description)
}

// What agents are told to wait when we, not they, are the trouble; and where
// somebody of the Brand's has to act first, who will take a while.
const (
	retryAfter  = 5 * time.Second
	pausedRetry = 30 * time.Second
)

// oauthError is the one place where a refusal becomes an error of RFC 6749
// §5.2 or RFC 8628 §3.5. What it does not know is our own fault, and says
// nothing about it.
func oauthError(err error) (*fosite.RFC6749Error, time.Duration) {
	const bad = http.StatusBadRequest
	if known := new(fosite.RFC6749Error); errors.As(err, &known) {
		return known, 0
	}
	if limit := new(authority.LimitError); errors.As(err, &limit) {
		return refusal(http.StatusTooManyRequests, "slow_down", "Too many "+limit.What+". Try again later."), limit.RetryAfter
	}
	if details := new(authority.DetailsError); errors.As(err, &details) { // RFC 9396 §5
		return refusal(bad, "invalid_authorization_details", details.Say), 0
	}
	switch {
	case errors.Is(err, authority.ErrPending):
		return refusal(bad, "authorization_pending", "The person has not decided yet."), 0
	case errors.Is(err, authority.ErrTooSoon), errors.Is(err, authority.ErrBusy):
		return refusal(bad, "slow_down", "Wait for the interval between polls."), 0
	case errors.Is(err, authority.ErrDenied):
		return refusal(bad, "access_denied", "The person did not allow it."), 0
	case errors.Is(err, authority.ErrExpired):
		return refusal(bad, "expired_token", "The request has expired. Start a new one."), 0
	case errors.Is(err, authority.ErrScope):
		return refusal(bad, "invalid_scope", "Name at least one scope, and only scopes on the Agent Card or, on refresh, granted ones."), 0
	case errors.Is(err, authority.ErrToken):
		return refusal(bad, "invalid_token", "delegation_token is not good, or not of the agent and person of pa_jwt."), 0
	case errors.Is(err, authority.ErrPaused):
		return refusal(http.StatusServiceUnavailable, "temporarily_unavailable", "This issuer is paused. Nothing was lost."), pausedRetry
	case errors.Is(err, errProxyKey):
		return refusal(http.StatusServiceUnavailable, "temporarily_unavailable", "The API key of the proxy, in Countersign-Authorization, is not good or lacks the right verify. This says nothing about the caller."), pausedRetry
	case errors.Is(err, errCrowded):
		return refusal(http.StatusServiceUnavailable, "temporarily_unavailable", "Too many calls at once. Nothing was lost."), time.Second
	case errors.Is(err, authority.ErrNotKept):
		return refusal(http.StatusServiceUnavailable, "temporarily_unavailable", "Try again in a moment. The turn is not written down: it is judged as of when it comes again."), retryAfter
	case errors.Is(err, authority.ErrUnavailable), errors.Is(err, authority.ErrTrail), tenants.Unavailable(err):
		return refusal(http.StatusServiceUnavailable, "temporarily_unavailable", "Try again in a moment. Nothing was lost."), retryAfter
	case errors.Is(err, authority.ErrRedeemed), errors.Is(err, authority.ErrUnknown), errors.Is(err, authority.ErrEnded),
		errors.Is(err, authority.ErrReused), errors.Is(err, authority.ErrSuspended):
		// One text for all: who holds a stranger's code learns nothing from it.
		return refusal(bad, "invalid_grant", "The code or refresh token is not valid, not yours, or no longer good."), 0
	}
	return nil, 0
}

// fail writes the error; the log gets what is not said.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, provider *fosite.Fosite, err error) {
	if errors.Is(err, authority.ErrAgentDisabled) {
		unauthorized(w)
		return
	}
	answer, wait := oauthError(err)
	if answer == nil {
		answer = refusal(http.StatusInternalServerError, "server_error", "Something went wrong on our side.")
	}
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // the caller is gone
	}
	if answer.CodeField >= http.StatusInternalServerError && !errors.Is(err, authority.ErrPaused) && !errors.Is(err, errCrowded) && !errors.Is(err, errProxyKey) {
		h.log.ErrorContext(r.Context(), "call failed", "route", r.Pattern, "error", err)
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
	}
	if answer.CodeField == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="a2a"`)
	}
	if provider == nil {
		provider = &fosite.Fosite{Config: &fosite.Config{}}
	}
	provider.WriteAccessError(r.Context(), w, nil, answer)
}

func writeServerError(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte(`{"error":"server_error","error_description":"Something went wrong on our side."}`))
}
