package oauth_test

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"countersign.dev/tenants"
)

// R65: a Brand whose calls all hang has its share and no more: the next of them is
// told to come again and loses nothing, and another Brand's calls are answered.
func TestOneBrandTakesItsShareOnly(t *testing.T) {
	const most = 10
	entered, open := make(chan struct{}, 2*most), make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(open) }) }
	t.Cleanup(release)
	var d *door
	d = newDoor(t, signerFunc(func(ctx context.Context, b tenants.BrandID, typ string, payload []byte) (string, error) {
		if b == d.Hotel.ID {
			entered <- struct{}{}
			<-open
		}
		return d.Keys.Sign(ctx, b, typ, payload)
	}))
	var codes []any
	for range most + 1 {
		started := d.start(t, "bookings:read")
		d.approve(t, started, "bookings:read")
		codes = append(codes, started["device_code"])
	}
	var paid sync.WaitGroup
	for _, code := range codes[:most] {
		paid.Go(func() { d.poll(t, code) }) // on a slow machine it hears that the signer is slow
	}
	for range most {
		<-entered
	}
	answered := make(chan answer, 1)
	paid.Go(func() { answered <- d.poll(t, codes[most]) })
	select {
	case a := <-answered:
		if a.status != http.StatusServiceUnavailable || a.error() != "temporarily_unavailable" || a.header.Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", a.status, a.body)
		}
	case <-entered:
		t.Error("one more than its share was under way")
	}
	d.pa.Audience = d.Shop.Audience
	if a := d.post(t, d.issuer(d.Shop)+"/device_authorization", d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}, "scope": {"orders:read"}}); a.status != http.StatusOK {
		t.Errorf("another Brand: %d %s", a.status, a.body)
	}
	d.pa.Audience = audience
	release()
	paid.Wait()
	if a := d.poll(t, codes[most]); a.status != http.StatusOK {
		t.Errorf("once there is room again: %d %s", a.status, a.body)
	}
}
