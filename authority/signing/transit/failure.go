package transit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"countersign.dev/authority/signing"
	"github.com/hashicorp/vault/api"
)

// kind says in one word how a call ended. It is a label of metrics.
type kind string

const (
	ok          kind = "ok"
	unreachable kind = "unreachable" // refused, reset, no route, TLS
	timedOut    kind = "timeout"
	cancelled   kind = "cancelled" // by whoever asked
	sealed      kind = "sealed"    // 503, or a proxy that finds no server
	throttled   kind = "throttled" // 429: a quota of Vault's
	denied      kind = "denied"    // 403
	missing     kind = "missing"   // the key or its version is not there
	refused     kind = "refused"   // any other 4xx
	foreign     kind = "foreign"   // refused, and perhaps another store's: see Sealer
	broken      kind = "broken"    // 500, or an answer that makes no sense
	unmounted   kind = "unmounted" // 404: no such engine
	open        kind = "open"      // the breaker answered
	full        kind = "full"      // the queue is
)

// outage tells whether this kind speaks against the whole server. A 500 does
// not: Vault gives it for one key's version too, and one Brand's broken key must
// not take the others' away (R86).
func (k kind) outage() bool {
	return k == unreachable || k == timedOut || k == sealed
}

// alarming kinds do not pass by themselves: somebody has to look.
func (k kind) alarming() bool {
	return k == denied || k == missing || k == broken || k == unmounted || k == refused
}

// reason is what callers of the backend may test for. A refusal is none of the
// two: it is a mistake of ours.
func (k kind) reason() error {
	switch k {
	case missing:
		return signing.ErrNoKey
	case ok, refused, foreign:
		return nil
	default:
		return signing.ErrUnavailable
	}
}

// failure is the error of one call.
type failure struct {
	kind kind
	err  error
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %v", f.kind, f.err) }

func (f *failure) Unwrap() []error {
	if reason := f.kind.reason(); reason != nil {
		return []error{reason, f.err}
	}
	return []error{f.err}
}

// kindOf reads the client library's errors.
func kindOf(err error) kind {
	if err == nil {
		return ok
	}
	if f, is := errors.AsType[*failure](err); is {
		return f.kind
	}
	if r, is := errors.AsType[*api.ResponseError](err); is {
		return kindOfAnswer(r)
	}
	var network interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return cancelled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return timedOut
	}
	if _, is := errors.AsType[*url.Error](err); is {
		return unreachable
	}
	return broken
}

func kindOfAnswer(r *api.ResponseError) kind {
	switch code := r.StatusCode; {
	case code == http.StatusServiceUnavailable, code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return sealed
	case code == http.StatusTooManyRequests:
		return throttled
	case code == http.StatusForbidden:
		return denied
	case code == http.StatusNotFound:
		return unmounted
	case namesKey(strings.Join(r.Errors, " ")):
		return missing
	case code >= 500:
		return broken
	default:
		return refused
	}
}

// namesToken tells whether a 403 says that the token itself is no longer good. An
// older Vault does not say so.
func namesToken(err error) bool {
	r, is := errors.AsType[*api.ResponseError](err)
	return is && strings.Contains(strings.Join(r.Errors, " "), "invalid token")
}

// namesKey reads transit's words, since it has no codes: an unknown key is a 400
// and a version that may not sign a 500 or an item's error, like many others.
func namesKey(words string) bool {
	for _, w := range []string{"key not found", "requested version for ", "no such key version", "no key found with version"} {
		if strings.Contains(words, w) {
			return true
		}
	}
	return false
}
