package pa

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// Waiting is told after every poll that brought no decision.
type Waiting struct {
	Next time.Duration // until the next poll
	Left time.Duration // until the link runs out
	Slow bool          // the Brand asked for a slower pace
	Err  error         // the Brand could not be reached, or was busy
}

const (
	slowDown   = 5 * time.Second // RFC 8628 §3.5: add this, for good
	maxBackoff = time.Minute
)

// poll asks until there is an answer (RFC 8628 §3.4). After the link has run out
// it asks once more: a person may have answered in the last moment.
func (j *journey) poll(ctx context.Context, started Started, waiting func(Waiting)) (discovery.Answer, error) {
	deadline := j.now().Add(started.ExpiresIn)
	interval := started.Interval
	var backoff, next time.Duration
	for next = interval; ; {
		if err := j.wait(ctx, next); err != nil {
			return discovery.Answer{}, fmt.Errorf("wait for the person: %w", err)
		}
		last := !j.now().Before(deadline)

		answer, err := j.pollOnce(ctx, started)
		pace := paceOf(answer, err)
		switch {
		case pace.done:
			return answer, pace.err
		case last:
			return discovery.Answer{}, ErrExpired
		case pace.slow:
			interval, backoff = interval+slowDown, 0
		case pace.err != nil:
			// Doubling, as RFC 8628 §3.5 wants it for a Brand in trouble, until it
			// answers again.
			backoff = min(max(interval, 2*backoff), maxBackoff)
		default:
			backoff = 0
		}
		next = max(interval+backoff, pace.atLeast)
		waiting(Waiting{Next: next, Left: max(0, deadline.Sub(j.now())), Slow: pace.slow, Err: pace.err})
	}
}

func (j *journey) pollOnce(ctx context.Context, started Started) (discovery.Answer, error) {
	return j.post(ctx, j.brand.TokenEndpoint, url.Values{
		"grant_type":  {discovery.DeviceGrant},
		"device_code": {string(started.deviceCode)},
		"client_id":   {j.identity.Issuer},
	})
}

// pace is what one answer means for the next poll.
type pace struct {
	done    bool          // no next poll; err says why, nil is success
	slow    bool          // slow_down
	err     error         // without done: trouble that may pass
	atLeast time.Duration // Retry-After
}

func paceOf(answer discovery.Answer, err error) pace {
	if err != nil {
		return pace{done: !mayPass(err), err: err}
	}
	if answer.Status == http.StatusOK {
		return pace{done: true}
	}
	r := refusal(answer)
	switch r.Code {
	case "authorization_pending":
		return pace{atLeast: r.RetryAfter}
	case "slow_down":
		return pace{slow: true, atLeast: r.RetryAfter}
	case "access_denied":
		return pace{done: true, err: fmt.Errorf("%w: %w", ErrDenied, r)}
	case "expired_token":
		return pace{done: true, err: fmt.Errorf("%w: %w", ErrExpired, r)}
	}
	if r.Status == http.StatusTooManyRequests || r.Status >= 500 {
		return pace{err: r, atLeast: r.RetryAfter}
	}
	return pace{done: true, err: r}
}

// mayPass tells trouble of the network from answers that will not get better.
func mayPass(err error) bool {
	var redirect discovery.RedirectError
	var tooLong discovery.TooLongError
	var certificate *tls.CertificateVerificationError
	var unsigned signError
	return !errors.Is(err, context.Canceled) &&
		!errors.As(err, &redirect) && !errors.As(err, &tooLong) &&
		!errors.As(err, &certificate) && !errors.As(err, &unsigned)
}
