package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

func (a *admin) must(method, path, body string, want int) map[string]any {
	a.t.Helper()
	status, got := a.call(method, "harbor-hotel/"+path, a.key, body)
	if status != want {
		a.t.Fatalf("%s %s: %d, want %d: %v", method, path, status, want, got)
	}
	return got
}

func (a *admin) owner() tenants.Editor {
	return a.Authority(nil).Editor(authority.By{Actor: "admin", ID: "owner-1", Channel: "console"})
}

func (a *admin) apply(change map[string]any) (string, error) {
	a.t.Helper()
	return a.asks.Apply(a.t.Context(), a.owner(), a.Hotel.ID, uuid.MustParse(change["id"].(string)), "owner-1")
}

// A patch changes what it names, tells all mistakes, and changes nothing by
// half.
func TestSettingsThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	got := a.must("PATCH", "settings", `{"name":"Harbour","grant_days":[30,7]}`, 200)
	if got["name"] != "Harbour" || got["colour"] != "#1f3a5f" || got["proven"] != true {
		t.Errorf("%v", got)
	}
	got = a.must("PATCH", "settings", `{"name":"","support_url":"http://x.example"}`, 422)
	var fields []string
	for _, e := range got["errors"].([]any) {
		m := e.(map[string]any)
		if m["say"] == "" || m["mend"] == "" {
			t.Errorf("%v", m)
		}
		fields = append(fields, m["field"].(string))
	}
	if !slices.Equal(fields, []string{"name", "support_url"}) {
		t.Errorf("errors for %v", fields)
	}
	if got := a.must("PATCH", "settings", `{"interface_url":"https://evil.example"}`, 400); !strings.Contains(got["detail"].(string), "interface_url") {
		t.Errorf("%v", got)
	}
	a.must("PATCH", "settings", `{"token_seconds":"600"}`, 400)
	// To be open to unregistered agents is an owner's to decide, by itself.
	a.must("PATCH", "settings", `{"agents":"open","name":"Harbour"}`, 422)
	if asked := a.must("PATCH", "settings", `{"agents":"open"}`, 202); asked["kind"] != tenants.ChangeOpen || a.must("GET", "settings", "", 200)["agents"] != "registered" {
		t.Errorf("%v", asked)
	} else if _, err := a.apply(asked); err != nil {
		t.Fatal(err)
	}
	if got := a.must("PATCH", "settings", `{"agents":"open"}`, 200); got["agents"] != "open" { // as it is
		t.Errorf("%v", got)
	}
	a.must("PATCH", "settings", `{"agents":"registered"}`, 200)
	a.must("PATCH", "settings", `{"agents":"listed"}`, 200)
	if asked := a.must("PATCH", "settings", `{"Agents":"registered"}`, 202); asked["kind"] != tenants.ChangeRule { // capitals are no way around
		t.Errorf("%v", asked)
	} else if _, err := a.apply(asked); err != nil {
		t.Fatal(err)
	}
	if got := a.must("GET", "settings", "", 200); got["name"] != "Harbour" {
		t.Errorf("%v", got["name"])
	}
	if got := a.must("POST", "pause", "", 200); got["state"] != "paused" {
		t.Errorf("%v", got)
	}
	resume := a.must("POST", "resume", "", 202)
	if got := a.must("GET", "settings", "", 200); got["state"] != "paused" {
		t.Errorf("a key resumed: %v", got["state"])
	}
	if _, err := a.apply(resume); err != nil || a.Reload(t, a.Hotel.ID).State != tenants.Active {
		t.Errorf("%v", err)
	}
	a.must("POST", "resume", "", 409)
	var who string
	if err := a.Owner.QueryRow(t.Context(), `SELECT DISTINCT actor_id FROM audit_events WHERE channel = 'api'`).Scan(&who); err != nil || who != tenants.KeyID(a.key) {
		t.Errorf("noted for %q, %v", who, err)
	}
}

// Which keys sign, and when they change by themselves, no key changes: an owner does,
// who is asked once.
func TestAnotherRuleOfSigningKeysIsAskedFor(t *testing.T) {
	a := newAdmin(t)
	is := func(alg string, days int) {
		t.Helper()
		if got := a.must("GET", "settings", "", 200); got["signing_alg"] != alg || got["rotation_days"] != float64(days) {
			t.Errorf("%v, every %v days; want %s, %d", got["signing_alg"], got["rotation_days"], alg, days)
		}
	}
	for _, body := range []string{
		`{"signing_alg":"RS256","name":"Harbour"}`, `{"rotation_days":1,"agents":"listed"}`, `{"rotation_days":366,"idle_days":20}`,
		`{"signing_alg":"HS256"}`, `{"rotation_days":0}`,
	} {
		a.must("PATCH", "settings", body, 422)
	}
	a.must("PATCH", "settings", `{"signing_alg":"RS256","nmae":"x"}`, 400)
	asked := a.must("PATCH", "settings", `{"signing_alg":"RS256","rotation_days":1}`, 202)
	for _, same := range []string{`{"signing_alg":"RS256","rotation_days":1}`, `{"Signing_Alg":"RS256","ROTATION_DAYS":1,"name":"Harbor Hotel"}`} {
		if again := a.must("PATCH", "settings", same, 202); asked["kind"] != tenants.ChangeKeyRule || again["id"] != asked["id"] {
			t.Errorf("%s: %v, and before %v", same, again, asked)
		}
	}
	is("ES256", 90)
	if got := a.must("PATCH", "settings", `{"signing_alg":"ES256","rotation_days":90,"name":"Harbour"}`, 200); got["name"] != "Harbour" { // as they are
		t.Errorf("%v", got)
	}
	if _, err := a.apply(asked); err != nil {
		t.Fatal(err)
	}
	is("RS256", 1)
	a.must("PATCH", "settings", `{"rotation_days":366}`, 202) // longer is no less an owner's
}

func TestScopesLogoAndDomainsThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	a.must("PUT", "scopes/"+url.PathEscape("rooms/read"), `{"description":"See rooms","effect":"sees","impact":"low"}`, 200)
	a.must("PUT", "scopes/x", `{"description":"","effect":"sees","impact":"low"}`, 422)
	a.must("POST", "scopes/bookings:read/retire", "", 200)
	a.must("POST", "scopes/orders:read/retire", "", 404)
	got := a.must("PUT", "scope-order", `{"order":["rooms/read","account:read","extras:order","bookings:change"]}`, 200)
	if s := got["scopes"].([]any); len(s) != 5 || s[0].(map[string]any)["id"] != "rooms/read" || s[4].(map[string]any)["retired_at"] == nil {
		t.Errorf("%v", got)
	}
	a.must("POST", "scopes/orders:read/restore", "", 404)
	a.must("POST", "scopes/extras:order/restore", "", 409)
	restore := a.must("POST", "scopes/bookings:read/restore", "", 202)
	if len(a.Reload(t, a.Hotel.ID).Scopes) != 4 {
		t.Error("a key restored a scope")
	}
	if _, err := a.apply(restore); err != nil || len(a.Reload(t, a.Hotel.ID).Scopes) != 5 {
		t.Errorf("%v", err)
	}
	const charge = `{"scope":"extras:order","words":"Up to {amount}","texts":{"de":"Bis {amount}"},
		"schema":{"type":"object","additionalProperties":false,"required":["amount"],"properties":{"amount":{"type":"number"}}}}`
	a.must("PUT", "detail-types/stay_charge", strings.Replace(charge, "{amount}", "", 1), 422)
	a.must("PUT", "detail-types/stay_charge", strings.Replace(charge, "extras:order", "nothing:here", 1), 422)
	uri := "detail-types/" + url.PathEscape("https://hotel.example/charge")
	if got := a.must("PUT", uri, charge, 200)["detail_types"].([]any); len(got) != 1 || got[0].(map[string]any)["type"] != "https://hotel.example/charge" {
		t.Errorf("%v", got)
	}
	a.must("DELETE", uri, "", 200)
	a.must("DELETE", uri, "", 404)

	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	if got := a.must("PUT", "logo", picture.String(), 200); got["logo"] == "" {
		t.Errorf("%v", got)
	}
	a.must("PUT", "logo", "<svg/>", 422)
	a.must("PUT", "logo", strings.Repeat("x", tenants.LargestLogo+10), 422)
	a.must("DELETE", "logo", "", 200)

	d := a.domain("hotel.example")
	if got := a.must("POST", "domains/hotel.example/check", "", 200); got["state"] != "waiting" || got["trouble"] == "" {
		t.Errorf("%v", got)
	}
	a.world.records[d["record"].(string)] = []string{d["token"].(string)}
	if got := a.must("POST", "domains/hotel.example/check", "", 200); got["state"] != "proven" {
		t.Errorf("%v", got)
	}
	a.must("POST", "domains", `{"host":"hotel.example"}`, 409)
	a.must("POST", "domains", `{"host":"no name"}`, 422)
	a.must("DELETE", "domains/hotel.example", "", 409)
	a.must("DELETE", "domains/other.example", "", 404)
	a.domain("other.example")
	gone := a.must("DELETE", "domains/other.example", "", 202)
	if n := len(a.must("GET", "domains", "", 200)["domains"].([]any)); n != 2 {
		t.Errorf("a key took a domain away: %d are left", n)
	}
	if _, err := a.apply(gone); err != nil {
		t.Fatal(err)
	}
	if n := len(a.must("GET", "domains", "", 200)["domains"].([]any)); n != 1 {
		t.Errorf("%d domains", n)
	}
}

// domain is one that a key has asked for, and an owner has allowed.
func (a *admin) domain(host string) map[string]any {
	a.t.Helper()
	ask := a.must("POST", "domains", `{"host":"`+host+`"}`, 202)
	if n := a.Count(a.t, `SELECT count(*) FROM brand_domains WHERE host = $1`, host); n != 0 {
		a.t.Errorf("a key added %s", host)
	}
	if _, err := a.apply(ask); err != nil {
		a.t.Fatal(err)
	}
	for _, d := range a.must("GET", "domains", "", 200)["domains"].([]any) {
		if d := d.(map[string]any); d["host"] == host {
			return d
		}
	}
	a.t.Fatalf("%s is not there", host)
	return nil
}

// What moves logins, tokens or keys waits for an owner: the API key alone cannot
// do it, and what the owner said yes to is what happens.
func TestDangerousChangesWaitForAnOwner(t *testing.T) {
	a := newAdmin(t)
	a.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
		VALUES ('harbor-hotel', 'hotel.example', 'x', $1, $1, 'dns')`, a.Clock.Now())

	a.must("PUT", "interface", `{"mode":"fronted","interface_url":"http://hotel.example"}`, 422)
	move := a.must("PUT", "interface", `{"mode":"fronted","interface_url":"https://hotel.example"}`, 202)
	if a.Reload(t, a.Hotel.ID).Mode != tenants.Hosted || !strings.Contains(must(json.Marshal(move["diff"])), `"ends_all_grants":true`) {
		t.Errorf("moved at once, or %v", move)
	}
	if _, err := a.apply(move); err != nil {
		t.Fatal(err)
	}
	if b := a.Reload(t, a.Hotel.ID); b.InterfaceURL != "https://hotel.example" {
		t.Errorf("%+v", b)
	}
	if _, err := a.apply(move); !errors.Is(err, tenants.ErrChangeOver) {
		t.Errorf("applied twice: %v", err)
	}

	key := a.must("POST", "api-keys", `{"name":"checkout","rights":["introspect"]}`, 202)
	a.must("POST", "api-keys", `{"name":"","rights":["root"]}`, 422)
	if n := len(a.must("GET", "api-keys", "", 200)["api_keys"].([]any)); n != 1 {
		t.Errorf("%d keys", n)
	}
	fresh, err := a.apply(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.NewCredentials(a.DB, a.Clock.Now).Check(t.Context(), a.Hotel.ID, fresh, tenants.RightIntrospect); err != nil {
		t.Error(err)
	}
	rotated, err := a.apply(a.must("POST", "api-keys/"+tenants.KeyID(fresh)+"/rotate", "", 202))
	if err != nil {
		t.Fatal(err)
	}
	opens := func(k string) bool {
		_, err := tenants.NewCredentials(a.DB, a.Clock.Now).Check(t.Context(), a.Hotel.ID, k, tenants.RightIntrospect)
		return err == nil
	}
	if !opens(fresh) || !opens(rotated) {
		t.Error("one of the two does not open in between")
	}
	a.Clock.Advance(25 * time.Hour)
	if opens(fresh) || !opens(rotated) {
		t.Error("the former opens for ever, or the new one does not")
	}
	a.must("DELETE", "api-keys/"+tenants.KeyID(rotated), "", 200)
	if opens(rotated) {
		t.Error("a revoked key opens")
	}
	a.must("DELETE", "api-keys/nothere", "", 404)
}

func must(raw []byte, err error) string {
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// An owner who says yes to one connection never lets people in through another.
func TestAnotherCandidateIsNotSlidUnder(t *testing.T) {
	a := newAdmin(t)
	save := func(issuer string) string {
		t.Helper()
		got := a.must("PUT", "connections/candidate", `{"issuer":"`+issuer+`","client_id":"us","client_secret":"hush-hush"}`, 200)
		if strings.Contains(must(json.Marshal(got)), "hush") {
			t.Fatal("the secret comes back")
		}
		for _, c := range got["connections"].([]any) {
			if m := c.(map[string]any); m["live"] == false {
				return m["id"].(string)
			}
		}
		t.Fatal("no candidate")
		return ""
	}
	id := save("https://login.example")
	if got := a.must("POST", "connections/"+id+"/check", "", 200); len(got["lines"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
	ask := a.must("POST", "connections/"+id+"/live", "", 202)
	save("https://evil.example")
	if _, err := a.apply(ask); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("applied to another: %v", err)
	}
	// It waits on, and can be taken back.
	if got := a.must("GET", "changes/"+ask["id"].(string), "", 200); got["state"] != "pending" {
		t.Errorf("%v", got)
	}
	a.must("DELETE", "changes/"+ask["id"].(string), "", 200)
	a.must("DELETE", "changes/"+ask["id"].(string), "", 409)
	save("https://login.example")
	if _, err := a.apply(a.must("POST", "connections/"+id+"/live", "", 202)); err != nil {
		t.Fatal(err)
	}
	if l, err := tenants.Login(t.Context(), a.DB, a.Master, a.Hotel.ID); err != nil || l.Issuer != "https://login.example" {
		t.Errorf("%s, %v", l.Issuer, err)
	}
	a.must("DELETE", "connections/"+id, "", 409)
	for _, path := range []string{"connections/" + uuid.NewString() + "/live", "connections/x/live", "connections/" + uuid.NewString() + "/check"} {
		a.must("POST", path, "", 404)
	}
}

// A change that waits is the Brand's own, lasts a week, and stays what it was:
// neither its text nor its meaning can be exchanged in the database.
func TestPendingChangesStayWhatTheyAre(t *testing.T) {
	a := newAdmin(t)
	ask := func() map[string]any {
		return a.must("POST", "api-keys", `{"name":"checkout","rights":["introspect"]}`, 202)
	}
	first := ask()
	if _, err := a.asks.Apply(t.Context(), a.owner(), a.Shop.ID, uuid.MustParse(first["id"].(string)), "x"); !errors.Is(err, tenants.ErrChangeOver) {
		t.Errorf("the shop applies it: %v", err)
	}
	if status, _ := a.call("GET", "fern-and-fell/changes/"+first["id"].(string), a.newKey(a.Shop, tenants.RightAdmin), ""); status != 404 {
		t.Errorf("the shop reads it: %d", status)
	}
	a.Exec(t, `UPDATE pending_changes SET diff = '{"after":{"name":"harmless"}}'`)
	if _, err := a.apply(first); err == nil {
		t.Error("applied under another text")
	}
	second := ask()
	a.Exec(t, `UPDATE pending_changes d SET payload_sealed = s.payload_sealed FROM pending_changes s WHERE s.id <> d.id AND d.id = $1`, second["id"])
	if _, err := a.apply(second); err == nil {
		t.Error("applied with another's meaning")
	}
	third := ask()
	a.Clock.Advance(8 * 24 * time.Hour)
	if _, err := a.apply(third); !errors.Is(err, tenants.ErrChangeOver) {
		t.Errorf("applied after its time: %v", err)
	}
	if got := a.must("GET", "changes?limit=2", "", 200); got["changes"].([]any)[0].(map[string]any)["state"] != "expired" || got["next"] == nil {
		t.Errorf("%v", got)
	} else if rest := a.must("GET", "changes?limit=2&cursor="+got["next"].(string), "", 200); len(rest["changes"].([]any)) != 1 || rest["next"] != nil {
		t.Errorf("second page: %v", rest)
	}
	for _, bad := range []string{"limit=0", "limit=1000", "limit=x", "cursor=x"} {
		a.must("GET", "changes?"+bad, "", 400)
	}
}

// Ten owners who press at once make one key.
func TestPendingChangeIsAppliedOnce(t *testing.T) {
	a := newAdmin(t)
	ask := a.must("POST", "api-keys", `{"name":"checkout","rights":["introspect"]}`, 202)
	done := make(chan error)
	for range 10 {
		go func() {
			_, err := a.asks.Apply(t.Context(), a.owner(), a.Hotel.ID, uuid.MustParse(ask["id"].(string)), "owner-1")
			done <- err
		}()
	}
	applied := 0
	for range 10 {
		if err := <-done; err == nil {
			applied++
		} else if !errors.Is(err, tenants.ErrChangeOver) {
			t.Error(err)
		}
	}
	if n := len(a.must("GET", "api-keys", "", 200)["api_keys"].([]any)); applied != 1 || n != 2 {
		t.Errorf("applied %d times, %d keys", applied, n)
	}
}

// Whoever lost an answer asks again and gets it; nothing is done twice, and a key
// is one call's.
func TestIdempotencyKeyDoesACallOnce(t *testing.T) {
	a := newAdmin(t)
	send := func(key, path, body string) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", a.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.key}, "Idempotency-Key": {key}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String(), resp.Header
	}
	const path, body = "harbor-hotel/api-keys", `{"name":"checkout","rights":["introspect"]}`
	status, first, _ := send("k1", path, body)
	again, second, header := send("k1", path, body)
	if status != 202 || again != 202 || first != second || header.Get("Idempotent-Replayed") != "true" || header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %d %v\n%s\n%s", status, again, header, first, second)
	}
	if status, _, _ := send("k1", path, strings.Replace(body, "checkout", "other", 1)); status != 422 {
		t.Errorf("the key for another call: %d", status)
	}
	if status, _, _ := send("k2", path, strings.Replace(body, "checkout", "other", 1)); status != 202 {
		t.Errorf("another key: %d", status)
	}
	if n := a.Count(t, `SELECT count(*) FROM pending_changes`); n != 2 {
		t.Errorf("%d changes", n)
	}
	// A refusal is an answer too; and it is a problem document.
	if status, b, h := send("k3", path, `{"name":""}`); status != 422 || h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", status, b)
	} else if again, c, h := send("k3", path, `{"name":""}`); again != 422 || b != c || h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", again, c)
	}
	if status, _, _ := send(strings.Repeat("k", 201), path, body); status != 400 {
		t.Errorf("an endless key: %d", status)
	}
	done := make(chan int)
	for range 8 {
		go func() {
			status, _, _ := send("k4", path, strings.Replace(body, "checkout", "third", 1))
			done <- status
		}()
	}
	for range 8 {
		if status := <-done; status != 202 && status != 409 {
			t.Errorf("in parallel: %d", status)
		}
	}
	if n := a.Count(t, `SELECT count(*) FROM pending_changes`); n != 3 {
		t.Errorf("%d changes after eight at once", n)
	}
	// What only holds for now is no answer for a day: too often, and not as things stand.
	for range 120 {
		send("", "harbor-hotel/interface/check", "")
	}
	if status, _, h := send("k5", "harbor-hotel/interface/check", ""); status != 429 || h.Get("Retry-After") == "" {
		t.Errorf("one check too many: %d", status)
	}
	a.Clock.Advance(time.Minute)
	if status, _, h := send("k5", "harbor-hotel/interface/check", ""); status != 200 || h.Get("Idempotent-Replayed") != "" {
		t.Errorf("the same call a minute later: %d %v", status, h)
	}
	if status, _, h := send("k5", "harbor-hotel/interface/check", ""); status != 200 || h.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same call once it was done: %d %v", status, h)
	}
	const resume = "harbor-hotel/resume"
	a.Exec(t, `UPDATE brands SET state = 'active' WHERE id = 'harbor-hotel'`)
	if status, b, _ := send("k6", resume, ""); status != 409 {
		t.Errorf("%d %s", status, b)
	}
	a.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`)
	if status, b, _ := send("k6", resume, ""); status != 202 {
		t.Errorf("the same call as things stand now: %d %s", status, b)
	}
	a.Clock.Advance(25 * time.Hour)
	if err := tenants.PurgeCalls(t.Context(), a.DB, a.Hotel.ID, a.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	if n := a.Count(t, `SELECT count(*) FROM api_replies`); n != 0 {
		t.Errorf("%d answers kept", n)
	}
}
