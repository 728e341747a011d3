package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// reroute sends what is for the public URL to an instance.
type reroute struct{ to *url.URL }

func (r reroute) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(req)
}

// kit is the Hotel's own server with the kit, and a call to it under the token.
func (d *door) kit(t *testing.T, key string, token any) (*verify.Verifier, verify.Call) {
	t.Helper()
	to, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	agents, err := verify.NewAgents(verify.AgentsConfig{
		Audience: audience, AllowLoopback: true, Now: d.Clock.Now,
		Known: []verify.KnownAgent{{Issuer: d.pa.Issuer, JWKSURI: d.pa.JWKSURI}},
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.New(verify.Config{
		Issuer: d.Hotel.Issuer, Interface: d.Hotel.InterfaceURL, Agents: agents, Credential: key,
		HTTP: &http.Client{Transport: reroute{to}}, Now: d.Clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Call(t.Context(), http.Header{
		"Authorization":         {"Bearer " + d.pa.Token(t, agenttest.Claims{Sub: "alex"})},
		"X-A2a-User-Delegation": {"Bearer " + token.(string)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v, c
}

// M24, RECEIPTS.md: arguments are any JSON value, and null is one, which is what a map
// that was never made is to the kit. It has one hash at every door and in the kit, and is
// something else than no arguments.
func TestArgumentsMayBeNull(t *testing.T) {
	d := newDoor(t, nil)
	door, call := d.kit(t, d.key(t, d.Hotel, tenants.RightReceipts), d.holding(t, "bookings:read")["access_token"])
	null, err := canonical.Hash([]byte("null"))
	if err != nil {
		t.Fatal(err)
	}
	turn := func(message string, args any) verify.Turn {
		return verify.Turn{ContextID: "talk", MessageID: message, Acts: []verify.Act{{Tool: "look", Args: args}, {Tool: "see"}}}
	}
	says := func(what string, got verify.Countersigned, err error) {
		t.Helper()
		var c receiptlog.Claims
		if err != nil || json.Unmarshal(got.Claims, &c) != nil {
			t.Fatalf("%s: %s, %v", what, got.Claims, err)
		}
		if diff := cmp.Diff([]receiptlog.Action{{Tool: "look", ArgsHash: null}, {Tool: "see"}}, c.Actions); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	first, err := door.Countersign(t.Context(), call, turn("m0", map[string]any(nil)))
	says("a nil map", first, err)
	for what, args := range map[string]any{"a nil pointer": (*int)(nil), "a nil slice": []string(nil), "as it is": json.RawMessage("null")} {
		got, err := door.Countersign(t.Context(), call, turn("m0", args))
		if says(what, got, err); got.JWS != first.JWS {
			t.Errorf("%s is another turn", what)
		}
	}
	hashed := turn("m0", nil)
	hashed.Acts[0].ArgsHash = null
	got, err := door.Countersign(t.Context(), call, hashed)
	if says("by its hash", got, err); got.JWS != first.JWS {
		t.Error("its hash is another turn")
	}
	many := door.CountersignMany(t.Context(), []verify.Served{{Call: call, Turn: turn("m0", map[string]any(nil))}, {Call: call, Turn: turn("m1", []string(nil))}})
	for _, o := range many {
		says("one of several", o.Receipt, o.Err)
	}
	pending, err := verify.NewPending(verify.PendingConfig{Door: door})
	if err != nil {
		t.Fatal(err)
	}
	got, err = pending.Countersign(t.Context(), call, turn("m2", map[string]any(nil)))
	says("through Pending", got, err)
	if got, err = door.Countersign(t.Context(), call, turn("m3", nil)); err != nil || strings.Contains(string(got.Claims), "argsHash") {
		t.Errorf("no arguments: %s, %v", got.Claims, err)
	}
}
