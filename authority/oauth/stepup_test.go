package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// asJSON sends a body of the given kind with a Brand's credential.
func asJSON(t *testing.T, to, key, body string) answer {
	t.Helper()
	req := request(t, http.MethodPost, to, key, body)
	req.Header.Set("Content-Type", "application/json")
	return do(t, req)
}

type stepUpBody map[string]any

func (d *door) stepUp(t *testing.T, key string, body stepUpBody) answer {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, d.issuer(d.Hotel)+"/stepup", key, string(raw))
}

func (d *door) paJWT(t *testing.T) string {
	t.Helper()
	return d.pa.Token(t, agenttest.Claims{Sub: "alex"})
}

// holding is a token of the agent's person for the scopes.
func (d *door) holding(t *testing.T, scopes ...string) map[string]any {
	t.Helper()
	started := d.start(t, strings.Join(scopes, " "))
	d.approve(t, started, scopes...)
	a := d.poll(t, started["device_code"])
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return a.json
}

// wire.md §10, M22, P46: what is missing, a link of ours, and its life; with
// nothing missing the link is absent, not null. Approving it widens the grant.
func TestStepUpAnswersWhatATaskNeeds(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightStepUp)
	tokens := d.holding(t, "bookings:read")
	body := stepUpBody{
		"pa_jwt": d.paJWT(t), "delegation_token": tokens["access_token"],
		"scopes": []string{"bookings:read", "extras:order"}, "reason": "Breakfast can be ordered once you allow it.",
	}
	a := d.stepUp(t, key, body)
	link, _ := a.json["pact.verificationUriComplete"].(string)
	want := map[string]any{"pact.missingScopes": []any{"extras:order"}, "pact.verificationUriComplete": link, "expires_in": 600.0}
	if diff := cmp.Diff(want, a.json); a.status != 200 || diff != "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.status, diff)
	}
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, authoritytest.PublicURL+"/b/harbor-hotel/device?user_code=") {
		t.Fatalf("%s %v", link, err)
	}
	d.approve(t, map[string]any{"user_code": u.Query().Get("user_code")}, "bookings:read", "extras:order")
	if r := d.refresh(t, d.pa, "alex", tokens["refresh_token"]); r.json["scope"] != "bookings:read extras:order" {
		t.Errorf("the next refresh: %d %s", r.status, r.body)
	}
	if a := d.stepUp(t, key, body); a.status != 200 || a.body != `{"pact.missingScopes":[]}` {
		t.Errorf("nothing missing: %d %s", a.status, a.body)
	}
}

// The same question on two instances at once is the same link.
func TestStepUpGivesOneLinkOnAllInstances(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightStepUp)
	other, _ := d.instance(t, nil)
	raw, err := json.Marshal(stepUpBody{"pa_jwt": d.paJWT(t), "scopes": []string{"bookings:read"}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	links := make(map[any]int)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			base := d.url
			if i%2 == 1 {
				base = other
			}
			a := asJSON(t, base+"/a2a/harbor-hotel/oauth/stepup", key, string(raw))
			mu.Lock()
			defer mu.Unlock()
			links[a.json["pact.verificationUriComplete"]]++
		})
	}
	wg.Wait()
	if len(links) != 1 || links[nil] != 0 {
		t.Errorf("%d links", len(links))
	}
	if n := d.Count(t, `SELECT count(*) FROM device_requests`); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// wire.md §10: both JWTs are verified, so that a Brand cannot speak in an agent's
// name; a bad one is told precisely and is never the 401 of the Brand's own
// credential. M3, M11, M18 hold here too.
func TestStepUpVerifiesWhatTheBrandPassesOn(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightStepUp)
	tokens := d.holding(t, "bookings:read")
	token := tokens["access_token"].(string)
	refused := func(what, code string, body stepUpBody) {
		t.Helper()
		for name, good := range (stepUpBody{"pa_jwt": d.paJWT(t), "delegation_token": token, "scopes": []string{"bookings:change"}}) {
			if _, set := body[name]; !set {
				body[name] = good
			}
		}
		a := d.stepUp(t, key, body)
		if a.status != http.StatusBadRequest || a.error() != code || a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d %q %s", what, a.status, a.header.Get("WWW-Authenticate"), a.body)
		}
	}
	const badAgent, badToken = "invalid_pa_jwt", "invalid_token"
	jwt := d.paJWT(t)
	refused("no pa-jwt", badAgent, stepUpBody{"pa_jwt": ""})
	refused("another audience", badAgent, stepUpBody{"pa_jwt": d.pa.Token(t, agenttest.Claims{Sub: "alex", Aud: "https://elsewhere.example"})})
	refused("tampered pa-jwt", badAgent, stepUpBody{"pa_jwt": jwt[:len(jwt)-4] + "AAAA"})
	refused("expired pa-jwt", badAgent, stepUpBody{"pa_jwt": d.pa.Token(t, agenttest.Claims{Sub: "alex", IssuedAt: d.Clock.Now().Add(-time.Hour)})})
	refused("a token as pa-jwt", badAgent, stepUpBody{"pa_jwt": token})
	refused("a pa-jwt as token", badToken, stepUpBody{"delegation_token": jwt})
	refused("empty token", badToken, stepUpBody{"delegation_token": ""})
	refused("a refresh token", badToken, stepUpBody{"delegation_token": tokens["refresh_token"]})
	refused("tampered token", badToken, stepUpBody{"delegation_token": token[:len(token)-4] + "AAAA"})
	refused("another agent", badToken, stepUpBody{"pa_jwt": d.other.Token(t, agenttest.Claims{Sub: "alex"})})
	refused("another person", badToken, stepUpBody{"pa_jwt": d.pa.Token(t, agenttest.Claims{Sub: "mallory"})})
	refused("unknown scope", "invalid_scope", stepUpBody{"scopes": []string{"orders:read"}})
	refused("no scope", "invalid_scope", stepUpBody{"scopes": []string{}})
	if err := d.reg.SetEnabled(t.Context(), d.pa.Issuer, false); err != nil {
		t.Fatal(err)
	}
	refused("disabled agent", badAgent, stepUpBody{})
	if n := d.Count(t, `SELECT count(*) FROM device_requests WHERE kind = 'stepup'`); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// The agent is disabled after its pa-jwt was verified: still no bare 401, which
// would say that the Brand's credential is bad.
func TestStepUpOfAnAgentDisabledMeanwhile(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightStepUp)
	body := stepUpBody{"pa_jwt": d.paJWT(t), "scopes": []string{"bookings:read"}}
	if a := d.stepUp(t, key, body); a.status != 200 {
		t.Fatal(a.body)
	}
	d.Exec(t, `UPDATE agents SET enabled = false`) // the registry still remembers it for a moment
	if a := d.stepUp(t, key, body); a.status != http.StatusBadRequest || a.error() != "invalid_pa_jwt" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// wire.md §10, B84: strict JSON, and a reason of one short line.
func TestStepUpReadsStrictly(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightStepUp)
	to := d.issuer(d.Hotel) + "/stepup"
	good := `"pa_jwt":"` + d.paJWT(t) + `","scopes":["bookings:read"]`
	for what, body := range map[string]string{
		"nothing": "", "no object": `[]`, "null": `null`, "two": `{` + good + `}{}`, "cut off": `{` + good,
		"unknown member": `{` + good + `,"subject":"guest-7"}`, "another case": `{` + good + `,"Reason":"x"}`,
		"twice": `{` + good + `,"scopes":["extras:order"]}`, "a null token": `{` + good + `,"delegation_token":null}`,
		"a number": `{` + good + `,"reason":1}`, "a string of scopes": `{"pa_jwt":"x","scopes":"bookings:read"}`,
		"not UTF-8": `{` + good + `,"reason":"` + "\xff" + `"}`, "too long a reason": `{` + good + `,"reason":"` + strings.Repeat("é", 301) + `"}`,
		"two lines": `{` + good + `,"reason":"one\ntwo"}`, "a bell": `{` + good + `,"reason":"\u0007"}`,
		"too large": `{` + good + `,"reason":"` + strings.Repeat(" ", 16<<10) + `"}`,
	} {
		if a := asJSON(t, to, key, body); a.status != http.StatusBadRequest || a.error() != "invalid_request" {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a := do(t, request(t, http.MethodPost, to, key, `{`+good+`}`)); a.error() != "invalid_request" { // as a form
		t.Errorf("no JSON: %d %s", a.status, a.body)
	}
	if a := asJSON(t, to+"?reason=x", key, `{`+good+`}`); a.error() != "invalid_request" {
		t.Errorf("in the query: %d %s", a.status, a.body)
	}
	if a := asJSON(t, to, key, `{`+good+`,"reason":"`+strings.Repeat("é", 300)+`"}`); a.status != http.StatusOK {
		t.Errorf("300 characters: %d %s", a.status, a.body)
	}
}

// wire.md §10: the door itself: the Brand's own key with the right, and nothing
// else; paused is 503, a flood 429, both with Retry-After.
func TestStepUpNeedsTheBrandsCredential(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightStepUp)
	body := stepUpBody{"pa_jwt": d.paJWT(t), "scopes": []string{"bookings:read"}}
	for what, tt := range map[string]struct {
		key    string
		status int
		code   string
	}{
		"none": {"", 401, "invalid_token"}, "the pa-jwt": {d.paJWT(t), 401, "invalid_token"},
		"another Brand's":   {d.key(t, d.Shop, tenants.RightStepUp), 401, "invalid_token"},
		"without the right": {d.key(t, d.Hotel, tenants.RightIntrospect, tenants.RightAdmin), 403, "insufficient_scope"},
	} {
		a := d.stepUp(t, tt.key, body)
		if a.status != tt.status || a.header.Get("WWW-Authenticate") != `Bearer realm="countersign", error="`+tt.code+`"` {
			t.Errorf("%s: %d %q", what, a.status, a.header.Get("WWW-Authenticate"))
		}
	}
	if a := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/stepup", key, "")); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.status)
	}
	for range 30 {
		d.start(t, "bookings:read")
	}
	a := d.stepUp(t, key, body)
	if a.status != http.StatusTooManyRequests || a.error() != "slow_down" || a.header.Get("Retry-After") == "" {
		t.Errorf("a flood: %d %s", a.status, a.body)
	}
	d.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`)
	d.Clock.Advance(2 * time.Second)
	a = d.stepUp(t, key, body)
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("paused: %d %s", a.status, a.body)
	}
}
