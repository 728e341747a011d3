package federation

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/consent/federation/demoidp"
)

// quick is the patience in tests of providers that never answer.
const quick = 200 * time.Millisecond

// B63, R69: a dead provider is its own Brand's trouble.
func TestDeadProvidersCostTheirOwnBrandOnly(t *testing.T) {
	t.Parallel()
	if patience > 5*time.Second {
		t.Errorf("people wait %v", patience)
	}
	// Takes connections and says nothing.
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	healthy, now := startProvider(t), newClock()
	c := newClient(t, now)
	if healthy.Hits(demoidp.PathDiscovery) != 0 {
		t.Error("something was fetched before anybody logged in")
	}
	asked := make(chan error)
	for n := range 30 {
		conn := connectionTo(healthy)
		conn.Issuer = "http://" + silent.Addr().String() + "/" + strconv.Itoa(n)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), quick)
			defer cancel()
			_, err := c.Begin(ctx, conn, begin())
			asked <- err
		}()
	}
	if _, err := logIn(t, c, connectionTo(healthy), now); err != nil {
		t.Errorf("the healthy Brand: %v", err)
	}
	for range 30 {
		is(t, "a silent provider", <-asked, ErrUnreachable)
	}
}

func TestADeadProviderIsLeftAloneForAMoment(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	p.SetFaults(demoidp.Faults{Discovery: demoidp.Answer{Status: 503, Body: "CANARY"}})
	for range 3 {
		_, err := c.Begin(t.Context(), conn, begin())
		is(t, "down", err, ErrUnreachable)
	}
	if hits := p.Hits(demoidp.PathDiscovery); hits != 1 {
		t.Errorf("asked %d times", hits)
	}
	p.SetFaults(demoidp.Faults{})
	now.turn(failureLife)
	_, err := c.Begin(t.Context(), conn, begin())
	is(t, "up again", err, nil)
}

func TestManyLoginsShareOneDiscovery(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := c.Begin(t.Context(), conn, begin()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if hits := p.Hits(demoidp.PathDiscovery); hits != 1 {
		t.Errorf("asked %d times", hits)
	}
	now.turn(metadataLife)
	if _, err := c.Begin(t.Context(), conn, begin()); err != nil {
		t.Fatal(err)
	}
	if hits := p.Hits(demoidp.PathDiscovery); hits != 2 {
		t.Errorf("asked %d times after the description's life", hits)
	}
}

// The one who asks first may leave; the others still get their answer.
func TestALeavingPersonDoesNotSpoilTheFetch(t *testing.T) {
	t.Parallel()
	var m memo[int]
	now := newClock()
	l := limits{now: now.Now, base: t.Context(), patience: time.Minute, life: time.Minute, failureLife: time.Second}
	started, release := make(chan struct{}), make(chan struct{})
	fetch := func(ctx context.Context) (int, error) {
		close(started)
		<-release
		return 42, ctx.Err()
	}
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := m.get(leaving, l, 0, fetch)
		left <- err
	}()
	<-started
	leave()
	is(t, "who left", <-left, ErrUnreachable)
	close(release)
	if value, number, err := m.get(t.Context(), l, 0, fetch); value != 42 || number != 1 || err != nil {
		t.Errorf("value %d, number %d, error %v", value, number, err)
	}
}

// R69: down, slow, 500, huge – at each of the three places that we ask.
func TestATroubledProviderIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	conn := connectionTo(p)
	huge := `{"CANARY":"` + strings.Repeat("x", largest) + `"}`
	for _, tt := range []struct {
		name   string
		faults demoidp.Faults
		want   error
	}{
		{"discovery hangs", demoidp.Faults{Discovery: demoidp.Answer{Hang: true}}, ErrUnreachable},
		{"discovery 500", demoidp.Faults{Discovery: demoidp.Answer{Status: 500, Body: "CANARY"}}, ErrUnreachable},
		{"discovery 404", demoidp.Faults{Discovery: demoidp.Answer{Status: 404, Body: "CANARY"}}, ErrMisconfigured},
		{"discovery garbage", demoidp.Faults{Discovery: demoidp.Answer{Status: 200, Body: "<html>CANARY"}}, ErrMisconfigured},
		{"discovery huge", demoidp.Faults{Discovery: demoidp.Answer{Status: 200, Body: huge}}, ErrMisconfigured},
		{"keys hang", demoidp.Faults{JWKS: demoidp.Answer{Hang: true}}, ErrUnreachable},
		{"keys 500", demoidp.Faults{JWKS: demoidp.Answer{Status: 500, Body: "CANARY"}}, ErrUnreachable},
		{"keys garbage", demoidp.Faults{JWKS: demoidp.Answer{Status: 200, Body: "CANARY"}}, ErrMisconfigured},
		{"keys huge", demoidp.Faults{JWKS: demoidp.Answer{Status: 200, Body: huge}}, ErrMisconfigured},
		{"keys empty", demoidp.Faults{JWKS: demoidp.Answer{Status: 200, Body: `{"keys":[]}`}}, ErrMisconfigured},
		{"token hangs", demoidp.Faults{Token: demoidp.Answer{Hang: true}}, ErrUnreachable},
		{"token 500", demoidp.Faults{Token: demoidp.Answer{Status: 500, Body: "CANARY"}}, ErrUnreachable},
		{"token garbage", demoidp.Faults{Token: demoidp.Answer{Status: 200, Body: "CANARY"}}, ErrMisconfigured},
		{"token redirects", demoidp.Faults{Token: demoidp.Answer{Status: 307}}, ErrMisconfigured},
		{"token refuses", demoidp.Faults{Token: demoidp.Answer{Status: 400, Body: `{"error":"invalid_grant","error_description":"CANARY"}`}}, ErrRefused},
		{"token refuses us", demoidp.Faults{Token: demoidp.Answer{Status: 401, Body: `{"error":"invalid_client","error_description":"CANARY"}`}}, ErrMisconfigured},
		{"token says server_error", demoidp.Faults{Token: demoidp.Answer{Status: 400, Body: `{"error":"server_error"}`}}, ErrUnreachable},
		{"no ID token", demoidp.Faults{EditToken: func(a map[string]any) { delete(a, "id_token") }}, ErrMisconfigured},
	} {
		p.SetFaults(demoidp.Faults{})
		now := newClock()
		c := newClient(t, now)
		b := begin()
		query := answer(t, c, conn, b, demoidp.NewVisitor())

		c = newClient(t, now) // which knows nothing yet
		if tt.faults.Discovery.Hang || tt.faults.JWKS.Hang || tt.faults.Token.Hang {
			c.patience = quick
		}
		p.SetFaults(tt.faults)
		_, err := c.Finish(t.Context(), conn, finish(b, query, now))
		is(t, tt.name, err, tt.want)
		quiet(t, err, query.Get("code"))
		if strings.HasSuffix(tt.name, "huge") && !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
	p.Close()
	now := newClock()
	c := newClient(t, now)
	_, err := c.Begin(t.Context(), conn, begin())
	is(t, "gone", err, ErrUnreachable)
}

// B62: the secret was changed at the provider.
func TestAWrongSecretIsTheAdminsMatter(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	conn := connectionTo(p)
	conn.ClientSecret = "old"
	_, err := logIn(t, newClient(t, now), conn, now)
	is(t, "old secret", err, ErrMisconfigured)
}

// B60: the access token's type is not our business.
func TestTheTokenTypeMayBeWrittenAnyway(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c := newClient(t, now)
	for _, written := range []any{"Bearer", "bearer", "BEARER", nil} {
		p.SetFaults(demoidp.Faults{EditToken: func(a map[string]any) { a["token_type"] = written }})
		_, err := logIn(t, c, connectionTo(p), now)
		is(t, "token type", err, nil)
	}
}

// B54: the issuer is compared to the byte, and the admin is told what it should be.
func TestAnotherIssuerIsNamedToTheAdmin(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	if err := c.Check(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ configured, found string }{
		{p.Issuer() + "/", p.Issuer()},
		{p.Issuer(), p.Issuer() + "/"},
		{strings.Replace(p.Issuer(), "http:", "HTTP:", 1), p.Issuer()},
	} {
		conn.Issuer = tt.configured
		p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) { d["issuer"] = tt.found }})
		err := c.Check(t.Context(), conn)
		mismatch, ok := errors.AsType[*IssuerMismatch](err)
		if !ok || mismatch.Found != tt.found || !errors.Is(err, ErrMisconfigured) {
			t.Errorf("%s calling itself %s: %v", tt.configured, tt.found, err)
		}
		_, err = newClient(t, now).Begin(t.Context(), conn, begin())
		is(t, tt.configured, err, ErrMisconfigured)
	}
	conn.Issuer = p.Issuer()
	p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) { d["issuer"] = "javascript:CANARY" }})
	err := c.Check(t.Context(), conn)
	if _, ok := errors.AsType[*IssuerMismatch](err); ok {
		t.Error("an unusable issuer is proposed to the admin")
	}
	is(t, "an unusable issuer", err, ErrMisconfigured)
}

func TestADescriptionCannotLeadAstray(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	for _, endpoint := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri"} {
		for _, address := range []any{
			"javascript:alert(1)", "http://other.example/x", "//other.example/x", "/x", "", nil,
			"https://user@other.example/x", "https://other.example/x#y", "https://other.example/x#", "ftp://127.0.0.1/x",
		} {
			p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) { d[endpoint] = address }})
			if err := c.Check(t.Context(), conn); !errors.Is(err, ErrMisconfigured) {
				t.Errorf("%s %v: error %v", endpoint, address, err)
			}
		}
	}
	p.SetFaults(demoidp.Faults{})
	for _, issuer := range []string{"", "x", "https://", "ftp://idp.example", "http://idp.example", "https://idp.example?x=1", "https://u:p@idp.example"} {
		conn.Issuer = issuer
		is(t, issuer, c.Check(t.Context(), conn), ErrMisconfigured)
	}
	conn = connectionTo(p)
	conn.AllowLoopbackHTTP = false
	is(t, "http in production", c.Check(t.Context(), conn), ErrMisconfigured)
	conn = connectionTo(p)
	conn.ClientSecret = ""
	is(t, "no secret", c.Check(t.Context(), conn), ErrMisconfigured)
}

func TestTheSecretIsSentAsTheProviderAsks(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	for _, tt := range []struct {
		methods any
		want    error
	}{
		{nil, nil},
		{[]string{"client_secret_basic", "client_secret_post"}, nil},
		{[]string{"client_secret_post"}, nil},
		{[]string{"private_key_jwt"}, ErrMisconfigured},
	} {
		p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) { d["token_endpoint_auth_methods_supported"] = tt.methods }})
		now := newClock()
		c, conn := newClient(t, now), connectionTo(p)
		if tt.want != nil {
			is(t, "methods", c.Check(t.Context(), conn), tt.want)
			continue
		}
		_, err := logIn(t, c, conn, now)
		is(t, "methods", err, nil)
	}
}

// A token endpoint that redirects would have the client's secret follow.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer thief.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	p, now := startProvider(t), newClock()
	p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) { d["token_endpoint"] = redirecting.URL }})
	_, err := logIn(t, newClient(t, now), connectionTo(p), now)
	is(t, "redirect", err, ErrMisconfigured)
	if reached.Load() {
		t.Error("the redirect was followed")
	}
}

func TestOneOddKeyDoesNotLockABrandOut(t *testing.T) {
	t.Parallel()
	odd := []string{
		`{"kty":"OKP","crv":"Ed448","x":"AA"}`, `{"kty":"oct","k":"c2VjcmV0"}`, `{"kty":"new"}`, `7`,
		// A private key that somebody published is no longer anybody's.
		`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}`,
		`{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}`, `{"kty":"RSA","n":"AQAB","e":"AQAB"}`,
	}
	for _, text := range odd {
		if _, err := parseKey([]byte(text)); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
	good := `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"keys":[` + strings.Join(append(odd, good), ",") + `]}`))
	}))
	defer server.Close()
	keys, err := newClient(t, newClock()).fetchKeys(t.Context(), server.URL)
	if err != nil || len(keys) != 1 {
		t.Errorf("%d keys, error %v", len(keys), err)
	}
}

// One Brand that changes its settings all day does not fill the memory.
func TestTheMemoryHasAnEnd(t *testing.T) {
	t.Parallel()
	now := newClock()
	c := newClient(t, now)
	for n := range mostKnown {
		c.provider(Connection{Issuer: strconv.Itoa(n)})
	}
	c.provider(Connection{Issuer: "one more"})
	if n := len(c.providers); n > mostKnown {
		t.Errorf("%d are kept", n)
	}
	now.turn(idle + time.Second)
	c.provider(Connection{Issuer: "later"})
	if n := len(c.providers); n != 1 {
		t.Errorf("%d idle ones are kept", n-1)
	}
}

// R69: a provider that hangs holds few of our connections.
func TestAHangingProviderHoldsFewConnections(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	provider := c.provider(conn)
	for range callsAtOnce {
		if _, err := provider.call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b := begin()
	query := answer(t, c, conn, b, demoidp.NewVisitor())
	c.patience = quick
	_, err := c.Finish(t.Context(), conn, finish(b, query, now))
	is(t, "one more", err, ErrUnreachable)
	if p.Hits(demoidp.PathToken) != 0 {
		t.Error("it was asked nevertheless")
	}
}
