package api_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// A Brand begins and ends by an owner's word alone: a key asks, and takes back.
func TestBrandsBeginAndEndByAnOwnersWord(t *testing.T) {
	a := newAdmin(t)
	for body, want := range map[string]int{
		`{"id":"harbor-beach","name":"Harbor Beach","organisation":"Harbor Ltd"}`:  202,
		`{"id":"fern-and-fell","name":"Harbor Beach","organisation":"Harbor Ltd"}`: 409,
		`{"id":"Not An Id","name":"x","organisation":"x"}`:                         422,
		`{"id":"x","name":"","organisation":""}`:                                   422,
		`{"id":"x","owner":"me@example.com"}`:                                      400,
	} {
		a.must("POST", "brands", body, want)
	}
	if n := a.Count(t, `SELECT count(*) FROM brands`); n != 2 {
		t.Errorf("%d Brands: one did not wait", n)
	}
	a.must("POST", "close", `{}`, 422)
	a.must("POST", "close", `{"id":"fern-and-fell"}`, 422)
	if status, _ := a.call("POST", "harbor-hotel/close", a.newKey(a.Shop, tenants.RightAdmin), `{"id":"harbor-hotel"}`); status != 401 {
		t.Errorf("another Brand's key: %d", status)
	}
	ask := a.must("POST", "close", `{"id":"harbor-hotel"}`, 202)
	if a.Reload(t, a.Hotel.ID).State != tenants.Active {
		t.Fatal("a key closed the Brand")
	}
	if again := a.must("POST", "close", `{"id":"harbor-hotel"}`, 202); again["id"] != ask["id"] {
		t.Error("asked twice it waits twice")
	}
	if _, err := a.apply(ask); err == nil || a.Reload(t, a.Hotel.ID).State != tenants.Active {
		t.Errorf("closed in nobody's name: %v", err)
	}
	a.must("DELETE", "changes/"+ask["id"].(string), "", 200)
	a.must("DELETE", "changes/"+ask["id"].(string), "", 409)
}

// Who comes back comes back on an owner's word; anybody says no at once, and owners
// hear of it.
func TestRecoveriesThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	a.joins("olga@hotel.example", tenants.Owner)
	otto := a.joins("otto@hotel.example", tenants.Owner)
	path := func(what string) string { return "members/" + otto.String() + "/" + what }
	a.must("POST", path("confirm"), "", 409) // it does not rest
	a.must("POST", "members/"+uuid.NewString()+"/confirm", "", 404)
	a.must("POST", "members/x/vouch", "", 404)
	vouch := a.must("POST", path("vouch"), "", 202)
	a.Exec(t, `UPDATE people SET restored_at = $2 WHERE id = $1`, otto, a.Clock.Now().Add(1e9))
	a.must("POST", path("confirm"), "", 202)
	if _, err := a.apply(vouch); err == nil || !strings.Contains(err.Error(), tenants.ErrOwnerDecides.Error()) {
		t.Errorf("vouched in nobody's name: %v", err)
	}
	if n := a.Count(t, `SELECT count(*) FROM one_time_links`); n != 0 {
		t.Error("a link was made")
	}

	recovery := uuid.New()
	a.Exec(t, `INSERT INTO recoveries (brand_id, id, person_id, asked_at, due_at, token) VALUES ('harbor-hotel', $1, $2, $3, $4, 'countersign-recovery=hush')`,
		recovery, otto, a.Clock.Now(), a.Clock.Now().Add(tenants.RecoveryWait))
	got := a.must("GET", "members", "", 200)["recoveries"].([]any)
	if len(got) != 1 || got[0].(map[string]any)["member"] != otto.String() || strings.Contains(string(a.body), "hush") {
		t.Errorf("%s", a.body)
	}
	if status, _ := a.call("DELETE", "fern-and-fell/recoveries/"+recovery.String(), a.newKey(a.Shop, tenants.RightAdmin), ""); status != 404 {
		t.Errorf("another Brand says no: %d", status)
	}
	a.must("DELETE", "recoveries/x", "", 404)
	a.must("DELETE", "recoveries/"+recovery.String(), "", 200)
	a.must("DELETE", "recoveries/"+recovery.String(), "", 404)
	if n := a.Count(t, `SELECT count(*) FROM recoveries WHERE cancelled_at IS NOT NULL`); n != 1 {
		t.Error("it goes on")
	}
	if n := a.Count(t, `SELECT count(*) FROM notices WHERE kind = 'recovery.cancelled'`); n != 2 {
		t.Errorf("%d of 2 owners hear of it", n)
	}
}

// A test goes to the one endpoint, and to no other Brand's.
func TestWebhookTestThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	w, _, err := tenants.CreateWebhook(t.Context(), a.owner(), a.Master, tenants.Site{}, a.Hotel.ID, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
	if err != nil {
		t.Fatal(err)
	}
	a.must("POST", "webhooks/"+w.ID+"/test", "", http.StatusAccepted)
	a.must("POST", "webhooks/"+w.ID+"/test", "{}", http.StatusBadRequest)
	a.must("POST", "webhooks/aaaaaaaaaaaa/test", "", http.StatusNotFound)
	if status, _ := a.call("POST", "fern-and-fell/webhooks/"+w.ID+"/test", a.newKey(a.Shop, tenants.RightAdmin), ""); status != 404 {
		t.Errorf("another Brand's: %d", status)
	}
	a.must("POST", "webhooks/"+w.ID+"/disable", "", http.StatusOK)
	a.must("POST", "webhooks/"+w.ID+"/test", "", http.StatusConflict)
	on := a.must("POST", "webhooks/"+w.ID+"/enable", "", http.StatusAccepted)
	a.must("POST", "webhooks/"+w.ID+"/test", "", http.StatusConflict)
	if _, err := a.apply(on); err != nil {
		t.Fatal(err)
	}
	a.must("POST", "webhooks/"+w.ID+"/test", "", http.StatusAccepted)
	a.must("POST", "webhooks/"+w.ID+"/enable", "", http.StatusConflict)
	if got := a.must("GET", "webhooks/"+w.ID+"/deliveries", "", 200)["deliveries"].([]any); len(got) != 2 {
		t.Errorf("%d tests were sent", len(got))
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'webhook.tested' AND actor = 'admin' AND channel = 'api'`); n != 2 {
		t.Errorf("%d tests stand in the trail", n)
	}
}

// What a key does at once of which owners hear on the dashboard, they hear of here.
func TestOwnersHearOfWhatAKeyDoesAtOnce(t *testing.T) {
	a := newAdmin(t)
	a.joins("olga@hotel.example", tenants.Owner)
	other := tenants.KeyID(a.newKey(a.Hotel, tenants.RightEvents))
	a.must("POST", "pause", "", 200)
	a.must("POST", "pause", "", 200) // twice is once
	a.must("POST", "scopes/bookings:read/retire", "", 200)
	a.must("DELETE", "api-keys/"+other, "", 200)
	a.must("PATCH", "settings", `{"name":"Harbour"}`, 200) // no owner hears of that
	a.must("PATCH", "settings", `{"agents":"listed"}`, 200)
	if status, _ := a.call("GET", "harbor-hotel/export", a.key, ""); status != 200 {
		t.Errorf("export: %d", status)
	}
	for _, event := range []string{"brand.paused", "scope.retired", "apikey.revoked", "brand.exported", "brand.settings"} {
		if n := a.Count(t, `SELECT count(*) FROM notices WHERE kind = $1 AND detail->>'asked_by' = $2`, event, tenants.KeyID(a.key)); n != 1 {
			t.Errorf("%d letters of %s", n, event)
		}
	}
	if n := a.Count(t, `SELECT count(*) FROM notices`); n != 5 {
		t.Errorf("%d letters in all", n)
	}
}

// A test login is begun and asked for by the Brand's own key alone; one through the
// Brand's own page is none.
func TestTestLoginsThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	candidate := func(body string) string {
		t.Helper()
		for _, c := range a.must("PUT", "connections/candidate", body, 200)["connections"].([]any) {
			if m := c.(map[string]any); m["live"] == false {
				return m["id"].(string)
			}
		}
		t.Fatal("no candidate")
		return ""
	}
	id := candidate(`{"issuer":"https://login.example","client_id":"us","client_secret":"s"}`)
	got := a.must("POST", "connections/"+id+"/tries", "", 200)
	if got["state"] != "waiting" || !strings.HasPrefix(got["url"].(string), "https://login.example/authorize?state=try.api.") {
		t.Errorf("%v", got)
	}
	try := "tries/" + got["id"].(string)
	if got := a.must("GET", try, "", 200); got["state"] != "waiting" || got["url"] != nil {
		t.Errorf("%v", got)
	}
	for path, key := range map[string]string{"harbor-hotel/" + try: a.newKey(a.Hotel, tenants.RightIntrospect), "fern-and-fell/" + try: a.newKey(a.Shop, tenants.RightAdmin)} {
		if status, _ := a.call("GET", path, key, ""); status != 403 && status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	a.must("POST", "connections/x/tries", "", 404)
	a.must("POST", "connections/"+uuid.NewString()+"/tries", "", 404)
	a.must("GET", "tries/x", "", 404)
	a.Clock.Advance(tenants.TrialLife)
	if got := a.must("GET", try, "", 200); got["state"] != "over" {
		t.Errorf("%v", got)
	}
	id = candidate(`{"kind":"assertion","issuer":"https://hotel.example","jwks_uri":"https://hotel.example/jwks.json","login_url":"https://hotel.example/in"}`)
	a.must("POST", "connections/"+id+"/tries", "", 409)
}
