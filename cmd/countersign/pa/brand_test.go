package pa

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/verify"
)

const audience = "https://provider.example"

// brand plays the authority, as a stranger's server: what it answers at the
// token endpoint is a script, and what it was asked is kept.
type brand struct {
	*httptest.Server
	t     *testing.T
	keys  verify.Keys // of the agent
	clock *clock

	mu       sync.Mutex
	script   []reply // for the token endpoint; the last one stays
	started  string  // the device authorization answer
	startErr reply
	forms    []url.Values // what was posted, to any endpoint
	bearers  []string     // of every post
	revoke   int
}

// reply is one answer; status 0 hangs up without any.
type reply struct {
	status int
	body   string
	header map[string]string
}

func oauth(code string) reply { return reply{status: 400, body: `{"error":"` + code + `"}`} }

func granted(n int, scope string) reply {
	return reply{status: 200, body: fmt.Sprintf(
		`{"token_type":"Bearer","access_token":"at-%d","refresh_token":"rt-%d","expires_in":3600,"scope":%q,"grant_id":"g1"}`, n, n, scope)}
}

func newBrand(t *testing.T, id *Identity, script ...reply) *brand {
	keys, err := verify.ParseKeys(id.PublicJWKS())
	if err != nil {
		t.Fatal(err)
	}
	b := &brand{t: t, keys: keys, clock: newClock(), script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /b/.well-known/agent-card.json", b.card)
	mux.HandleFunc("GET /b/oauth/.well-known/oauth-authorization-server", b.metadata)
	mux.HandleFunc("POST /b/oauth/device_authorization", b.device)
	mux.HandleFunc("POST /b/oauth/token", b.token)
	mux.HandleFunc("POST /b/oauth/revoke", b.end)
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	b.started = `{"device_code":"dc_secret","user_code":"WDJB-MJHT","verification_uri":"https://countersign.example/b/x/device",
		"verification_uri_complete":"https://countersign.example/b/x/device?user_code=WDJB-MJHT","expires_in":600,"interval":5}`
	return b
}

func (b *brand) card(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"name":"Harbor Hotel","supportedInterfaces":[{"url":"%[1]s/b"}],"securitySchemes":{
		"paJwt":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}},
		"userDelegation":{"oauth2SecurityScheme":{"flows":{"deviceCode":{
			"deviceAuthorizationUrl":"%[1]s/b/oauth/device_authorization","tokenUrl":"%[1]s/b/oauth/token",
			"scopes":{"stay:read":"See your bookings","stay:change":"Change your bookings"}}}}}}}`, b.URL)
}

func (b *brand) metadata(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"issuer":"%[1]s/b/oauth","device_authorization_endpoint":"%[1]s/b/oauth/device_authorization",
		"token_endpoint":"%[1]s/b/oauth/token","revocation_endpoint":"%[1]s/b/oauth/revoke","jwks_uri":"%[1]s/b/oauth/jwks.json"}`, b.URL)
}

// seen notes a post and checks the caller as a Brand does.
func (b *brand) seen(r *http.Request) {
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if _, _, err := verify.PAJWT(b.keys, bearer, audience, b.clock.now()); err != nil {
		b.t.Errorf("%s: the pa-jwt is refused: %v", r.URL.Path, err)
	}
	r.ParseForm()
	b.forms, b.bearers = append(b.forms, r.PostForm), append(b.bearers, bearer)
}

func (b *brand) device(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen(r)
	if b.startErr.status != 0 {
		b.startErr.write(w)
		return
	}
	w.Write([]byte(b.started))
}

func (b *brand) token(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen(r)
	next := b.script[0]
	if len(b.script) > 1 {
		b.script = b.script[1:]
	}
	next.write(w)
}

func (b *brand) end(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen(r)
	w.WriteHeader(b.revoke)
}

func (r reply) write(w http.ResponseWriter) {
	if r.status == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	w.Write([]byte(r.body))
}

// clock moves only when somebody waits, and remembers for how long.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	waits []time.Duration
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.at, c.waits = c.at.Add(d), append(c.waits, d)
	return nil
}

func newIdentity(t *testing.T) (id *Identity, dir string) {
	t.Helper()
	dir = t.TempDir()
	id, err := CreateIdentity(dir, "https://aria.example", "https://aria.example/jwks.json", "Aria")
	if err != nil {
		t.Fatal(err)
	}
	if err := id.StoreAudiences(audience, nil); err != nil {
		t.Fatal(err)
	}
	return id, dir
}

func (b *brand) options(id *Identity, dir string) Options {
	return Options{
		Identity: id, Card: b.URL + "/b", Sub: "alex-phone", TokenFile: filepath.Join(dir, "agent", "tokens.json"),
		Now: b.clock.now, Wait: b.clock.wait,
	}
}

// seconds makes waits easy to compare.
func seconds(waits []time.Duration) (s []int) {
	for _, w := range waits {
		s = append(s, int(w/time.Second))
	}
	return s
}

func lines(t *testing.T, out string) (events []map[string]any) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("not one JSON object: %q", line)
		}
		events = append(events, e)
	}
	return events
}
