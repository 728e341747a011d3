package api_test

import (
	"net/http"
	"testing"

	"countersign.dev/tenants"
)

// A Brand's server names the Brand's own Provider; into another's the Brand comes only
// where somebody owns both, and a guess is answered as if there were none.
func TestProvidersThroughTheAPI(t *testing.T) {
	a := newAdmin(t)
	a.must(http.MethodPut, "providers/own", `{"name":""}`, http.StatusUnprocessableEntity)
	// What agents name, and never changes, is chosen by an owner on the dashboard.
	a.must(http.MethodPut, "providers/own", `{"name":"Harbor Hotels","audience":"https://hotel.example"}`, http.StatusUnprocessableEntity)
	a.joins("olga@hotel.example", tenants.Owner)
	defer func() {
		a.must(http.MethodPut, "providers/own", `{"name":"Harbor"}`, http.StatusOK)
		for _, event := range []string{"provider.made", "provider.named"} {
			if n := a.Count(t, `SELECT count(*) FROM notices WHERE kind = $1`, event); n != 1 {
				t.Errorf("%d letters of %s", n, event)
			}
		}
	}()
	made := a.must(http.MethodPut, "providers/own", `{"name":"Harbor Hotels"}`, http.StatusOK)
	all := made["providers"].([]any)
	if len(all) != 2 {
		t.Fatalf("%v", made)
	}
	shared, own := all[0].(map[string]any), all[1].(map[string]any)
	if shared["shared"] != true || shared["brands"] != nil || own["name"] != "Harbor Hotels" || own["own"] != true || own["present"] != false {
		t.Errorf("%v", made)
	}
	a.Exec(t, `INSERT INTO providers (id, name, audience, founder, created_at) VALUES ('fern-and-fell', 'Fell', 'urn:fell', 'fern-and-fell', now())`)
	var said []any
	for _, provider := range []string{"fern-and-fell", "nowhere"} {
		said = append(said, a.must(http.MethodPut, "interface", `{"mode":"hosted","provider":"`+provider+`"}`, http.StatusUnprocessableEntity)["errors"].([]any)[0].(map[string]any)["say"])
	}
	if said[0] != said[1] {
		t.Errorf("a guess is told from one that is not there: %q", said)
	}
}
