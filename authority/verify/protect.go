package verify

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// retryAfter is what callers are told to wait when nobody can tell who they are.
const retryAfter = 5 * time.Second

type callKey struct{}

// Protect lets only agents through that proved who they are (M7), and none with a
// bad delegation token (M21). The handler learns with CallFrom who it is.
//
// One without a token gets through as itself, since a missing permission is no
// failure (M22): the handler decides what can be done without, and asks for the
// rest with StepUp. Routes are matched first, so wrap the handlers and not the mux:
// an unknown path is 404 even for nobody.
func (v *Verifier) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := v.Call(r.Context(), r.Header)
		if err != nil {
			v.log.InfoContext(r.Context(), "caller not let in", "reason", err)
			Respond(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// CallFrom is who calls, in a handler behind Protect; false: it is behind none.
func CallFrom(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	return c, ok
}

// DelegationFrom is what a person allowed the caller; false where the caller showed
// no token.
func DelegationFrom(ctx context.Context) (Delegation, bool) {
	c, _ := CallFrom(ctx)
	if c.Delegation == nil {
		return Delegation{}, false
	}
	return *c.Delegation, true
}

// Respond answers a call that was not let through, without a body and without a
// reason: a forger would learn from it.
func Respond(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case errors.Is(err, ErrUnavailable):
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		w.WriteHeader(http.StatusServiceUnavailable)
	case errors.Is(err, ErrToken):
		w.Header().Set("WWW-Authenticate", `Bearer realm="a2a", error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	case errors.Is(err, ErrCaller):
		w.Header().Set("WWW-Authenticate", `Bearer realm="a2a"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}
