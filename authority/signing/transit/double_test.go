package transit_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
	"github.com/prometheus/client_golang/prometheus"
)

// double answers as a Vault in a state that a real one is hard to bring into. It
// signs nothing: what it calls a signature is zeros.
type double struct {
	status int                        // of everything but logins; 0 hangs
	text   string                     // its error
	refuse func(r *http.Request) bool // answers 403 where it says so

	mu     sync.Mutex
	logins []*http.Request
	asked  []*http.Request
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, body any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	switch r.URL.Path {
	case "/v1/auth/approle/login":
		d.mu.Lock()
		d.logins = append(d.logins, r)
		token := fmt.Sprintf("token-%d", len(d.logins))
		d.mu.Unlock()
		answer(http.StatusOK, map[string]any{"auth": map[string]any{"client_token": token, "lease_duration": 3600, "renewable": true}})
	case "/v1/sys/health":
		answer(http.StatusOK, map[string]any{"initialized": true})
	default:
		d.mu.Lock()
		d.asked = append(d.asked, r)
		d.mu.Unlock()
		switch {
		case d.status == 0:
			<-r.Context().Done()
		case d.refuse != nil && d.refuse(r):
			answer(http.StatusForbidden, map[string]any{"errors": []string{"permission denied", "invalid token"}})
		case d.refuse != nil:
			answer(http.StatusOK, map[string]any{"data": map[string]any{"batch_results": []any{
				map[string]any{"reference": "0", "signature": "vault:v1:" + strings.Repeat("A", 86)},
			}}})
		default:
			answer(d.status, map[string]any{"errors": []string{d.text}})
		}
	}
}

// seen is how many calls and logins there were.
func (d *double) seen() (asked, logins int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked), len(d.logins)
}

func (d *double) backend(t *testing.T, server *httptest.Server, change ...func(*transit.Config)) *measured {
	t.Helper()
	c := transit.Config{Address: server.URL, Auth: transit.AppRole{RoleID: "r", SecretID: "s"}}
	m := &measured{registry: prometheus.NewRegistry()}
	c.Metrics = m.registry
	for _, f := range change {
		f(&c)
	}
	var err error
	if m.Backend, err = transit.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// R86: what a status means, and that none is asked twice.
func TestStatuses(t *testing.T) {
	for _, tt := range []struct {
		status int
		text   string
		want   error // nil: neither of the two
		opens  bool  // after some in a row, the breaker
	}{
		{http.StatusInternalServerError, "1 error occurred: internal error", signing.ErrUnavailable, false},
		{http.StatusInternalServerError, "requested version for signing is less than the minimum encryption key version", signing.ErrNoKey, false},
		{http.StatusBadRequest, "signing key not found", signing.ErrNoKey, false},
		{http.StatusBadRequest, "something is wrong with it", nil, false},
		{http.StatusForbidden, "permission denied", signing.ErrUnavailable, false},
		{http.StatusNotFound, "no handler for route", signing.ErrUnavailable, false},
		{http.StatusTooManyRequests, "request path is rate limited", signing.ErrUnavailable, false},
		{http.StatusBadGateway, "", signing.ErrUnavailable, true},
		{http.StatusServiceUnavailable, "Vault is sealed", signing.ErrUnavailable, true},
		{http.StatusOK, "", signing.ErrUnavailable, false}, // an answer without signatures
	} {
		d := &double{status: tt.status, text: tt.text}
		server := httptest.NewServer(d)
		b := d.backend(t, server)
		for n := range 4 {
			err := b.sign(t.Context())
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && (errors.Is(err, signing.ErrNoKey) || errors.Is(err, signing.ErrUnavailable)) {
				t.Errorf("%d %q: %v", tt.status, tt.text, err)
			}
			if asked, logins := d.seen(); asked != n+1 || logins != 1 {
				t.Errorf("%d %q: %d calls and %d logins for %d signatures", tt.status, tt.text, asked, logins, n+1)
				break
			}
		}
		for range 6 {
			_ = b.sign(t.Context())
		}
		if asked, _ := d.seen(); asked < 10 != tt.opens {
			t.Errorf("%d %q: %d calls for 10 signatures", tt.status, tt.text, asked)
		}
		server.Close()
	}
}

// Namespaces are Vault Enterprise's; that we name ours everywhere but where Vault
// forbids it is seen from the requests. The environment changes nothing.
func TestRequestsCarryWhatIsConfigured(t *testing.T) {
	t.Setenv("VAULT_TOKEN", "from-the-shell")
	t.Setenv("VAULT_NAMESPACE", "from-the-shell")
	t.Setenv("VAULT_ADDR", "https://elsewhere.example")
	d := &double{status: http.StatusBadRequest}
	server := httptest.NewServer(d)
	defer server.Close()
	b := d.backend(t, server, func(c *transit.Config) {
		c.Namespace, c.Mount, c.Prefix = "team/a", "keys/signing", "brand-"
	})
	_ = b.sign(t.Context())
	if asked, logins := d.seen(); asked != 1 || logins != 1 {
		t.Fatalf("%d calls, %d logins", asked, logins)
	}
	if got := d.logins[0].Header.Get("X-Vault-Token"); got != "" {
		t.Errorf("login with the token %q", got)
	}
	r := d.asked[0]
	if got := r.URL.Path; got != "/v1/keys/signing/sign/brand-harbor-hotel-es256" {
		t.Error(got)
	}
	if got := r.Header.Get("X-Vault-Namespace"); got != "team/a" && got != "team/a/" {
		t.Errorf("namespace %q", got)
	}
	if got := r.Header.Get("X-Vault-Token"); got != "token-1" {
		t.Errorf("token %q", got)
	}
	if r.Header.Get("X-Vault-Request") == "" {
		t.Error("without the header that proxies must not forge")
	}
	_ = d.backend(t, server).sign(t.Context())
	if got := d.asked[1].Header.Get("X-Vault-Namespace"); got != "" {
		t.Errorf("namespace %q though none is configured", got)
	}
}

// TLS is verified, against the CA that is named, and no variable turns that off.
func TestServersAreVerified(t *testing.T) {
	t.Setenv("VAULT_SKIP_VERIFY", "true")
	d := &double{status: http.StatusBadRequest, text: "signing key not found"}
	server := httptest.NewTLSServer(d)
	defer server.Close()
	if err := d.backend(t, server).sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("an unknown CA: %v", err)
	}
	if _, logins := d.seen(); logins != 0 {
		t.Error("credentials went to an unknown server")
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	b := d.backend(t, server, func(c *transit.Config) { c.TLS.CAFile = ca })
	if err := b.sign(t.Context()); !errors.Is(err, signing.ErrNoKey) {
		t.Errorf("the named CA: %v", err)
	}
	b = d.backend(t, server, func(c *transit.Config) { c.TLS = transit.TLS{CAFile: ca, ServerName: "other.example"} })
	if err := b.sign(t.Context()); !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("another name: %v", err)
	}
}

// A refusal that was under way while another caller logged in is answered with
// that caller's token, not with a further login nor with an error (R61).
func TestLateRefusalTakesTheNewToken(t *testing.T) {
	second := make(chan struct{})
	d := &double{status: http.StatusOK}
	d.refuse = func(r *http.Request) bool {
		if r.Header.Get("X-Vault-Token") != "token-1" {
			return false
		}
		if strings.Contains(r.URL.Path, string(signingtest.Shop)) {
			<-second
		}
		return true
	}
	server := httptest.NewServer(d)
	defer server.Close()
	var clock offset
	b := d.backend(t, server, func(c *transit.Config) { c.Now = clock.now })
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Add(int64(time.Minute)) // past the token's youth
	late := make(chan error)
	go func() {
		late <- b.Sign(t.Context(), signingtest.Shop, []signing.Job{{Version: 1, Alg: signing.ES256}})[0].Err
	}()
	if err := b.sign(t.Context()); err != nil {
		t.Error(err)
	}
	close(second)
	if err := <-late; err != nil {
		t.Error(err)
	}
	if _, logins := d.seen(); logins != 2 {
		t.Errorf("%d logins", logins)
	}
}

// Callers that leave early do not speak for Vault: impatience opens no breaker.
func TestImpatienceIsNoOutage(t *testing.T) {
	d := new(double)
	server := httptest.NewServer(d)
	defer server.Close()
	b := d.backend(t, server)
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := b.Create(ctx, signingtest.Hotel, 1, signing.ES256); !errors.Is(err, signing.ErrUnavailable) {
			t.Error(err)
		}
		cancel()
	}
	if state, _ := b.number(t, "countersign_vault_breaker"); state != 0 {
		t.Errorf("breaker is in state %d", state)
	}
}

// Mistakes in the configuration are said at the start.
func TestConfigIsChecked(t *testing.T) {
	good := transit.Config{Address: "https://vault.example:8200", Auth: transit.Token("t")}
	for name, change := range map[string]func(*transit.Config){
		"no address":              func(c *transit.Config) { c.Address = "" },
		"no scheme":               func(c *transit.Config) { c.Address = "vault.example:8200" },
		"the network, plain":      func(c *transit.Config) { c.Address = "http://vault.example:8200" },
		"a password in it":        func(c *transit.Config) { c.Address = "https://a:b@vault.example" },
		"no login":                func(c *transit.Config) { c.Auth = nil },
		"a mount that climbs":     func(c *transit.Config) { c.Mount = "../sys" },
		"a mount with a slash":    func(c *transit.Config) { c.Mount = "transit/" },
		"a prefix without dash":   func(c *transit.Config) { c.Prefix = "tenant" },
		"the sealing key's name":  func(c *transit.Config) { c.Prefix = "countersign-" },
		"a CA that is not there":  func(c *transit.Config) { c.TLS.CAFile = "/nonexistent" },
		"a certificate, no key":   func(c *transit.Config) { c.TLS.CertFile = "/nonexistent" },
		"a negative timeout":      func(c *transit.Config) { c.Timeout = -1 },
		"a slash in the prefix":   func(c *transit.Config) { c.Prefix = "a/b-" },
		"a wildcard in the mount": func(c *transit.Config) { c.Mount = "*" },
	} {
		c := good
		change(&c)
		if b, err := transit.New(c); err == nil {
			b.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	for _, address := range []string{"https://vault.example", "http://127.0.0.1:8200", "http://localhost:8200", "http://[::1]:8200"} {
		c := good
		c.Address = address
		b, err := transit.New(c)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		b.Close()
		if r := b.Sign(t.Context(), signingtest.Hotel, []signing.Job{{Version: 1, Alg: signing.ES256}})[0]; !errors.Is(r.Err, signing.ErrUnavailable) {
			t.Errorf("closed: %v", r.Err)
		}
	}
}
