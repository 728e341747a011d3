package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// person makes somebody who may be a member.
func (a *admin) person(email string) uuid.UUID {
	a.t.Helper()
	id := uuid.New()
	a.Exec(a.t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, $2, $2, 'P', 'en', $3)`, id, email, a.Clock.Now())
	return id
}

func (a *admin) joins(email string, role tenants.Role) uuid.UUID {
	a.t.Helper()
	id := a.person(email)
	a.Exec(a.t, `INSERT INTO memberships (brand_id, person_id, role, since, confirmed_at) VALUES ($1, $2, $3, $4, $4)`, a.Hotel.ID, id, role, a.Clock.Now())
	return id
}

// Whatever lets somebody in or puts them out waits for an owner (B98); who it is
// about stands nowhere in the trail.
func TestMembersChangeByAnOwnersWordOnly(t *testing.T) {
	a := newAdmin(t)
	a.joins("olga@hotel.example", tenants.Owner)
	viewer := a.joins("vera@hotel.example", tenants.Viewer)
	got := a.must("GET", "members", "", http.StatusOK)
	if all := got["members"].([]any); len(all) != 2 || !strings.Contains(fmt.Sprint(all), "olga@hotel.example") || !strings.Contains(fmt.Sprint(all), "owner") {
		t.Errorf("%v", got)
	}
	for _, try := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "members", `{"email":"sami@hotel.example","role":"support"}`, 202},
		{"POST", "members", `{"email":"vera@hotel.example","role":"support"}`, 409},
		{"POST", "members", `{"email":"VERA@hotel.example","role":"support"}`, 409},
		{"POST", "members", `{"email":"nobody","role":"support"}`, 422},
		{"POST", "members", `{"email":"sami@hotel.example","role":"king"}`, 422},
		{"PUT", "members/" + viewer.String() + "/role", `{"role":"security"}`, 202},
		{"PUT", "members/" + viewer.String() + "/role", `{"role":""}`, 422},
		{"PUT", "members/" + uuid.NewString() + "/role", `{"role":"viewer"}`, 404},
		{"DELETE", "members/" + viewer.String(), "", 202},
		{"DELETE", "members/x", "", 404},
		{"DELETE", "invitations/" + uuid.NewString(), "", 404},
	} {
		a.must(try.method, try.path, try.body, try.status)
	}
	if n := a.Count(t, `SELECT count(*) FROM memberships WHERE brand_id = 'harbor-hotel' AND role = 'viewer'`); n != 1 {
		t.Errorf("%d viewers: somebody did not wait", n)
	}
	if n := a.Count(t, `SELECT count(*) FROM invitations`); n != 0 {
		t.Errorf("%d invitations: somebody did not wait", n)
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE detail::text LIKE '%@hotel.example%'`); n != 0 {
		t.Errorf("%d facts name somebody", n)
	}
	// No operator applies them: there is nobody to have invited.
	waiting, err := a.asks.Waiting(t.Context(), a.Hotel.ID)
	if err != nil || len(waiting) != 3 {
		t.Fatalf("%d wait, %v", len(waiting), err)
	}
	for _, c := range waiting {
		if _, err := a.asks.Apply(t.Context(), a.owner(), a.Hotel.ID, c.ID, "operator"); err == nil || !strings.Contains(err.Error(), tenants.ErrOwnerDecides.Error()) {
			t.Errorf("%s: %v", c.Kind, err)
		}
	}
}

func TestUsageIsCountedPerDay(t *testing.T) {
	a := newAdmin(t)
	a.held(a.Hotel, authoritytest.Alex.Agent, "guest-1", "bookings:read")
	got := a.must("GET", "usage?days=2", "", http.StatusOK)
	days := got["days"].([]any)
	if len(days) != 2 || days[1].(map[string]any)["approved"] != 1.0 || days[0].(map[string]any)["approved"] != 0.0 {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"0", "-1", "367", "x"} {
		a.must("GET", "usage?days="+bad, "", http.StatusUnprocessableEntity)
	}
}
