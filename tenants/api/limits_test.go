package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// from calls as the address, through a proxy of ours.
func (a *admin) from(address, method, path, token string) (status int, retry string) {
	a.t.Helper()
	body := `{"issuer":"https://agent.example","jwks_uri":"https://agent.example/jwks.json","name":"Aria","contact":"ops@agent.example"}`
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.origin+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}, "X-Forwarded-For": {address}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// B95: one stranger, who has a whole /64, does not keep others from applying; all
// of them together make us fetch so much and no more.
func TestOneStrangerLocksOutNobody(t *testing.T) {
	a := newAdmin(t)
	apply := func(address string) int {
		status, retry := a.from(address, http.MethodPost, "agents", "proof")
		if (status == http.StatusTooManyRequests) != (retry != "") {
			t.Errorf("%d with Retry-After %q", status, retry)
		}
		return status
	}
	for i := range 300 {
		if got := apply(fmt.Sprintf("2001:db8::%x", i+1)); (got == http.StatusTooManyRequests) != (i >= 20) {
			t.Fatalf("the stranger's %d.: %d", i+1, got)
		}
	}
	if got := apply("192.0.2.1"); got != http.StatusAccepted {
		t.Errorf("somebody else: %d", got)
	}
	passed := 0
	for i := range 300 {
		if apply(fmt.Sprintf("2001:db8:1:%x::1", i)) == http.StatusAccepted {
			passed++
		}
	}
	if passed != 179 { // of 200, with the 21 before
		t.Errorf("%d of many", passed)
	}
	a.Clock.Advance(time.Minute)
	if got := apply("192.0.2.2"); got != http.StatusAccepted {
		t.Errorf("a minute later: %d", got)
	}
}

// B95: an address has a budget over all calls, whoever it says it is; what another
// one does is not counted against it.
func TestCallsAreLimitedByAddress(t *testing.T) {
	a := newAdmin(t)
	for i := range 6000 {
		if got, _ := a.from("192.0.2.1", http.MethodGet, "agents/audiences", ""); got != http.StatusUnauthorized {
			t.Fatalf("the %d.: %d", i+1, got)
		}
	}
	for _, path := range []string{"openapi.json", "agents/audiences", "brands/harbor-hotel/settings"} {
		if got, retry := a.from("192.0.2.1", http.MethodGet, path, a.key); got != http.StatusTooManyRequests || retry == "" {
			t.Errorf("%s: %d after %q", path, got, retry)
		}
	}
	if got, _ := a.from("192.0.2.2", http.MethodGet, "brands/harbor-hotel/settings", a.key); got != http.StatusOK {
		t.Errorf("another address: %d", got)
	}
}

// B95: what a Brand has us look at is as much by API as on the dashboard, over all
// of its keys and addresses.
func TestLooksAreLimitedByBrand(t *testing.T) {
	a := newAdmin(t)
	for i := range 120 {
		if got, _ := a.from(fmt.Sprintf("192.0.2.%d", i), http.MethodPost, "brands/harbor-hotel/domains/x.example/check", a.key); got == http.StatusTooManyRequests {
			t.Fatalf("the %d.", i+1)
		}
	}
	for _, path := range []string{"domains/x.example/check", "interface/check", "agent-endpoint/check", "connections/x/check"} {
		if got, retry := a.from("192.0.2.200", http.MethodPost, "brands/harbor-hotel/"+path, a.key); got != http.StatusTooManyRequests || retry != "30" {
			t.Errorf("%s: %d after %q", path, got, retry)
		}
	}
	if got, _ := a.from("192.0.2.200", http.MethodGet, "brands/harbor-hotel/settings", a.key); got != http.StatusOK {
		t.Errorf("another call: %d", got)
	}
}
