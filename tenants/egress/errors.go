package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// Why a fetch did not succeed. Callers test them with errors.Is; the texts may
// be shown to whoever named the URL.
var (
	ErrForbiddenURL = errors.New("URL may not be fetched")  // https, port 443, no user, no fragment
	ErrTLS          = errors.New("TLS with the host fails") // renew the certificate
	ErrTimeout      = errors.New("host took too long")
	ErrBroken       = errors.New("host broke off or does not speak HTTP")
	ErrRedirect     = errors.New("host answered with a redirect") // name the final URL
	ErrStatus       = errors.New("host answered with status")
	ErrTooLarge     = errors.New("answer is too large")
	ErrNotJSON      = errors.New("answer is not JSON")
)

// These two read the same on purpose: if they did not, whoever may name a URL
// could ask us which names exist in our internal DNS.
var (
	ErrForbiddenAddress = errors.New("host has no public address that can be reached")
	ErrUnreachable      = errors.New("host has no public address that can be reached")
)

// public names why an exchange failed, without the error of the network below:
// its text holds resolved addresses, our own address and that of our resolver.
// An end of ctx stays what it was, for that is the caller's doing.
func public(ctx context.Context, err error) error {
	for _, named := range []error{ErrForbiddenURL, ErrForbiddenAddress, ErrRedirect, ErrTooLarge} {
		if errors.Is(err, named) {
			return named
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return ErrTooLarge
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrTimeout
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return ErrTimeout
	}
	if isTLS(err) {
		return ErrTLS
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return ErrUnreachable
	}
	return ErrBroken
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.AlertError](err)
	return ok
}
