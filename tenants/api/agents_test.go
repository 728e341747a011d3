package api_test

import (
	"fmt"
	"net/url"
	"testing"
)

func TestAgentsThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	for _, body := range []string{`{"issuer":"https://agent.example","allowed":false}`, `{"issuer":"https://other.example","allowed":true}`} {
		a.must("PUT", "agents", body, 200)
	}
	a.must("PUT", "agents", `{"issuer":"https://nobody.example","allowed":true}`, 422)
	got := a.must("GET", "agents?limit=1", "", 200)
	if m := got["agents"].([]any)[0].(map[string]any); m["issuer"] != "https://agent.example" || m["allowed"] != false || got["next"] == nil {
		t.Errorf("%v", got)
	}
	a.must("PUT", "agents", `{"issuer":"https://agent.example","allowed":null}`, 200)
	if got := a.must("GET", "agents", "", 200); len(got["agents"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
}

// A program sees of agents what the dashboard shows: also those that nobody named.
func TestKnownAgentsThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	a.must("PUT", "agents", `{"issuer":"https://other.example","allowed":false}`, 200)
	at := func(query string) map[string]map[string]any {
		t.Helper()
		got := make(map[string]map[string]any)
		for _, one := range a.must("GET", "agents/known"+query, "", 200)["agents"].([]any) {
			m := one.(map[string]any)
			got[m["issuer"].(string)] = m
		}
		return got
	}
	all := at("")
	if m := all["https://agent.example"]; m == nil || m["allowed"] != nil || m["may"] != true || m["jwks_uri"] == "" || m["name"] == "" {
		t.Errorf("%v", m)
	}
	if m := all["https://other.example"]; m == nil || m["allowed"] != false || m["may"] != false {
		t.Errorf("%v", m)
	}
	if got := at("?search=OTHER.ex"); len(got) != 1 || got["https://other.example"] == nil {
		t.Errorf("%v", got)
	}
	// Addresses in both forms, and whom one can be taken for.
	a.Exec(t, `INSERT INTO agents (issuer, jwks_uri, name, enabled, test, contact, created_at, updated_at)
		SELECT i, i || '/jwks.json', n, true, false, '', now(), now()
		  FROM (VALUES ('https://xn--gent-43d.example', 'Bo'), ('https://desk.example', 'Harb0r Hotel Desk')) AS v (i, n)`) // a Cyrillic а
	all = at("")
	if m := all["https://xn--gent-43d.example"]; m["host"] != "xn--gent-43d.example" || m["drawn"] != "аgent.example" || m["alike_brand"] != false ||
		fmt.Sprint(m["alike_agents"]) != "[https://agent.example]" {
		t.Errorf("%v", m)
	}
	if m := all["https://desk.example"]; m["host"] != "desk.example" || m["drawn"] != "" || m["alike_brand"] != true || fmt.Sprint(m["alike_agents"]) != "[]" {
		t.Errorf("%v", m)
	}
	first := a.must("GET", "agents/known?limit=1", "", 200)
	if rest := at("?limit=100&cursor=" + url.QueryEscape(first["next"].(string))); len(rest) != len(all)-1 {
		t.Errorf("%d of %d after the first", len(rest), len(all))
	}
}
