package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
)

const pauseAt = lakePages + "pause"

// The kill switch: owners and security stop at once, without being asked for
// anything; starting again takes a touch. Every owner hears of both, once.
func TestTheKillSwitch(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	security := people["security"]
	security.open(pauseAt).must(http.StatusOK, "Pause <bdi>Café du Lac</bdi> now", "run for 15 minutes at most", "All owners are told")
	for _, role := range []string{"support", "viewer"} {
		if people[role].open(pauseAt).must(http.StatusOK).find("form", "action", pauseAt) != nil {
			t.Errorf("%s is offered the switch", role)
		}
		people[role].post(pauseAt, nil, pauseAt).must(http.StatusForbidden, refusedByRole)
	}
	people["stranger"].post(pauseAt, nil, pauseAt).must(http.StatusNotFound)
	people["stranger"].post(lakePages+"resume", nil, pauseAt).must(http.StatusNotFound)
	if s.Reload(t, brand).State != tenants.Active {
		t.Fatal("somebody without the right paused it")
	}
	s.drain(t)
	s.Clock.Advance(6 * time.Minute) // no touch is fresh, and none is asked for
	for range 2 {
		security.post(pauseAt, nil, pauseAt).mustGo(pauseAt)
	}
	if s.Reload(t, brand).State != tenants.Paused {
		t.Fatal("it works on")
	}
	if m := s.letter(t); m.To != "owner@example.com" || !strings.Contains(m.Subject, "Brand paused") || !strings.Contains(m.Text, "security") {
		t.Errorf("%s reads %s: %s", m.To, m.Subject, m.Text)
	}
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = 'brand.paused'`); n != 1 {
		t.Errorf("%d notices", n)
	}
	people["viewer"].open(pauseAt).must(http.StatusOK, "is paused")
	people["viewer"].open(lakePages).must(http.StatusOK, "is paused")
	if p := security.post(lakePages+"resume", nil, pauseAt); !strings.HasPrefix(p.location, "/console/touch") {
		t.Fatalf("resumed without a touch: %d to %s", p.status, p.location)
	}
	if s.Reload(t, brand).State != tenants.Paused {
		t.Fatal("it resumed")
	}
	security.touch()
	for range 2 {
		security.post(lakePages+"resume", nil, pauseAt).mustGo(pauseAt)
	}
	if s.Reload(t, brand).State != tenants.Active {
		t.Fatal("it stays paused")
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event IN ('brand.paused', 'brand.resumed') AND actor_id = $1`,
		s.person(t, "security@example.com").String()); n != 2 {
		t.Errorf("%d facts in the trail", n)
	}
}

// A Brand without a key is not opened by the switch, and a closed one says so.
func TestTheKillSwitchOpensNothing(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	brand := owner.found("lake")
	set := func(state tenants.State) {
		s.Exec(t, `UPDATE brands SET state = $1 WHERE id = 'lake'`, state)
		s.Brands.Forget(brand)
	}
	set(tenants.Pending)
	for _, to := range []string{pauseAt, lakePages + "resume"} {
		owner.post(to, nil, pauseAt).must(http.StatusConflict, "cannot be switched now")
	}
	set(tenants.Closed)
	owner.post(lakePages+"resume", nil, pauseAt).must(http.StatusConflict, "This Brand is closed")
	if s.Reload(t, brand).State != tenants.Closed {
		t.Error("it is open again")
	}
}

// The checklist leads to the pages, and shows what is done.
func TestTheChecklistLeadsOn(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	done := func() int {
		return strings.Count(owner.open(lakePages).must(http.StatusOK).body, `<li class="done">`)
	}
	p := owner.open(lakePages)
	for _, to := range []string{"settings", "permissions", "agents", "pause"} {
		if p.find("a", "href", lakePages+to) == nil {
			t.Errorf("no way to %s", to)
		}
	}
	before := done()
	owner.permit("boats:read").mustGo(permissionsAt + "?saved")
	if got := done(); got != before+1 {
		t.Errorf("%d of the list are done, want %d", got, before+1)
	}
}
