package oauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"golang.org/x/oauth2"
)

// bearing is an HTTP client that authenticates as the agent, and lets the
// interval pass before every poll, as a conforming client does.
type bearing struct {
	t     *testing.T
	d     *door
	polls atomic.Int32
	slow  atomic.Int32
	seen  func(poll int)
}

func (b *bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.d.pa.Token(b.t, agenttest.Claims{Sub: "alex"}))
	if strings.HasSuffix(r.URL.Path, "/token") {
		b.d.Clock.Advance(authority.PollInterval)
		b.seen(int(b.polls.Add(1)))
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if strings.Contains(string(body), "slow_down") {
		b.slow.Add(1)
	}
	resp.Body = io.NopCloser(strings.NewReader(string(body)))
	return resp, errors.Join(err, nil)
}

// B15, B11: a generic RFC 8628 client, golang.org/x/oauth2, at the advertised
// interval is never told to slow down, and is paid; on the production schema,
// migrated from an empty database.
func TestGenericDeviceClient(t *testing.T) {
	d := newDoor(t, nil)
	b := &bearing{t: t, d: d}
	var code string
	b.seen = func(poll int) {
		if poll == 3 {
			d.approve(t, map[string]any{"user_code": code}, "bookings:read")
		}
	}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: b})
	conf := &oauth2.Config{
		ClientID: d.pa.Issuer, Scopes: []string{"bookings:read", "bookings:change"},
		Endpoint: oauth2.Endpoint{
			DeviceAuthURL: d.issuer(d.Hotel) + "/device_authorization", TokenURL: d.issuer(d.Hotel) + "/token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
	started, err := conf.DeviceAuth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if started.Interval != 5 {
		t.Fatalf("interval %d", started.Interval)
	}
	code = started.UserCode
	started.Interval = 1 // of real time; our clock goes on by the five above
	started.Expiry = started.Expiry.AddDate(1, 0, 0)
	token, err := conf.DeviceAccessToken(ctx, started)
	if err != nil {
		t.Fatal(err)
	}
	if token.Type() != "Bearer" || token.RefreshToken == "" || token.Extra("scope") != "bookings:read" {
		t.Errorf("%s, scope %v", token.Type(), token.Extra("scope"))
	}
	if b.slow.Load() != 0 || b.polls.Load() != 3 {
		t.Errorf("%d polls, %d times slow_down", b.polls.Load(), b.slow.Load())
	}
}
