package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/api"
	"countersign.dev/web"
)

type admin struct {
	*authoritytest.World
	t           *testing.T
	origin, url string
	key         string
	rules       *authority.Authority
	asks        *tenants.Asks
	world       *published
	mu          sync.Mutex
	body        []byte // of the last answer
}

// published is what the world has published: TXT records.
type published struct{ records map[string][]string }

func (p *published) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody answers")
}

func (p *published) LookupTXT(_ context.Context, name string) ([]string, error) {
	return p.records[strings.TrimSuffix(name, ".")], nil
}

func newAdmin(t *testing.T) *admin {
	t.Helper()
	w := authoritytest.New(t)
	mux := http.NewServeMux()
	now := w.Clock.Now
	site := tenants.Site{PublicURL: authoritytest.PublicURL}
	a := &admin{World: w, t: t, rules: w.Authority(nil), world: &published{records: map[string][]string{}}}
	appliers := tenants.SettingsAppliers(w.DB, site)
	maps.Copy(appliers, tenants.AgentAppliers(w.DB, w.Master, site))
	a.asks = &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: now, Appliers: appliers}
	rules := a.rules
	a.asks = a.asks.With(signing.Appliers(w.NewKeys().Noted(rules.NoteKeys(authority.ByMember("owner-1"))),
		func(context.Context, tenants.BrandID) (signing.Policy, error) {
			return signing.Policy{Alg: signing.ES256, Backend: "local"}, nil
		}))
	outbox, err := events.NewOutbox(w.DB, now)
	if err != nil {
		t.Fatal(err)
	}
	api.New(api.Config{
		Outbox: outbox,
		Trials: tenants.Trials{
			DB: w.DB, Sealer: w.Master, Site: site, Now: now,
			Begin: func(_ context.Context, l tenants.LoginConnection, try tenants.Try, _ string) (string, tenants.Tried) {
				return l.Issuer + "/authorize?state=" + try.State, tenants.Tried{}
			},
		},
		Brands: w.Brands, Credentials: tenants.NewCredentials(w.DB, now), Keys: w.NewKeys(), Authority: rules,
		Policy: func(*tenants.Brand) signing.Policy { return signing.Policy{Alg: signing.ES256, Backend: "local"} },
		DB:     w.DB, Sealer: w.Master, Site: site, Asks: a.asks, Now: now,
		Prover: tenants.Prover{HTTP: &http.Client{Transport: a.world}, DNS: a.world},
		Editor: func(keyID string) tenants.Editor {
			return rules.Editor(authority.By{Actor: "admin", ID: keyID, Channel: "api"})
		},
		ExamineInterface: func(_ context.Context, b *tenants.Brand) []tenants.Line {
			return []tenants.Line{{What: "card", At: b.CardURL(), State: "ok"}}
		},
		ExamineLogin: func(_ context.Context, l tenants.LoginConnection) []tenants.Line {
			return []tenants.Line{{What: "issuer", At: l.Issuer, State: "ok"}}
		},
		Recognise: func(_ context.Context, token string) (string, error) {
			if token == "proof of Aria" {
				return authoritytest.Alex.Agent, nil
			}
			return "", nil
		},
		TryAgent: func(ctx context.Context, brand tenants.BrandID) (tenants.AgentTried, error) {
			_, err := tenants.AgentEndpointOf(ctx, w.DB, brand)
			return tenants.AgentTried{Took: time.Second, Text: "Hello."}, err
		},
		Apply: func(_ context.Context, asked api.Application, token string) (string, error) {
			if len(asked.Logo) > 0 && string(asked.Logo) != "picture" && len(asked.Logo) != tenants.LargestLogo {
				return "not as it was sent", nil
			}
			if token != "proof" {
				return "no proof", nil
			}
			return "", nil
		},
		Addresses: web.Addresses{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Log:       slog.New(slog.DiscardHandler),
	}).Routes(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	a.origin, a.url = s.URL, s.URL+"/api/v1/brands/"
	a.key = a.newKey(w.Hotel, tenants.RightAdmin)
	return a
}

func (a *admin) newKey(b *tenants.Brand, rights ...tenants.Right) string {
	a.t.Helper()
	key, err := tenants.CreateAPIKey(a.t.Context(), a.DB, b.ID, "test", rights, a.Clock.Now())
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *admin) call(method, path, key, body string) (status int, got map[string]any) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	a.body = raw
	a.mu.Unlock()
	if strings.Contains(string(raw), `"d":`) {
		a.t.Fatalf("a private member: %s", raw)
	}
	if resp.StatusCode >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		a.t.Errorf("%s %s: %d as %s", method, path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	_ = json.Unmarshal(raw, &got)
	return resp.StatusCode, got
}

// wire.md §10: only the Brand's own key with the right admin; everybody else
// hears the same, whether the Brand exists or not.
func TestOnlyTheBrandsAdminKeyOpens(t *testing.T) {
	a := newAdmin(t)
	for what, try := range map[string]struct {
		path, key string
		want      int
	}{
		"no key":                {"harbor-hotel/keys", "", 401},
		"no key, grants":        {"harbor-hotel/grants", "", 401},
		"no key, audit":         {"harbor-hotel/audit", "", 401},
		"another's, grants":     {"harbor-hotel/grants", a.newKey(a.Shop, tenants.RightAdmin), 401},
		"another's, audit":      {"harbor-hotel/audit", a.newKey(a.Shop, tenants.RightAdmin), 401},
		"no right, grants":      {"harbor-hotel/grants", a.newKey(a.Hotel, tenants.RightIntrospect), 403},
		"no right, audit":       {"harbor-hotel/audit", a.newKey(a.Hotel, tenants.RightEvents), 403},
		"nonsense":              {"harbor-hotel/keys", "x", 401},
		"another Brand's":       {"harbor-hotel/keys", a.newKey(a.Shop, tenants.RightAdmin), 401},
		"unknown Brand":         {"nobody/keys", a.key, 401},
		"without the right":     {"harbor-hotel/keys", a.newKey(a.Hotel, tenants.RightIntrospect, tenants.RightReceipts), 403},
		"the key, in its place": {"harbor-hotel/keys", a.key, 200},
	} {
		if status, _ := a.call(http.MethodGet, try.path, try.key, ""); status != try.want {
			t.Errorf("%s: %d, want %d", what, status, try.want)
		}
	}
}

// A key's life through the API: published, waiting, taken back; revoked with a
// reason, which stands in the archive.
func TestKeysThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	a.joins("olga@hotel.example", tenants.Owner)
	in := func(state string) (out []map[string]any) {
		for _, k := range a.must("GET", "keys", "", 200)["keys"].([]any) {
			if m := k.(map[string]any); m["state"] == state {
				out = append(out, m)
			}
		}
		return out
	}
	ask := a.must("POST", "keys", "", http.StatusAccepted)
	if ask["kind"] != tenants.ChangeSigningNext || len(in("next")) != 0 {
		t.Fatalf("published at once, or %v", ask)
	}
	if _, err := a.apply(ask); err != nil {
		t.Fatal(err)
	}
	next := in("next")[0]
	from, err := time.Parse(time.RFC3339, next["signs_from"].(string))
	if err != nil || !from.Equal(a.Clock.Now().Add(signing.PublishWait)) {
		t.Errorf("signs from %v, %v", from, err)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys", a.key, ""); status != http.StatusConflict {
		t.Errorf("a second next key: %d", status)
	}
	kid := next["kid"].(string)
	retire := a.must("POST", "keys/"+kid+"/retire", "", http.StatusAccepted)
	if len(in("next")) != 1 {
		t.Error("taken back at once")
	}
	if _, err := a.apply(retire); err != nil || len(in("next")) != 0 {
		t.Errorf("retire: %v", err)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+kid+"/retire", a.key, ""); status != http.StatusConflict {
		t.Errorf("retire what is retired: %d", status)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/nonsense/retire", a.key, ""); status != http.StatusNotFound {
		t.Errorf("retire nonsense: %d", status)
	}
	current := in("current")[0]["kid"].(string)
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/retire", a.key, ""); status != http.StatusConflict {
		t.Errorf("retire the current key: %d", status)
	}
	for body, want := range map[string]int{
		"": 400, "{}": 422, `{"reason":" "}`: 422, `{"why":"x"}`: 400, `{"reason":"x"} {}`: 400,
		`{"reason":"` + strings.Repeat("x", 300) + `"}`: 422,
	} {
		if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/revoke", a.key, body); status != want {
			t.Errorf("revoke with %.20q: %d, want %d", body, status, want)
		}
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/revoke", a.newKey(a.Shop, tenants.RightAdmin), `{"reason":"x"}`); status != 401 {
		t.Errorf("another Brand revokes: %d", status)
	}
	if status, _ := a.call(http.MethodPost, "harbor-hotel/keys/"+current+"/revoke", a.key, `{"reason":"laptop stolen"}`); status != http.StatusOK {
		t.Errorf("revoke: %d", status)
	}
	for event, channel := range map[string]string{"key.next": "console", "key.retired": "console", "key.revoked": "api"} {
		n := a.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND actor_id <> '' AND channel = $1 AND event = $2`, channel, event)
		if n != 1 {
			t.Errorf("%s stands %d times in the trail by the %s", event, n, channel)
		}
	}
	// The emergency waits for nobody, and no owner is left in the dark.
	if n := a.Count(t, `SELECT count(*) FROM notices WHERE kind = 'key.revoked' AND detail->>'asked_by' = $1 AND detail->>'channel' = 'api'`, tenants.KeyID(a.key)); n != 1 {
		t.Errorf("%d letters about the revoked key", n)
	}
	archive, err := a.NewKeys().Archive(t.Context(), a.Hotel.ID)
	if err != nil || !strings.Contains(string(archive.Body), "laptop stolen") {
		t.Errorf("%s, %v", archive.Body, err)
	}
}
