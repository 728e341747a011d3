package oauth_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/oauth"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
)

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	audience    = "https://provider.example"
)

// door is one instance of the wire over a World, and agents that call it.
type door struct {
	*authoritytest.World
	url   string
	rules *authority.Authority
	reg   *agent.Registry
	logs  *bytes.Buffer
	pa    *agenttest.PA
	other *agenttest.PA
}

func newDoor(t *testing.T, signer authority.Signer) *door {
	t.Helper()
	w := authoritytest.New(t)
	d := &door{World: w, logs: &bytes.Buffer{}}
	d.reg = agent.NewRegistry(agent.RegistryConfig{DB: w.DB.Pool(), Now: w.Clock.Now, AllowLoopback: true})
	d.pa, d.other = d.newPA(t), d.newPA(t)
	d.url, d.rules = d.instance(t, signer)
	return d
}

func (d *door) newPA(t *testing.T) *agenttest.PA {
	t.Helper()
	pa := agenttest.New(t)
	pa.Audience, pa.Now = audience, d.Clock.Now
	if err := d.reg.Register(t.Context(), pa.Agent()); err != nil {
		t.Fatal(err)
	}
	return pa
}

// instance starts one more server over the same database.
func (d *door) instance(t *testing.T, signer authority.Signer) (string, *authority.Authority) {
	t.Helper()
	rules := d.Authority(signer)
	log := slog.New(slog.NewTextHandler(d.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	brands := tenants.NewDirectory(d.DB, d.Clock.Now)
	mux := http.NewServeMux()
	oauth.New(oauth.Config{
		Brands: brands, Authority: rules, Keys: d.NewKeys(), Credentials: tenants.NewCredentials(d.DB, d.Clock.Now), PublicURL: authoritytest.PublicURL, Log: log,
		Agents: agent.NewVerifier(agent.Config{
			Registry: agent.NewRegistry(agent.RegistryConfig{DB: d.DB.Pool(), Now: d.Clock.Now, AllowLoopback: true}),
			Fetch:    egress.New(egress.Config{AllowLoopback: true}), Now: d.Clock.Now, Log: log,
		}),
	}).Routes(mux)
	a2a.New(brands, log).Routes(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, rules
}

func (d *door) issuer(b *tenants.Brand) string { return d.url + "/a2a/" + string(b.ID) + "/oauth" }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

func (a answer) error() string {
	s, _ := a.json["error"].(string)
	return s
}

func do(t *testing.T, req *http.Request) answer {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	_ = json.Unmarshal(body, &a.json)
	return a
}

func request(t *testing.T, method, to, token, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// post sends a form as the agent would.
func (d *door) post(t *testing.T, to string, pa *agenttest.PA, sub string, form url.Values) answer {
	t.Helper()
	return do(t, request(t, http.MethodPost, to, pa.Token(t, agenttest.Claims{Sub: sub}), form.Encode()))
}

func (d *door) start(t *testing.T, scope string) map[string]any {
	t.Helper()
	a := d.post(t, d.issuer(d.Hotel)+"/device_authorization", d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}, "scope": {scope}})
	if a.status != http.StatusOK {
		t.Fatalf("device authorization: %d %s", a.status, a.body)
	}
	return a.json
}

func (d *door) poll(t *testing.T, code any) answer {
	t.Helper()
	return d.post(t, d.issuer(d.Hotel)+"/token", d.pa, "alex", url.Values{
		"grant_type": {deviceGrant}, "device_code": {code.(string)}, "client_id": {d.pa.Issuer},
	})
}

func (d *door) refresh(t *testing.T, pa *agenttest.PA, sub string, token any) answer {
	t.Helper()
	return d.post(t, d.issuer(d.Hotel)+"/token", pa, sub, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {token.(string)}, "client_id": {pa.Issuer},
	})
}

// approve decides as the person would on the page.
func (d *door) approve(t *testing.T, started map[string]any, ticked ...string) {
	t.Helper()
	id, _, err := d.rules.Find(t.Context(), d.Hotel.ID, started["user_code"].(string), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, d.rules, d.Hotel, authority.Started{ID: id}, "guest-7", ticked...)
}

func unauthorized(t *testing.T, what string, a answer) {
	t.Helper()
	if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != `Bearer realm="a2a"` || a.body != "" {
		t.Errorf("%s: %d, %q, body %q; want the bare 401 of M7", what, a.status, a.header.Get("WWW-Authenticate"), a.body)
	}
}
