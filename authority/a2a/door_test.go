package a2a_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"github.com/google/uuid"
)

const audience = "https://provider.example"

// door is the hosted interface over a World, a Brand's agent behind it and
// personal agents before it.
type door struct {
	*authoritytest.World
	t        testing.TB
	url      string // of the Hotel's interface
	rules    *authority.Authority
	pa       *agenttest.PA
	other    *agenttest.PA
	agent    *brandAgent
	caller   *a2a.Caller
	logs     *safeBuffer
	patience time.Duration
	// sign and bind, if not nil, are asked instead of the authority.
	sign a2a.Countersign
	bind a2a.Bind
}

// brandAgent is a Brand's agent as a test wants it.
type brandAgent struct {
	*httptest.Server
	mu     sync.Mutex
	secret string
	calls  []a2a.Turn
	bodies []string
	heads  []http.Header
	answer http.HandlerFunc
	hangs  func(a2a.Turn) // nil: it does not
}

func (b *brandAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var t a2a.Turn
	_ = json.Unmarshal(body, &t)
	b.mu.Lock()
	b.calls, b.bodies, b.heads = append(b.calls, t), append(b.bodies, string(body)), append(b.heads, r.Header.Clone())
	answer, hangs := b.answer, b.hangs
	b.mu.Unlock()
	if hangs != nil {
		hangs(t)
	}
	answer(w, r)
}

// says lets the agent answer with the JSON from now on.
func (b *brandAgent) says(body string) {
	b.does(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	})
}

func (b *brandAgent) does(h http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = h
}

func (b *brandAgent) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

func (b *brandAgent) last() (a2a.Turn, string, http.Header) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.calls) - 1
	return b.calls[n], b.bodies[n], b.heads[n]
}

type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// newDoor waits for its agent on however slow a machine.
func newDoor(t testing.TB) *door { return newDoorWith(t, time.Minute) }

// patience is how long an interface waits for an agent that must be waited for in
// vain.
const patience = 700 * time.Millisecond

func newDoorWith(t testing.TB, patience time.Duration) *door {
	t.Helper()
	// Calls are bounded by the real clock, so this world's runs with it.
	w := authoritytest.NewAt(t, time.Now())
	d := &door{World: w, t: t, patience: patience, logs: &safeBuffer{}, agent: &brandAgent{}}
	d.agent.says(`{"text":"Hello."}`)
	d.agent.Server = httptest.NewServer(d.agent)
	t.Cleanup(d.agent.Close)
	d.rules = w.Authority(nil)
	d.pa, d.other = d.newPA(), d.newPA()
	d.agent.secret = d.point(d.agent.URL)
	d.url = d.instance() + "/a2a/" + string(w.Hotel.ID)
	return d
}

func (d *door) newPA() *agenttest.PA {
	d.t.Helper()
	pa := agenttest.New(d.t)
	pa.Audience, pa.Now = audience, d.Clock.Now
	reg := agent.NewRegistry(agent.RegistryConfig{DB: d.DB.Pool(), Now: d.Clock.Now, AllowLoopback: true})
	if err := reg.Register(d.t.Context(), pa.Agent()); err != nil {
		d.t.Fatal(err)
	}
	return pa
}

// point says where the Hotel's agent is, and returns the secret.
func (d *door) point(url string) string {
	d.t.Helper()
	return d.pointAt(d.Hotel, url)
}

func (d *door) pointAt(brand *tenants.Brand, url string) string {
	d.t.Helper()
	secret, err := tenants.SetAgentEndpoint(d.t.Context(), d.rules.Editor(authority.ByOperator()), d.Master,
		tenants.Site{AllowLoopback: true}, brand.ID, url)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.caller != nil {
		d.Clock.Advance(2 * time.Second) // as old as what is known may be
	}
	return secret
}

// instance starts one more server over the same database.
func (d *door) instance() string {
	s := httptest.NewServer(d.served())
	d.t.Cleanup(s.Close)
	return s.URL
}

func (d *door) served() http.Handler {
	log := slog.New(slog.NewTextHandler(d.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	brands := tenants.NewDirectory(d.DB, d.Clock.Now)
	d.caller = a2a.NewCaller(a2a.CallerConfig{
		Places: tenants.NewAgentPlaces(d.DB, d.Master, d.Clock.Now), AllowLoopback: true, Now: d.Clock.Now, Patience: d.patience,
	})
	mux := http.NewServeMux()
	a2a.NewInterface(a2a.Config{
		Brands: brands, Authority: d.rules, Keys: d.NewKeys(), Caller: d.caller, Countersign: d.countersign, Bind: d.bound,
		PublicURL: authoritytest.PublicURL, Now: d.Clock.Now, Log: log,
		Agents: agent.NewVerifier(agent.Config{
			Registry: agent.NewRegistry(agent.RegistryConfig{DB: d.DB.Pool(), Now: d.Clock.Now, AllowLoopback: true}),
			Fetch:    egress.New(egress.Config{AllowLoopback: true}), Now: d.Clock.Now, Log: log,
		}),
	}).Routes(mux)
	a2a.New(brands, log).Routes(mux)
	return mux
}

func (d *door) countersign(ctx context.Context, b *tenants.Brand, turn authority.Turn) (authority.Receipt, error) {
	if d.sign != nil {
		return d.sign(ctx, b, turn)
	}
	return d.rules.Countersign(ctx, b, turn)
}

func (d *door) bound(ctx context.Context, b *tenants.Brand, grant uuid.UUID, contextID string) (authority.TaskReceipt, error) {
	if d.bind != nil {
		return d.bind(ctx, b, grant, contextID)
	}
	return d.rules.CountersignTask(ctx, b, grant, contextID)
}

// delegated gets the person's agent a token for the scopes, as the Brand user.
func (d *door) delegated(pa *agenttest.PA, sub, subject string, scopes ...string) authority.Tokens {
	d.t.Helper()
	who := authority.Caller{Agent: pa.Issuer, Sub: sub}
	s := authoritytest.Begin(d.t, d.rules, d.Hotel, who, scopes...)
	authoritytest.Approve(d.t, d.rules, d.Hotel, s, subject, scopes...)
	tokens, err := d.rules.Poll(d.t.Context(), d.Hotel, who, s.DeviceCode)
	if err != nil {
		d.t.Fatal(err)
	}
	return tokens
}

// said is a message:send body.
func said(id, context, text string) string {
	m := map[string]any{"messageId": id, "role": "ROLE_USER", "parts": []any{map[string]any{"text": text}}}
	if context != "" {
		m["contextId"] = context
	}
	raw, _ := json.Marshal(map[string]any{"message": m})
	return string(raw)
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	json   struct {
		Message *struct {
			MessageID, ContextID, Role string
			Parts                      []struct{ Text string }
			Metadata                   map[string]json.RawMessage
		}
		Task *struct {
			ID, ContextID string
			Status        struct {
				State   string
				Message struct{ Parts []struct{ Text string } }
			}
			Metadata map[string]json.RawMessage
		}
	}
}

func (a answer) context() string {
	if a.json.Message != nil {
		return a.json.Message.ContextID
	}
	if a.json.Task != nil {
		return a.json.Task.ContextID
	}
	return ""
}

// call is one request; empty token and delegation are left out.
func (d *door) call(method, path, jwt, delegation, body string) answer {
	d.t.Helper()
	return d.do(d.request(method, d.url+path, jwt, delegation, body))
}

func (d *door) request(method, url, jwt, delegation, body string) *http.Request {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/a2a+json")
	}
	if jwt != "" {
		r.Header.Set("Authorization", "Bearer "+jwt)
	}
	if delegation != "" {
		r.Header.Set("X-A2A-User-Delegation", "Bearer "+delegation)
	}
	return r
}

func (d *door) do(r *http.Request) answer {
	d.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	_ = json.Unmarshal(body, &a.json)
	return a
}

// send is message:send as the person's agent.
func (d *door) send(pa *agenttest.PA, sub, delegation, body string) answer {
	d.t.Helper()
	return d.call(http.MethodPost, "/message:send", pa.Token(d.t, agenttest.Claims{Sub: sub}), delegation, body)
}

// is checks an error of A2A to the byte.
func (a answer) is(t *testing.T, what string, code int, status, reason string) {
	t.Helper()
	var e struct {
		Error struct{ Message string }
	}
	_ = json.Unmarshal([]byte(a.body), &e)
	message, _ := json.Marshal(e.Error.Message)
	codes := map[int]string{400: "400", 404: "404", 429: "429", 500: "500", 503: "503"}
	want := `{"error":{"code":` + codes[code] + `,"status":"` + status + `","message":` + string(message) +
		`,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + reason + `","domain":"a2a-protocol.org"}]}}`
	if a.status != code || a.body != want || a.header.Get("Content-Type") != "application/a2a+json" || e.Error.Message == "" {
		t.Errorf("%s: %d %s %s, want %s", what, a.status, a.header.Get("Content-Type"), a.body, want)
	}
}

func (a answer) invalid(t *testing.T, what string) {
	t.Helper()
	a.is(t, what, http.StatusBadRequest, "INVALID_ARGUMENT", "INVALID_PARAMS")
}

func (a answer) internal(t *testing.T, what string) {
	t.Helper()
	a.is(t, what, http.StatusInternalServerError, "INTERNAL", "INTERNAL")
}

// refused is a 401 with nothing but the challenge.
func (a answer) refused(t *testing.T, what, challenge string) {
	t.Helper()
	if a.status != http.StatusUnauthorized || a.body != "" || a.header.Get("Content-Type") != "" ||
		a.header.Get("WWW-Authenticate") != challenge || len(a.header.Values("WWW-Authenticate")) != 1 {
		t.Errorf("%s: %d %q %v", what, a.status, a.body, a.header)
	}
}

const (
	m7  = `Bearer realm="a2a"`
	m21 = `Bearer realm="a2a", error="invalid_token"`
)
