package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
)

type signerFunc func(context.Context, tenants.BrandID, string, []byte) (string, error)

func (f signerFunc) Sign(ctx context.Context, b tenants.BrandID, typ string, payload []byte) (string, error) {
	return f(ctx, b, typ, payload)
}

// R83 (in part), M13: a signer that is down is 503 with Retry-After, and the
// code is paid out when it is back.
func TestSignerDownIs503AndLosesNothing(t *testing.T) {
	var down atomic.Bool
	var d *door
	d = newDoor(t, signerFunc(func(ctx context.Context, b tenants.BrandID, typ string, payload []byte) (string, error) {
		if down.Load() {
			return "", errors.New("sealed")
		}
		return d.Keys.Sign(ctx, b, typ, payload)
	}))
	started := d.start(t, "bookings:read")
	d.approve(t, started, "bookings:read")
	down.Store(true)
	a := d.poll(t, started["device_code"])
	oauthErrorShape(t, a)
	if a.status != 503 || a.error() != "temporarily_unavailable" || a.header.Get("Retry-After") == "" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	down.Store(false)
	paid := d.poll(t, started["device_code"])
	if paid.status != 200 {
		t.Fatalf("%d %s", paid.status, paid.body)
	}
	down.Store(true)
	if a := d.refresh(t, d.pa, "alex", paid.json["refresh_token"]); a.status != 503 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	down.Store(false)
	if a := d.refresh(t, d.pa, "alex", paid.json["refresh_token"]); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
}

// A database that is away is 503, never 500, and never an invalid_grant that
// would make an agent throw its code away.
func TestDatabaseDownIs503(t *testing.T) {
	d := newDoor(t, nil)
	started := d.start(t, "bookings:read")
	token := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	form := url.Values{"grant_type": {deviceGrant}, "device_code": {started["device_code"].(string)}, "client_id": {d.pa.Issuer}}.Encode()
	d.Exec(t, `ALTER TABLE device_requests RENAME TO gone`) // a surprise, not an outage
	a := do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/token", token, form))
	oauthErrorShape(t, a)
	if a.status != 500 || a.error() != "server_error" || strings.Contains(a.body, "gone") || strings.Contains(a.body, "device_requests") {
		t.Errorf("surprise: %d %s", a.status, a.body)
	}
	d.Exec(t, `ALTER TABLE gone RENAME TO device_requests`)
	d.DB.Pool().Close()
	a = do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/token", token, form))
	oauthErrorShape(t, a)
	if a.status != 503 || a.error() != "temporarily_unavailable" {
		t.Errorf("outage: %d %s", a.status, a.body)
	}
}

// B105: a panic on an OAuth route is JSON server_error.
func TestPanicIsServerError(t *testing.T) {
	d := newDoor(t, signerFunc(func(context.Context, tenants.BrandID, string, []byte) (string, error) {
		panic("dc_secret")
	}))
	started := d.start(t, "bookings:read")
	d.approve(t, started, "bookings:read")
	a := d.poll(t, started["device_code"])
	oauthErrorShape(t, a)
	if a.status != 500 || a.error() != "server_error" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if strings.Contains(d.logs.String(), "dc_secret") {
		t.Fatal("what was thrown stands in the log")
	}
}

// M13, R8: ten parallel polls of one approved code over two service instances
// give exactly one token; the losers are told to slow down or that it is over.
func TestParallelPollsOverTwoInstances(t *testing.T) {
	d := newDoor(t, nil)
	second, _ := d.instance(t, nil)
	token := d.pa.Token(t, agenttest.Claims{Sub: "alex"}) // one pa-jwt for all (B78, R20)
	for range 10 {
		started := d.start(t, "bookings:read")
		d.approve(t, started, "bookings:read")
		form := url.Values{"grant_type": {deviceGrant}, "device_code": {started["device_code"].(string)}, "client_id": {d.pa.Issuer}}.Encode()
		var paid atomic.Int32
		var wg sync.WaitGroup
		for i := range 10 {
			base := []string{d.url, second}[i%2]
			req := request(t, http.MethodPost, base+"/a2a/harbor-hotel/oauth/token", token, form)
			wg.Go(func() {
				a := do(t, req)
				switch {
				case a.status == 200:
					paid.Add(1)
				case a.status == 400 && (a.error() == "slow_down" || a.error() == "invalid_grant"):
				default:
					t.Errorf("a loser got %d %s", a.status, a.body)
				}
			})
		}
		wg.Wait()
		if paid.Load() != 1 {
			t.Fatalf("paid out %d times", paid.Load())
		}
	}
}

// R44, B24, B25: twenty parallel refreshes over two service instances are answered
// 200 with one successor or 400 invalid_grant, never with an error of ours; where
// the Brand wants no window, one is 200.
func TestParallelRefreshesOverTwoInstances(t *testing.T) {
	for _, grace := range []time.Duration{30 * time.Second, 0} {
		t.Run(grace.String(), func(t *testing.T) {
			d := newDoor(t, nil)
			d.Hotel = d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Grace = grace })
			second, _ := d.instance(t, nil)
			refresh := d.delegated(t, d.Hotel, d.pa, "bookings:read").refresh
			token := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
			for range 5 {
				form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {d.pa.Issuer}}.Encode()
				answers := make([]answer, 20)
				var wg sync.WaitGroup
				for i := range answers {
					req := request(t, http.MethodPost, []string{d.url, second}[i%2]+"/a2a/harbor-hotel/oauth/token", token, form)
					wg.Go(func() { answers[i] = do(t, req) })
				}
				wg.Wait()
				paid := 0
				next := make(map[any]bool)
				for _, a := range answers {
					switch {
					case a.status == http.StatusOK:
						paid++
						next[a.json["refresh_token"]] = true
					case a.status == http.StatusBadRequest && a.error() == "invalid_grant" && grace == 0:
					default:
						t.Errorf("%d %s", a.status, a.body)
					}
				}
				if want := map[bool]int{true: 1, false: len(answers)}[grace == 0]; paid != want || len(next) != 1 {
					t.Fatalf("%d were paid, %d successors", paid, len(next))
				}
				for one := range next {
					refresh, _ = one.(string)
				}
			}
		})
	}
}

// P48, R40: a whole life, good and bad, leaves no secret in the log.
func TestLogHoldsNoSecret(t *testing.T) {
	d := newDoor(t, nil)
	started := d.start(t, "bookings:read")
	d.poll(t, started["device_code"])
	d.approve(t, started, "bookings:read")
	tokens := d.poll(t, started["device_code"]).json
	d.refresh(t, d.pa, "alex", tokens["refresh_token"])
	d.refresh(t, d.other, "alex", tokens["refresh_token"])
	d.post(t, d.issuer(d.Hotel)+"/revoke", d.pa, "alex", url.Values{"token": {tokens["access_token"].(string)}})
	do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/token", "eyJgarbage.dc_x.rt_y", "device_code=dc_x"))
	do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/token?user_code="+started["user_code"].(string), "", ""))
	d.DB.Pool().Close()
	d.poll(t, started["device_code"])
	logs := d.logs.String()
	if logs == "" {
		t.Fatal("nothing was logged: the test sees nothing")
	}
	for _, secret := range []string{"dc_", "rt_", "eyJ", started["user_code"].(string), "user_code=", "guest-7", "Bearer "} {
		if strings.Contains(logs, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
