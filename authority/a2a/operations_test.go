package a2a_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
)

// wire.md §9, P38: every operation, to the byte.
func TestOperations(t *testing.T) {
	d := newDoor(t)
	jwt := d.pa.Token(t, agenttest.Claims{})
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	for _, tt := range []struct {
		method, path string
		code         int
		status       string
		reason       string
	}{
		{post, "/message:stream", 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		{get, "/extendedAgentCard", 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		{get, "/tasks/t1:subscribe", 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		{post, "/tasks/t1:subscribe", 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		{get, "/tasks/t1", 404, "NOT_FOUND", "TASK_NOT_FOUND"},
		{post, "/tasks/t1:cancel", 404, "NOT_FOUND", "TASK_NOT_FOUND"},
		{get, "/tasks/t1/pushNotificationConfigs", 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{post, "/tasks/t1/pushNotificationConfigs", 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{get, "/tasks/t1/pushNotificationConfigs/c1", 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{del, "/tasks/t1/pushNotificationConfigs/c1", 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{get, "/tasks?pageSize=0", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		{get, "/tasks?pageSize=101", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		{get, "/tasks?pageSize=-1", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		{get, "/tasks?pageSize=ten", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		{get, "/tasks?pageSize=", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		{get, "/tasks?pageSize=5&pageSize=6", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		{get, "/tasks?%zz", 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
	} {
		d.call(tt.method, tt.path, jwt, "", "").is(t, tt.method+" "+tt.path, tt.code, tt.status, tt.reason)
		// M7: who calls comes before what is asked.
		d.call(tt.method, tt.path, "", "", "").refused(t, tt.path+" without a token", m7)
		d.call(tt.method, tt.path, jwt, "not-a-jwt", "").refused(t, tt.path+" with a bad token", m21)
	}
	for path, want := range map[string]string{
		"/tasks":              `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`,
		"/tasks?pageSize=1":   `{"tasks":[],"nextPageToken":"","pageSize":1,"totalSize":0}`,
		"/tasks?pageSize=100": `{"tasks":[],"nextPageToken":"","pageSize":100,"totalSize":0}`,
	} {
		a := d.call(get, path, jwt, "", "")
		if a.status != http.StatusOK || a.body != want || a.header.Get("Content-Type") != "application/a2a+json" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if n := d.agent.count(); n != 0 {
		t.Errorf("the Brand's agent was called %d times", n)
	}
}

// M7, wire.md §9: what does not exist is 404 or 405 before anybody is asked who
// they are, without a body of A2A, with a good token and without any.
func TestNothingThereIsSaidFirst(t *testing.T) {
	d := newDoor(t)
	good := d.pa.Token(t, agenttest.Claims{})
	for _, jwt := range []string{"", "garbage", good} {
		for _, path := range []string{
			"", "/", "/message", "/message:sends", "/Message:send", "/message:send/", "/message:send/x", "/message:stream/x", "/tasks/",
			"/tasks/t1:drop", "/tasks/:cancel", "/tasks/t1:cancel:cancel", "/tasks/t1/x", "/tasks/t1:cancel/pushNotificationConfigs",
			"/tasks/t1/pushNotificationConfigs/c1/d", "/tasks/t1/pushNotificationConfigs/", "/extendedAgentCard/x", "/v1/message:send", "/oauth/nothing",
		} {
			a := d.call(http.MethodPost, path, jwt, "", said("m", "", "Hi"))
			if a.status != http.StatusNotFound || strings.Contains(a.body, "{") || strings.Contains(a.header.Get("Content-Type"), "json") {
				t.Errorf("%q: %d %s %s", path, a.status, a.header.Get("Content-Type"), a.body)
			}
		}
		for path, method := range map[string]string{
			"/message:send": http.MethodGet, "/message:stream": http.MethodPut, "/tasks": http.MethodPost, "/tasks/t1": http.MethodDelete,
			"/tasks/t1:cancel": http.MethodGet, "/tasks/t1:subscribe": http.MethodDelete, "/extendedAgentCard": http.MethodPost,
			"/tasks/t1/pushNotificationConfigs": http.MethodDelete, "/tasks/t1/pushNotificationConfigs/c": http.MethodPost,
		} {
			a := d.call(method, path, jwt, "", "")
			if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") == "" || strings.Contains(a.header.Get("Content-Type"), "json") {
				t.Errorf("%s %q: %d %v", method, path, a.status, a.header)
			}
		}
		unknown := strings.Replace(d.url, "harbor-hotel", "nobody", 1)
		if a := d.do(d.request(http.MethodPost, unknown+"/message:send", jwt, "", said("m", "", "Hi"))); a.status != http.StatusNotFound {
			t.Errorf("an unknown Brand: %d", a.status)
		}
	}
	// A Brand that serves its interface itself is not served here; nor is one that
	// is not ready, or is over.
	for _, one := range []struct {
		what   string
		change func(*tenants.Brand)
	}{
		{"fronted", func(b *tenants.Brand) {
			b.Mode, b.InterfaceURL, b.Issuer = tenants.Fronted, "https://shop.example/agent", "https://shop.example/agent/oauth"
		}},
		{"pending", func(b *tenants.Brand) { b.State = tenants.Pending }},
		{"closed", func(b *tenants.Brand) { b.State = tenants.Closed }}, // the last: it stays so
	} {
		before := d.Shop
		d.Save(t, d.Shop, one.change)
		d.Clock.Advance(5 * time.Second)
		shop := strings.Replace(d.url, "harbor-hotel", "fern-and-fell", 1)
		if a := d.do(d.request(http.MethodPost, shop+"/message:send", good, "", said("m", "", "Hi"))); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", one.what, a.status)
		}
		if one.what != "closed" {
			d.Save(t, before, func(*tenants.Brand) {})
		}
	}
}

// M1–M7, P1: every failure of the pa-jwt is the same 401, before the token and
// before the body.
func TestPAJWTFirst(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	for what, jwt := range map[string]string{
		"none":             "",
		"garbage":          "garbage",
		"another audience": d.pa.Token(t, agenttest.Claims{Sub: "alex", Aud: "https://another.example"}),
		"an array":         d.pa.Token(t, agenttest.Claims{Sub: "alex", Extra: map[string]any{"aud": []string{audience}}}),
		"expired":          d.pa.Token(t, agenttest.Claims{Sub: "alex", IssuedAt: d.Clock.Now().Add(-10 * time.Minute)}),
		"from the future":  d.pa.Token(t, agenttest.Claims{Sub: "alex", IssuedAt: d.Clock.Now().Add(time.Minute)}),
		"unknown agent":    agenttest.New(t).Token(t, agenttest.Claims{Sub: "alex", Aud: audience, IssuedAt: d.Clock.Now()}),
		"the token itself": tokens.JWS,
	} {
		for _, body := range []string{said("m", "", "Hi"), "%%%", ""} {
			for _, token := range []string{"", tokens.JWS, "bad"} {
				d.call(http.MethodPost, "/message:send", jwt, token, body).refused(t, what, m7)
			}
		}
	}
	r := d.request(http.MethodPost, d.url+"/message:send", d.pa.Token(t, agenttest.Claims{}), "", said("m", "", "Hi"))
	r.Header.Add("Authorization", r.Header.Get("Authorization"))
	d.do(r).refused(t, "two headers", m7)
	// An agent that the Brand does not let in.
	if err := tenants.ListAgent(t.Context(), d.rules.Editor(authority.ByOperator()), d.Hotel.ID, d.pa.Issuer, false); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"", tokens.JWS, "not-a-jwt"} {
		d.send(d.pa, "alex", token, said("m", "", "Hi")).refused(t, "denied by the Brand", m7)
	}
	if n := d.agent.count(); n != 0 {
		t.Errorf("the Brand's agent was called %d times", n)
	}
}
