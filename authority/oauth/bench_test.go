package oauth_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/oauth"
	"countersign.dev/e2e/bench/crowd"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"countersign.dev/web"
)

// BenchmarkDoor is what agents see: the whole way through HTTP, on the same
// cores as the callers and the database, at a Brand with 100,000 grants and
// 10,000 people who have not decided yet. Each person has a pa-jwt, seen before.
func BenchmarkDoor(b *testing.B) {
	d := newBusyDoor(b)
	callers := d.callers(b, 16)
	trip := yardstick.RoundTrip(d.DB.Pool())
	nothing := yardstick.Raw{Unit: yardstick.UnitExchange, Do: func(_ context.Context, caller int) error {
		_, err := callers[caller].get("/nothing", http.StatusNoContent)
		return err
	}}

	b.Run("nothing, "+yardstick.Called(2), func(b *testing.B) { nothing.Benchmark(b, 2) })
	for _, document := range []struct{ name, path string }{
		{"JWKS", "/a2a/harbor-hotel/oauth/jwks.json"},
		{"metadata", "/a2a/harbor-hotel/oauth/.well-known/oauth-authorization-server"},
		{"card", "/a2a/harbor-hotel/.well-known/agent-card.json"},
		{"status list of 65,536", "/a2a/harbor-hotel/oauth/status/0"},
	} {
		b.Run(document.name+", "+yardstick.Called(2), func(b *testing.B) {
			yardstick.Callers(b, 2, func(caller int) error {
				_, err := callers[caller].get(document.path, http.StatusOK)
				return err
			})
			nothing.Beside(b, 2)
		})
	}
	signature, key := yardstick.Verify(b), d.proxyKey(b)
	held := 0
	for _, n := range []int{2, 16} {
		b.Run("poll on time, "+yardstick.Called(n), func(b *testing.B) {
			yardstick.Callers(b, n, func(caller int) error {
				t := d.rota.Next()
				_, err := callers[caller].token(d.tokens[t.Who.Sub], d.form("device_code", t.DeviceCode), http.StatusBadRequest, "authorization_pending")
				return err
			})
			trip.Beside(b, n)
		})
		b.Run("redeem, "+yardstick.Called(n), func(b *testing.B) {
			tickets := crowd.Allow(b, d.World, d.pa.Issuer, b.N)
			var next atomic.Int64
			yardstick.Callers(b, n, func(caller int) error {
				t := tickets[next.Add(1)-1]
				_, err := callers[caller].token(d.tokens[t.Who.Sub], d.form("device_code", t.DeviceCode), http.StatusOK, `"refresh_token"`)
				return err
			})
			trip.Beside(b, n)
		})
		b.Run("refresh, "+yardstick.Called(n), func(b *testing.B) {
			refresh, token := make([]string, n), make([]string, n)
			for i := range n {
				t := crowd.Holder(d.pa.Issuer, held)
				refresh[i], token[i] = t.Refresh, d.admit(b, t.Who.Sub)
				held++
			}
			yardstick.Callers(b, n, func(caller int) error {
				body, err := callers[caller].token(token[caller], d.form("refresh_token", refresh[caller]), http.StatusOK, `"refresh_token"`)
				if err == nil {
					refresh[caller] = member(body, "refresh_token")
				}
				return err
			})
			trip.Beside(b, n)
		})
		b.Run("verify for a proxy, "+yardstick.Called(n), func(b *testing.B) {
			heads := make([]string, n)
			for i := range n {
				heads[i] = d.shown(b, callers[i], held, key)
				held++
			}
			yardstick.Callers(b, n, func(caller int) error { return callers[caller].verify(heads[caller]) })
			signature.Beside(b, n)
		})
	}
}

// busyDoor is one instance of the service, wrapped as it is in production, with
// a crowd at the Hotel.
type busyDoor struct {
	*authoritytest.World
	address  string
	pa       *agenttest.PA
	verifier *agent.Verifier
	tokens   map[string]string // pa-jwts by sub
	rota     *crowd.Rota
}

func newBusyDoor(b *testing.B) *busyDoor {
	b.Helper()
	w := authoritytest.New(b)
	registry := agent.NewRegistry(agent.RegistryConfig{DB: w.DB.Pool(), Now: w.Clock.Now, AllowLoopback: true})
	d := &busyDoor{
		World: w, pa: agenttest.New(b), tokens: make(map[string]string),
		verifier: agent.NewVerifier(agent.Config{Registry: registry, Fetch: egress.New(egress.Config{AllowLoopback: true}), Now: w.Clock.Now}),
	}
	d.pa.Now = w.Clock.Now
	if err := registry.Register(b.Context(), d.pa.Agent()); err != nil {
		b.Fatal(err)
	}
	crowd.Listed(b, w, d.pa.Issuer, crowd.PerList)
	d.rota = &crowd.Rota{Clock: w.Clock, Tickets: crowd.Fill(b, w, d.pa.Issuer)}
	for i := range crowd.People {
		d.tokens[crowd.Person(i)] = d.admit(b, crowd.Person(i))
	}
	log := slog.New(slog.NewJSONHandler(io.Discard, nil)) // written, as in production, but to nobody
	mux := http.NewServeMux()
	oauth.New(oauth.Config{
		Brands: w.Brands, Agents: d.verifier, Authority: w.Authority(nil), Keys: w.NewKeys(),
		PublicURL: authoritytest.PublicURL, Log: log,
		Credentials: tenants.NewCredentials(w.DB, w.Clock.Now),
	}).Routes(mux)
	a2a.New(w.Brands, log).Routes(mux)
	mux.HandleFunc("/nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s := httptest.NewServer(web.Chain(mux, web.Record(log, time.Now), web.EveryAnswer(true)))
	b.Cleanup(s.Close)
	d.address = s.Listener.Addr().String()
	return d
}

// admit makes a pa-jwt that lives as long as one may, and shows it once.
func (d *busyDoor) admit(b *testing.B, sub string) string {
	b.Helper()
	token := d.pa.Token(b, agenttest.Claims{Sub: sub, Expires: d.Clock.Now().Add(5 * time.Minute)})
	if _, err := d.verifier.Verify(b.Context(), token, audience); err != nil {
		b.Fatal(err)
	}
	return token
}

func (d *busyDoor) form(kind, secret string) string {
	grant := "refresh_token"
	if kind == "device_code" {
		grant = deviceGrant
	}
	return url.Values{"grant_type": {grant}, kind: {secret}, "client_id": {d.pa.Issuer}}.Encode()
}

// wireCaller is an agent with one connection that stays open, and as little
// else as possible: what a caller costs on these cores is taken from the service.
type wireCaller struct {
	conn  net.Conn
	read  *bufio.Reader
	write bytes.Buffer
}

func (d *busyDoor) callers(b *testing.B, n int) []*wireCaller {
	b.Helper()
	all := make([]*wireCaller, n)
	for i := range all {
		conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", d.address)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		all[i] = &wireCaller{conn: conn, read: bufio.NewReader(conn)}
	}
	return all
}

func (c *wireCaller) get(path string, status int) ([]byte, error) {
	c.write.Reset()
	fmt.Fprintf(&c.write, "GET %s HTTP/1.1\r\nHost: countersign.example\r\n\r\n", path)
	return c.exchange(status, "")
}

func (c *wireCaller) token(bearer, form string, status int, says string) ([]byte, error) {
	c.write.Reset()
	fmt.Fprintf(&c.write, "POST /a2a/harbor-hotel/oauth/token HTTP/1.1\r\nHost: countersign.example\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", bearer, len(form), form)
	return c.exchange(status, says)
}

func (c *wireCaller) exchange(status int, says string) ([]byte, error) {
	if _, err := c.conn.Write(c.write.Bytes()); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if answer.StatusCode != status || !bytes.Contains(body, []byte(says)) {
		return nil, fmt.Errorf("%s %s", answer.Status, body)
	}
	return body, nil
}

// member reads a text without escapes out of a JSON object.
func member(body []byte, name string) string {
	_, rest, _ := strings.Cut(string(body), `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
