package oauth_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// paid goes the whole way and returns the token response.
func (d *door) paid(t *testing.T, scopes ...string) map[string]any {
	t.Helper()
	started := d.start(t, strings.Join(scopes, " "))
	d.approve(t, started, scopes...)
	return d.poll(t, started["device_code"]).json
}

func (d *door) grant(t *testing.T, method string, b *tenants.Brand, pa *agenttest.PA, sub string, id any) answer {
	t.Helper()
	return do(t, request(t, method, d.issuer(b)+"/grants/"+id.(string), pa.Token(t, agenttest.Claims{Sub: sub}), ""))
}

// Grant Management for OAuth 2.0 (draft 03, §6.4 and §6.5): an agent asks about
// its grant and ends it; the tokens die with it.
func TestAnAgentManagesItsGrant(t *testing.T) {
	d := newDoor(t, nil)
	tokens := d.paid(t, "bookings:read", "bookings:change")
	id := tokens["grant_id"]
	if _, claims, _ := strings.Cut(tokens["access_token"].(string), "."); id == nil || claims == "" {
		t.Fatalf("%v", tokens)
	}
	now := d.Clock.Now()
	want := map[string]any{
		"scopes": []any{map[string]any{
			"scope": "bookings:read bookings:change", "resources": []any{d.Hotel.InterfaceURL},
		}},
		"created_at": now.Format(time.RFC3339Nano), "expires_at": now.AddDate(0, 0, 30).Format(time.RFC3339Nano),
	}
	a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id)
	if diff := cmp.Diff(want, a.json); a.status != 200 || diff != "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.status, diff)
	}
	// Living ∩ card: in the order of the card, and without what left it.
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Scopes = b.Scopes[1:] })
	if a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id); a.status != 200 || !strings.Contains(a.body, `"scope":"bookings:change"`) {
		t.Errorf("one retired: %d %s", a.status, a.body)
	}
	d.Exec(t, `UPDATE brand_scopes SET retired_at = now()`)
	if a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id); a.status != 200 || !strings.HasPrefix(a.body, `{"scopes":[],`) {
		t.Errorf("all retired: %d %s", a.status, a.body)
	}
	d.Exec(t, `UPDATE brand_scopes SET retired_at = NULL`)

	if a := d.grant(t, http.MethodDelete, d.Hotel, d.pa, "alex", id); a.status != http.StatusNoContent || a.body != "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a := d.grant(t, method, d.Hotel, d.pa, "alex", id); a.status != http.StatusNotFound {
			t.Errorf("%s after its end: %d", method, a.status)
		}
	}
	if a := d.refresh(t, d.pa, "alex", tokens["refresh_token"]); a.error() != "invalid_grant" {
		t.Errorf("refresh: %d %s", a.status, a.body)
	}
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	if a := d.introspect(t, d.Hotel, key, tokens["access_token"].(string)); a.body != `{"active":false}` {
		t.Errorf("introspection: %s", a.body)
	}
	if n := d.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked' AND actor = 'agent'
		AND actor_id = $1 AND channel = 'oauth' AND grant_id = $2::uuid`, d.pa.Issuer, id); n != 1 {
		t.Errorf("%d times in the trail", n)
	}
}

// B29, B96, P33: a grant answers only to its own (PA, sub) at its own Brand. To
// everybody else it looks as if it had never been, and stays as it is.
func TestAGrantAnswersOnlyToItsOwn(t *testing.T) {
	d := newDoor(t, nil)
	id := d.paid(t, "bookings:read")["grant_id"]
	never := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", "0190a5c4-7e00-7000-8000-000000000001")
	if never.status != http.StatusNotFound {
		t.Fatal(never.status)
	}
	for what, try := range map[string]struct {
		brand *tenants.Brand
		pa    *agenttest.PA
		sub   string
		id    string
	}{
		"another agent":       {d.Hotel, d.other, "alex", id.(string)},
		"another person":      {d.Hotel, d.pa, "sam", id.(string)},
		"another Brand":       {d.Shop, d.pa, "alex", id.(string)},
		"in capitals":         {d.Hotel, d.pa, "alex", strings.ToUpper(id.(string))},
		"without dashes":      {d.Hotel, d.pa, "alex", strings.ReplaceAll(id.(string), "-", "")},
		"as a URN":            {d.Hotel, d.pa, "alex", "urn:uuid:" + id.(string)},
		"nil":                 {d.Hotel, d.pa, "alex", "00000000-0000-0000-0000-000000000000"},
		"nonsense":            {d.Hotel, d.pa, "alex", "%00"},
		"a slash in the name": {d.Hotel, d.pa, "alex", id.(string) + "%2F"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			a := d.grant(t, method, try.brand, try.pa, try.sub, try.id)
			if a.status != never.status || a.body != never.body || !cmp.Equal(slices.Sorted(keysOf(a.header)), slices.Sorted(keysOf(never.header))) {
				t.Errorf("%s, %s: %d %v %s", what, method, a.status, a.header, a.body)
			}
		}
	}
	if a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id); a.status != 200 {
		t.Errorf("its own: %d %s", a.status, a.body)
	}
	if a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id.(string)+"?x=y"); a.error() != "invalid_request" {
		t.Errorf("with a parameter: %d %s", a.status, a.body)
	}
}

func keysOf(h http.Header) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range h {
			if !yield(k) {
				return
			}
		}
	}
}

// M7, M14: Brand, method, pa-jwt, in this order. A disabled agent is 401; while
// the Brand is paused or its user suspended nothing is told, and a grant can be
// ended all the same.
func TestGrantManagementAsksWhoMayNow(t *testing.T) {
	d := newDoor(t, nil)
	id := d.paid(t, "bookings:read")["grant_id"].(string)
	to := d.issuer(d.Hotel) + "/grants/" + id
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		unauthorized(t, method, do(t, request(t, method, to, "", "")))
		unauthorized(t, method+", query", do(t, request(t, method, to+"?access_token="+d.pa.Token(t, agenttest.Claims{}), "", "")))
		unauthorized(t, method+", unknown grant", do(t, request(t, method, d.issuer(d.Hotel)+"/grants/x", "garbage", "")))
		if a := do(t, request(t, method, d.url+"/a2a/nobody/oauth/grants/"+id, "", "")); a.status != http.StatusNotFound {
			t.Errorf("unknown Brand: %d", a.status)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodHead} {
		if a := do(t, request(t, method, to, "", "")); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "DELETE, GET" {
			t.Errorf("%s: %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	for _, state := range []tenants.State{tenants.Paused, tenants.Active} {
		if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, state); err != nil {
			t.Fatal(err)
		}
		a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id)
		if want := map[tenants.State]int{tenants.Paused: 503, tenants.Active: 200}[state]; a.status != want {
			t.Errorf("%s: %d %s", state, a.status, a.body)
		}
		if state == tenants.Paused && (a.error() != "temporarily_unavailable" || a.header.Get("Retry-After") == "") {
			t.Errorf("%v %s", a.header, a.body)
		}
	}
	// The database says no at once, whatever was cached.
	d.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, d.pa.Issuer)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		unauthorized(t, "disabled, "+method, d.grant(t, method, d.Hotel, d.pa, "alex", id))
	}
	d.Exec(t, `UPDATE agents SET enabled = true WHERE issuer = $1`, d.pa.Issuer)
	if err := d.rules.Suspend(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	if a := d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", id); a.status != http.StatusNotFound {
		t.Errorf("suspended: %d", a.status)
	}
	if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Paused); err != nil {
		t.Fatal(err)
	}
	if a := d.grant(t, http.MethodDelete, d.Hotel, d.pa, "alex", id); a.status != http.StatusNoContent {
		t.Errorf("paused and suspended: %d %s", a.status, a.body)
	}
	if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Closed); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(2 * time.Second)
	if a := d.grant(t, http.MethodDelete, d.Hotel, d.pa, "alex", id); a.status != http.StatusNotFound {
		t.Errorf("closed: %d", a.status)
	}
}

// R51: ten calls at once end a grant once, and none of them fails.
func TestAGrantIsEndedOnceByManyCalls(t *testing.T) {
	d := newDoor(t, nil)
	id := d.paid(t, "bookings:read")["grant_id"]
	const calls = 10
	status := make(chan int, calls)
	var wg sync.WaitGroup
	for range calls {
		req := request(t, http.MethodDelete, d.issuer(d.Hotel)+"/grants/"+id.(string), d.pa.Token(t, agenttest.Claims{Sub: "alex"}), "")
		wg.Go(func() { status <- do(t, req).status })
	}
	wg.Wait()
	close(status)
	count := make(map[int]int)
	for s := range status {
		count[s]++
	}
	if count[http.StatusNoContent] != 1 || count[http.StatusNotFound] != calls-1 {
		t.Errorf("%v", count)
	}
	if n := d.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked'`); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// R55: whatever the metadata lists works, and whatever it may come to list needs
// a proof here.
func TestTheMetadataListsWhatWorks(t *testing.T) {
	d := newDoor(t, nil)
	d.Detailed(t, authoritytest.StayCharge())
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	meta := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/.well-known/oauth-authorization-server", "", "")).json
	local := func(member string) string {
		return d.url + strings.TrimPrefix(meta[member].(string), strings.TrimSuffix(d.Hotel.InterfaceURL, "/a2a/harbor-hotel"))
	}
	post := func(member string, form url.Values) answer {
		form.Set("client_id", d.pa.Issuer)
		return d.post(t, local(member), d.pa, "alex", form)
	}
	tokens := d.paid(t, "bookings:read")
	proofs := map[string]func() answer{
		"receipt_log_checkpoint_uri": func() answer {
			return do(t, request(t, http.MethodGet, local("receipt_log_checkpoint_uri"), "", ""))
		},
		"jwks_uri": func() answer { return do(t, request(t, http.MethodGet, local("jwks_uri"), "", "")) },
		"device_authorization_endpoint": func() answer {
			return post("device_authorization_endpoint", url.Values{"scope": {"bookings:read"}})
		},
		"token_endpoint": func() answer {
			a := post("token_endpoint", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}})
			tokens = a.json
			return a
		},
		"introspection_endpoint": func() answer {
			return do(t, request(t, http.MethodPost, local("introspection_endpoint"), key, url.Values{"token": {"x"}}.Encode()))
		},
		"status_list_aggregation_endpoint": func() answer {
			return do(t, request(t, http.MethodGet, local("status_list_aggregation_endpoint"), "", ""))
		},
		"revocation_endpoint": func() answer { return post("revocation_endpoint", url.Values{"token": {"rt_x"}}) },
		"grant_management_endpoint": func() answer {
			to := local("grant_management_endpoint") + "/" + tokens["grant_id"].(string)
			return do(t, request(t, http.MethodGet, to, d.pa.Token(t, agenttest.Claims{Sub: "alex"}), ""))
		},
	}
	for member := range meta {
		if !strings.HasSuffix(member, "_endpoint") && !strings.HasSuffix(member, "_uri") {
			continue
		}
		proof, ok := proofs[member]
		if !ok {
			t.Errorf("%s is listed, and nothing here shows that it works", member)
			continue
		}
		if a := proof(); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", member, a.status, a.body)
		}
	}
	for member := range proofs {
		if meta[member] == nil {
			t.Errorf("%s is not listed", member)
		}
	}
	for _, grant := range meta["grant_types_supported"].([]any) {
		if a := post("token_endpoint", url.Values{"grant_type": {grant.(string)}, "device_code": {"dc_x"}, "refresh_token": {"rt_x"}}); a.error() != "invalid_grant" {
			t.Errorf("grant type %s: %s", grant, a.body)
		}
	}
	for _, scope := range meta["scopes_supported"].([]any) {
		if a := post("device_authorization_endpoint", url.Values{"scope": {scope.(string)}}); a.status != http.StatusOK {
			t.Errorf("scope %s: %d %s", scope, a.status, a.body)
		}
	}
	listed(t, d, meta, post, local)
	methods := map[string]string{"query": http.MethodGet, "revoke": http.MethodDelete}
	for _, action := range meta["grant_management_actions_supported"].([]any) {
		a := d.grant(t, methods[action.(string)], d.Hotel, d.pa, "alex", tokens["grant_id"])
		if a.status/100 != 2 {
			t.Errorf("%s: %d %s", action, a.status, a.body)
		}
	}
}
