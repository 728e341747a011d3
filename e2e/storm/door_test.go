package storm

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/oauth"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"countersign.dev/web"
)

// door starts an instance whose every question goes the database's own way, and
// returns where it answers. So many calls of one Brand are under way at once.
func door(t *testing.T, w *authoritytest.World, db *tenants.DB, most int) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	keys := signing.NewKeys(signing.Config{DB: db, Backends: []signing.Backend{local.New(db, w.Master, w.Clock.Now)}, Log: log, Now: w.Clock.Now})
	mux := http.NewServeMux()
	oauth.New(oauth.Config{
		Brands: tenants.NewDirectory(db, w.Clock.Now), Authority: instance(w, db), Keys: keys,
		Credentials: tenants.NewCredentials(db, w.Clock.Now), PublicURL: authoritytest.PublicURL, Log: log, MostAtOnce: most,
		Agents: agent.NewVerifier(agent.Config{
			Registry: agent.NewRegistry(agent.RegistryConfig{DB: db.Pool(), Now: w.Clock.Now, AllowLoopback: true}),
			Fetch:    egress.New(egress.Config{AllowLoopback: true}), Now: w.Clock.Now, Log: log,
		}),
	}).Routes(mux)
	s := httptest.NewServer(web.Chain(mux, web.Deadline)) // as long as a call may take
	t.Cleanup(s.Close)
	return s.URL
}

// newAgent is an agent that the world's instances let in.
func newAgent(t *testing.T, w *authoritytest.World) *agenttest.PA {
	t.Helper()
	pa := agenttest.New(t)
	pa.Now = w.Clock.Now
	registry := agent.NewRegistry(agent.RegistryConfig{DB: w.DB.Pool(), Now: w.Clock.Now, AllowLoopback: true})
	if err := registry.Register(t.Context(), pa.Agent()); err != nil {
		t.Fatal(err)
	}
	return pa
}

// caller is one agent's program for one person at one Brand.
type caller struct {
	client *http.Client
	brand  *tenants.Brand
	agent  string
	proof  string // its pa-jwt
}

// refresh asks at the door for a successor of the token. It returns that, or no
// text where the door says that the token is no good; any other answer is an error
// of the test, as is one that is not what RFC 6749 says it is.
func (c *caller) refresh(t *testing.T, at, token string) (next string, ok bool) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {c.agent}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/a2a/"+string(c.brand.ID)+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Error(err)
		return "", false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+c.proof)
	resp, err := c.client.Do(req)
	if err != nil {
		t.Error(err)
		return "", false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
		return "", false
	}
	var answer struct {
		Access  string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int    `json:"expires_in"`
		Refresh string `json:"refresh_token"`
		Scope   string `json:"scope"`
		Error   string `json:"error"`
	}
	h := resp.Header
	if err := json.Unmarshal(body, &answer); err != nil || h.Get("Cache-Control") != "no-store" || !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		t.Errorf("%d %v %s", resp.StatusCode, h, body)
		return "", false
	}
	switch {
	case resp.StatusCode == http.StatusOK && answer.Error == "" && strings.Count(answer.Access, ".") == 2 && answer.Type == "Bearer" &&
		answer.Expires == int(c.brand.TokenLifetime.Seconds()) && strings.HasPrefix(answer.Refresh, "rt_") && answer.Scope == "bookings:read":
		return answer.Refresh, true
	case resp.StatusCode == http.StatusBadRequest && answer.Error == "invalid_grant" && answer.Access == "" && answer.Refresh == "" && c.brand.Grace == 0:
		return "", true
	}
	t.Errorf("%d %s", resp.StatusCode, body)
	return "", false
}
