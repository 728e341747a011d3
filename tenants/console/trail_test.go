package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants/console"
	"github.com/google/uuid"
)

// R82: the trail is read in words, found by what, who and when, and taken along so
// that it can be verified without us.
func TestTheTrailIsReadAndProven(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	people := staff(t, s)
	security := people["security"]
	paid := s.allow(t, a, s.Hotel, authoritytest.Alex, "guest-7", "bookings:read")
	s.allow(t, a, s.Shop, authoritytest.Alex, "guest-of-the-shop", "orders:read")
	me := s.person(t, "security@example.com")
	if _, err := a.End(t.Context(), s.Hotel.ID, authority.ByMember(me.String()), authority.Which{Grant: paid.GrantID}); err != nil {
		t.Fatal(err)
	}
	at := desk + "trail"
	p := security.open(at).must(http.StatusOK, "Agent allowed", "May: <bdi>See your bookings</bdi>", "<bdi>Harbor Hotel</bdi> ended it", "<bdi>security</bdi>")
	if strings.Contains(p.body, "guest-of-the-shop") {
		t.Error("another Brand's trail is shown")
	}
	head, err := a.TrailHead(t.Context(), s.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	p.must(http.StatusOK, head.String(), "countersign audit verify --brand harbor-hotel --expect "+head.String())

	for query, want := range map[string]int{
		"event=grant.revoked": 1, "event=grant.revoke": 0, "actor=guest-7": 2, "actor=" + me.String(): 1,
		"grant=" + paid.GrantID.String(): 4, "grant=" + uuid.NewString(): 0, "from=2026-11-30": 4, "from=2026-12-01": 0,
		"until=2026-11-30": 4, "until=2026-11-29": 0, "event=request.redeemed&actor=guest-7": 0,
		"before=4": 3, "before=4&event=grant.revoked": 0,
	} {
		p := security.open(at + "?" + query).must(http.StatusOK)
		if n := strings.Count(p.body, "Word for word"); n != want {
			t.Errorf("%s: %d events, want %d", query, n, want)
		}
	}
	security.open(at+"?from=yesterday").must(http.StatusUnprocessableEntity, "Enter a day such as 2026-11-30", `value="yesterday"`)
	security.open(at+"?grant=7").must(http.StatusUnprocessableEntity, "Enter the whole id")
	for _, query := range []string{"before=x", "before=-1", "actor=%00", "event=a&event=b"} {
		security.open(at + "?" + query).must(http.StatusNotFound)
	}

	export := security.open(security.open(at).linkOf("Export events 1 to 4"))
	if export.header.Get("Content-Type") != "application/x-ndjson" || !strings.Contains(export.header.Get("Content-Disposition"), "trail-harbor-hotel.ndjson") {
		t.Errorf("%v", export.header)
	}
	proof, err := authority.VerifyExport(strings.NewReader(export.body), &head)
	if err != nil || proof.Events != 4 {
		t.Errorf("%+v, %v", proof, err)
	}
	// Part by part, and what is filtered.
	if p := security.open(at + "/export?since=3"); strings.Count(p.body, "\n") != 1 {
		t.Errorf("%q", p.body)
	}
	if p := security.open(security.open(at + "?event=grant.created").linkOf("Export what is shown")); strings.Count(p.body, "\n") != 1 {
		t.Errorf("%q", p.body)
	}
	security.open(at + "/export?since=x").must(http.StatusNotFound)
	security.open(at + "/export?from=x").must(http.StatusNotFound)
	for _, role := range []string{"viewer", "support"} {
		if p := people[role].open(at).must(http.StatusOK, head.String()); strings.Contains(p.body, "trail/export") {
			t.Errorf("%s is offered the export", role)
		}
		people[role].open(at+"/export").must(http.StatusForbidden, refusedByRole)
	}
	people["stranger"].open(at + "/export").must(http.StatusNotFound)
}

// A page of the trail goes on at its place, however much happens meanwhile; and a
// long one is exported in parts.
func TestTheTrailIsPagedByItsPlaces(t *testing.T) {
	s := newSite(t)
	viewer := staff(t, s)["viewer"]
	happen := func(n int) {
		s.Exec(t, `INSERT INTO audit_events (brand_id, at, actor, event, detail)
			SELECT 'harbor-hotel', $1, 'system', 'tried.' || n, '{"b":"<i>"}' FROM generate_series(1, $2::int) AS n`, s.Clock.Now(), n)
	}
	happen(120)
	at, seen := desk+"trail", 0
	for range 4 {
		p := viewer.open(at).must(http.StatusOK)
		if strings.Contains(p.body, "<i>") {
			t.Fatal("a detail is markup")
		}
		seen += strings.Count(p.body, "Word for word")
		happen(3)
		if at = p.linkOf("Older"); at == "" {
			break
		}
	}
	if seen != 120 {
		t.Errorf("%d events were seen", seen)
	}
}

// The figures are those of the trail, in the picture and in the table behind it.
func TestUsageIsPlotted(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	viewer := staff(t, s)["viewer"]
	viewer.open(desk+"usage").must(http.StatusOK, "There was none in this time")
	for i := range 3 {
		s.allow(t, a, s.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: fmt.Sprint(i)}, fmt.Sprint("guest-", i), "bookings:read")
	}
	if _, err := a.End(t.Context(), s.Hotel.ID, authority.ByOperator(), authority.Which{Subject: "guest-1"}); err != nil {
		t.Fatal(err)
	}
	for days, query := range map[int]string{30: "", 90: "?days=90"} {
		p := viewer.open(desk+"usage"+query).must(http.StatusOK, "3 in all; the most, 3, on 30\u00a0November 2026")
		if n := strings.Count(p.body, "<rect "); n != 3 { // asked, allowed, ended
			t.Errorf("%d bars", n)
		}
		if n := strings.Count(p.body, `role="img"`); n != 6 {
			t.Errorf("%d plots", n)
		}
		if n := strings.Count(p.body, "<tr>"); n != 6*(days+1) {
			t.Errorf("%d rows in the tables, want those of %d days", n, days)
		}
	}
	viewer.open(desk+"usage?days=7").must(http.StatusOK, "in 30 days")
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 4, 5: 6, 7: 8, 9: 10, 11: 20, 81: 100, 100: 100, 4_001: 6_000} {
		if got := console.Ceiling(n); got != want {
			t.Errorf("over %d: %d, want %d", n, got, want)
		}
	}
}

// The first screen says what went wrong by itself.
func TestTheFirstScreenTellsOfTrouble(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	viewer := staff(t, s)["viewer"]
	const alarm, dead, key, old = "ended because a copied secret", "was given up", "No signing key", "should have changed days ago"
	p := viewer.open(desk).must(http.StatusOK, "All of usage")
	for _, w := range []string{alarm, dead, key, old} {
		if strings.Contains(p.body, w) {
			t.Errorf("%s, though nothing is wrong", w)
		}
	}
	first := s.allow(t, a, s.Hotel, authoritytest.Alex, "guest-7", "bookings:read")
	next := first
	for range 2 {
		var err error
		if next, err = a.Refresh(t.Context(), s.Hotel, authoritytest.Alex, next.Refresh, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Clock.Advance(time.Minute)
	if _, err := a.Refresh(t.Context(), s.Hotel, authoritytest.Alex, first.Refresh, nil); err == nil {
		t.Fatal("a spent token was paid")
	}
	s.Exec(t, `INSERT INTO webhook_endpoints (brand_id, id, url, events, secret_sealed, enabled, created_at)
		VALUES ('harbor-hotel', 'aaaaaaaaaaaa', 'https://hotel.example/hook', '{grant.revoked}', '', true, $1)`, s.Clock.Now())
	deliver := func(state string) {
		s.Exec(t, `INSERT INTO webhook_deliveries (brand_id, id, endpoint_id, seq, state, since, due_at)
			VALUES ('harbor-hotel', gen_random_uuid(), 'aaaaaaaaaaaa', 1, $1, $2, $2)`, state, s.Clock.Now())
	}
	deliver("pending")
	deliver("delivered")
	p = viewer.open(desk).must(http.StatusOK, "1 grant ended because a copied secret came back", `href="/console/b/harbor-hotel/trail?event=grant.reuse_detected"`)
	if strings.Contains(p.body, dead) {
		t.Error("a delivery that lives is called dead")
	}
	deliver("dead")
	viewer.open(desk).must(http.StatusOK, "1 message to your server was given up")
	s.Clock.Advance(25 * time.Hour)
	viewer.login()
	if p := viewer.open(desk).must(http.StatusOK, dead); strings.Contains(p.body, alarm) {
		t.Error("yesterday's alarm still rings")
	}
	s.Exec(t, `UPDATE signing_keys SET changed_at = changed_at - interval '9 days' WHERE brand_id = 'harbor-hotel'`)
	viewer.open(desk).must(http.StatusOK, old) // the policy of this site is an hour
	s.Exec(t, `UPDATE signing_keys SET state = 'revoked', reason = 'lost' WHERE brand_id = 'harbor-hotel'`)
	viewer.open(desk).must(http.StatusOK, key)
	s.Clock.Advance(10 * 24 * time.Hour)
	viewer.login()
	if p := viewer.open(desk).must(http.StatusOK); strings.Contains(p.body, dead) {
		t.Error("it is told for ever")
	}
}
