package api_test

import (
	"archive/zip"
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// allowed lets a person allow the agent something at the Hotel.
func (a *admin) allowed(subject string) authority.Tokens {
	a.t.Helper()
	who := authority.Caller{Agent: authoritytest.Agent, Sub: "phone-of-" + subject}
	s := authoritytest.Begin(a.t, a.rules, a.Hotel, who, "bookings:read")
	authoritytest.Approve(a.t, a.rules, a.Hotel, s, subject, "bookings:read")
	tokens, err := a.rules.Poll(a.t.Context(), a.Hotel, who, s.DeviceCode)
	if err != nil {
		a.t.Fatal(err)
	}
	return tokens
}

// R66: an export needs the Brand's own admin key, is noted under it before it
// begins, and goes on being there while the Brand is closed.
func TestExportThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	a.allowed("guest-1")
	for key, want := range map[string]int{
		"": 401, a.newKey(a.Shop, tenants.RightAdmin): 401, a.newKey(a.Hotel, tenants.RightIntrospect, tenants.RightEvents): 403,
	} {
		if status, _ := a.call("GET", "harbor-hotel/export", key, ""); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.exported'`); n != 0 {
		t.Errorf("noted %d times", n)
	}
	a.must("GET", "export?x=1", "", 400)
	if _, err := a.rules.Close(t.Context(), a.Hotel.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	a.Reload(t, a.Hotel.ID)
	a.must("PATCH", "settings", `{"name":"x"}`, 409) // it is closed, and that is final
	if status, _ := a.call("GET", "harbor-hotel/export", a.key, ""); status != 200 {
		t.Fatalf("%d: %s", status, a.body)
	}
	z, err := zip.NewReader(bytes.NewReader(a.body), int64(len(a.body)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("audit.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := authority.VerifyExport(f, nil); err != nil || p.Brand != "harbor-hotel" {
		t.Errorf("%+v, %v", p, err)
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.exported' AND actor_id = $1 AND channel = 'api'`, tenants.KeyID(a.key)); n != 1 {
		t.Errorf("noted %d times", n)
	}
}

// B92: a user is erased by the Brand's own admin key only, and the answer, which
// may be kept, does not name them; unknown and erased ones are told alike.
func TestEraseThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	const subject = "guest 7/8"
	a.allowed(subject)
	at := "users/" + url.PathEscape(subject) + "/erase"
	for _, key := range []string{"", a.newKey(a.Shop, tenants.RightAdmin), a.newKey(a.Hotel, tenants.RightIntrospect)} {
		if status, _ := a.call("POST", "harbor-hotel/"+at, key, ""); status != 401 && status != 403 {
			t.Errorf("%d", status)
		}
	}
	a.must("POST", at, `{"subject":"another"}`, 400)
	if n := a.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Fatalf("%d grants ended", n)
	}
	got := a.must("POST", at, "", 200)
	if got["grants_ended"] != 1.0 || got["events"] == 0.0 || strings.Contains(string(a.body), "guest") {
		t.Errorf("%s", a.body)
	}
	again := a.must("POST", at, "", 200)
	body := string(a.body)
	if unknown := a.must("POST", "users/nobody/erase", "", 200); string(a.body) != body || again["rows"] != unknown["rows"] {
		t.Errorf("%v and %v", again, unknown)
	}
}

// R82: an admin's act that cannot be written down does not happen: 503, and every
// table is as it was. Whether the right is gone or the disk is full.
func TestWhatCannotBeNotedDoesNotHappen(t *testing.T) {
	for how, q := range map[string][2]string{
		"right": {`REVOKE INSERT ON audit_events FROM countersign_app`, `GRANT INSERT ON audit_events TO countersign_app`},
		"disk": {
			`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
			 CREATE TRIGGER a_full BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION full_disk()`,
			`DROP TRIGGER a_full ON audit_events`,
		},
	} {
		a := newAdmin(t)
		a.allowed("guest-1")
		a.must("PUT", "connections/candidate", `{"issuer":"https://login.example","client_id":"us","client_secret":"s"}`, 200)
		a.domain("hotel.example")
		key := tenants.KeyID(a.newKey(a.Hotel, tenants.RightEvents))
		var grant, connection string
		if err := a.Owner.QueryRow(t.Context(), `SELECT g.id::text, c.id::text FROM grants g, login_connections c`).Scan(&grant, &connection); err != nil {
			t.Fatal(err)
		}
		change := a.must("POST", "api-keys", `{"name":"x","rights":["events"]}`, 202)["id"].(string)
		acts := [][3]string{
			{"PATCH", "settings", `{"name":"Harbour"}`},
			{"POST", "pause", ""},
			{"PUT", "scopes/rooms:read", `{"description":"See rooms","effect":"sees","impact":"low"}`},
			{"POST", "scopes/bookings:read/retire", ""},
			{"PUT", "detail-types/stay_charge", `{"scope":"bookings:read","schema":{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"}}},"words":"{a}"}`},
			{"PUT", "scope-order", `{"order":["account:read","bookings:read","bookings:change","extras:order"]}`},
			{"POST", "domains", `{"host":"other.example"}`},
			{"POST", "keys", ""},
			{"DELETE", "domains/hotel.example", ""},
			{"PUT", "connections/candidate", `{"issuer":"https://login2.example","client_id":"us","client_secret":"s"}`},
			{"POST", "connections/" + connection + "/live", ""},
			{"DELETE", "connections/" + connection, ""},
			{"POST", "api-keys", `{"name":"y","rights":["events"]}`},
			{"POST", "api-keys/" + key + "/rotate", ""},
			{"DELETE", "api-keys/" + key, ""},
			{"PUT", "agents", `{"issuer":"https://agent.example","allowed":false}`},
			{"DELETE", "changes/" + change, ""},
			{"POST", "grants/" + grant + "/revoke", ""},
			{"POST", "grants/" + grant + "/scopes/bookings:read/revoke", ""},
			{"POST", "grants/revoke", `{"subject":"guest-1"}`},
			{"POST", "users/guest-1/suspend", ""},
			{"POST", "users/guest-1/erase", ""},
			{"GET", "export", ""},
		}
		a.Exec(t, q[0])
		before := a.everything()
		for _, act := range acts {
			status, _ := a.call(act[0], "harbor-hotel/"+act[1], a.key, act[2])
			if status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "Nothing has changed") {
				t.Errorf("%s: %s %s: %d %s", how, act[0], act[1], status, a.body)
			}
			if now := a.everything(); now != before {
				t.Fatalf("%s: %s %s changed something", how, act[0], act[1])
			}
		}
		// With the trail back, each of them is done: they were no mistakes.
		a.Exec(t, q[1])
		for _, act := range acts[:3] {
			if status, _ := a.call(act[0], "harbor-hotel/"+act[1], a.key, act[2]); status != 200 {
				t.Errorf("%s: %s %s: %d %s", how, act[0], act[1], status, a.body)
			}
		}
	}
}

// everything digests what every table holds.
func (a *admin) everything() string {
	a.t.Helper()
	const q = `
		SELECT string_agg(c.relname || ' ' || (xpath('/row/d/text()', query_to_xml(
		       format('SELECT md5(coalesce(string_agg(x::text, '''' ORDER BY x::text), '''')) AS d FROM %I x', c.relname), false, true, '')))[1]::text, E'\n' ORDER BY c.relname)
		  FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE 'river%'`
	var out string
	if err := a.Owner.QueryRow(a.t.Context(), q).Scan(&out); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// B99: what is not there, what is another Brand's and what never was are told
// alike, to the byte.
func TestUnknownThingsAreToldAlike(t *testing.T) {
	a := newAdmin(t)
	a.allowed("guest-1")
	s := authoritytest.Begin(t, a.rules, a.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a.rules, a.Shop, s, "shopper", "orders:read")
	var others string
	if err := a.Owner.QueryRow(t.Context(), `SELECT id::text FROM grants WHERE brand_id = 'fern-and-fell'`).Scan(&others); err != nil {
		t.Fatal(err)
	}
	const none = "019ad000-0000-7000-8000-00000000dead"
	a.call("GET", "harbor-hotel/grants", a.key, "") // notes that the key was used
	for _, call := range [][2]string{{"GET", ""}, {"POST", "/revoke"}, {"POST", "/scopes/orders:read/revoke"}} {
		var answers []string
		before := a.everything()
		for _, id := range []string{others, none, "no-id"} {
			status, _ := a.call(call[0], "harbor-hotel/grants/"+id+call[1], a.key, "")
			answers = append(answers, http.StatusText(status)+string(a.body))
		}
		if answers[0] != answers[1] || answers[1] != answers[2] {
			t.Errorf("%v: %q", call, answers)
		}
		if a.everything() != before {
			t.Errorf("%v wrote something", call)
		}
	}
	// A Brand that is not there, one whose key it is not, one that is gone.
	var answers []string
	a.Exec(t, `UPDATE brands SET state = 'closed' WHERE id = 'fern-and-fell'`)
	for _, brand := range []string{"no-such-brand", "fern-and-fell", "NO%20ID"} {
		status, _ := a.call("GET", brand+"/grants", a.key, "")
		answers = append(answers, http.StatusText(status)+string(a.body))
	}
	if answers[0] != answers[1] || answers[1] != answers[2] {
		t.Errorf("%q", answers)
	}
}
