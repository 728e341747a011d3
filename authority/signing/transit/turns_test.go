package transit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
)

// R85: a key that is slow to make holds up neither another Brand's nor, past its
// own deadline, a second caller for the same.
func TestSlowCreateHoldsNobodyElse(t *testing.T) {
	w := newWorld(t)
	real, err := url.Parse(w.Addr)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(real)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/keys/tenant-"+string(signingtest.Hotel)) {
			once.Do(func() {
				close(arrived)
				<-release
			})
		}
		proxy.ServeHTTP(rw, r)
	}))
	defer server.Close()
	b := w.backend(t, func(c *transit.Config) { c.Address = server.URL })
	slow := make(chan error, 1)
	go func() {
		_, err := b.Create(t.Context(), signingtest.Hotel, 1, signing.ES256)
		slow <- err
	}()
	<-arrived
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.Create(ctx, signingtest.Hotel, 1, signing.ES256); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("the same key: %v", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a caller with 300 ms waited %s", took)
	}
	if _, err := b.Create(t.Context(), signingtest.Shop, 1, signing.ES256); err != nil {
		t.Errorf("another Brand: %v", err)
	}
	select {
	case err := <-slow:
		close(release)
		t.Fatalf("another Brand waited for the slow key: %v", err)
	default:
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the slow one: %v", err)
	}
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
}
