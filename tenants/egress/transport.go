package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

const maxHeaderBytes = 16 << 10

// bounded is the transport of a Client. Every bound is kept here and not in
// http.Client, because libraries lift a client's transport into clients of
// their own and lose its timeout and its redirect policy.
type bounded struct {
	secure        *http.Transport
	plain         *http.Transport // nil outside development
	allowLoopback bool
	timeout       time.Duration
	maxBytes      int64
	userAgent     string
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkURL(r.URL, b.allowLoopback); err != nil {
		closeBody(r)
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), b.timeout)
	out := r.Clone(ctx)
	if b.userAgent != "" && out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", b.userAgent)
	}
	via := b.secure
	if r.URL.Scheme == "http" {
		via = b.plain // checkURL let http through, so there is one
	}
	resp, err := via.RoundTrip(out)
	if err != nil {
		cancel()
		return nil, public(r.Context(), err)
	}
	// The deadline goes on over the body: a server that sends one byte a second
	// is as slow as one that sends no headers.
	body := http.MaxBytesReader(nil, resp.Body, b.maxBytes)
	resp.Body = &boundedBody{ctx: r.Context(), body: body, cancel: cancel}
	if err := b.acceptable(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func (b *bounded) acceptable(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return ErrRedirect
	}
	if resp.ContentLength > b.maxBytes {
		return ErrTooLarge
	}
	return nil
}

func (b *bounded) CloseIdleConnections() {
	b.secure.CloseIdleConnections()
	if b.plain != nil {
		b.plain.CloseIdleConnections()
	}
}

// boundedBody ends with ErrTooLarge or ErrTimeout instead of going on.
type boundedBody struct {
	ctx    context.Context // the caller's, without our deadline
	body   io.ReadCloser
	cancel context.CancelFunc
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, public(b.ctx, err)
}

func (b *boundedBody) Close() error {
	// Cancelled first: Close would otherwise read on, in the hope of using the
	// connection again.
	b.cancel()
	return b.body.Close()
}

// transport makes an http.Transport whose every connection passes check.
func transport(c Config, check control) *http.Transport {
	dialer := &net.Dialer{Timeout: c.Timeout, ControlContext: check}
	// HTTP/1 alone: HTTP/2 would let the other side choose how much we buffer.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		// No proxy, not even the environment's: it would resolve and connect
		// out of sight of the check.
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		TLSHandshakeTimeout:    c.Timeout,
		DisableCompression:     true, // a small bomb unpacks into a large answer
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxConnsPerHost:        max(c.ConnsPerHost, 0), // its zero is no bound
		MaxIdleConnsPerHost:    2,
		MaxIdleConns:           256,
		IdleConnTimeout:        30 * time.Second,
	}
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}
