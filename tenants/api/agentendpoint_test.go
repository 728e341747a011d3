package api_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// Where a Brand's agent is called waits for an owner, whoever holds the API key;
// no answer holds a secret, and another Brand's key opens nothing.
func TestWhereTheAgentIsWaitsForAnOwner(t *testing.T) {
	a := newAdmin(t)
	const at = "harbor-hotel/agent-endpoint"
	for _, path := range []string{at, at + "/check", at + "/rotate"} {
		method := http.MethodPost
		if path == at {
			method = http.MethodGet
		}
		if status, _ := a.call(method, path, a.key, ""); status != http.StatusNotFound {
			t.Errorf("%s before there is one: %d %s", path, status, a.body)
		}
	}
	if status, _ := a.call(http.MethodPut, at, a.key, `{"url":"http://hotel.example/"}`); status != http.StatusUnprocessableEntity {
		t.Errorf("http: %d %s", status, a.body)
	}
	if status, _ := a.call(http.MethodPut, at, a.newKey(a.Shop, tenants.RightAdmin), `{"url":"https://thief.example/"}`); status != http.StatusUnauthorized {
		t.Errorf("another Brand's key: %d", status)
	}
	status, got := a.call(http.MethodPut, at, a.key, `{"url":"https://hotel.example/turn"}`)
	if status != http.StatusAccepted || got["kind"] != "agent_endpoint.set" || strings.Contains(string(a.body), "whsec_") {
		t.Fatalf("%d %s", status, a.body)
	}
	if n := a.Count(t, `SELECT count(*) FROM agent_endpoints`); n != 0 {
		t.Error("it did not wait")
	}
	id := uuid.MustParse(got["id"].(string))
	if _, err := a.asks.Apply(t.Context(), a.rules.Editor(authority.ByMember(uuid.NewString())), a.Hotel.ID, id, "owner"); err != nil {
		t.Fatal(err)
	}
	status, got = a.call(http.MethodGet, at, a.key, "")
	if status != http.StatusOK || got["url"] != "https://hotel.example/turn" || strings.Contains(string(a.body), "secret_sealed") {
		t.Errorf("%d %s", status, a.body)
	}
	status, got = a.call(http.MethodPost, at+"/check", a.key, "")
	if status != http.StatusOK || got["ok"] != true || got["text"] != "Hello." {
		t.Errorf("check: %d %s", status, a.body)
	}
	if status, got = a.call(http.MethodPost, at+"/rotate", a.key, ""); status != http.StatusAccepted || got["kind"] != "agent_endpoint.rotate" {
		t.Errorf("rotate: %d %s", status, a.body)
	}
}
