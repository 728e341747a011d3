package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var recoveryShape = regexp.MustCompile(`countersign-recovery=\w+`)

// domain gives the Brand a proven one.
func (s *site) domain(t *testing.T, brand tenants.BrandID, host string) {
	t.Helper()
	s.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
		VALUES ($1, $2, 'countersign-proof=' || $2, $3, $3, 'dns')`, brand, host, s.Clock.Now())
}

func (v *visitor) askToWait(brand tenants.BrandID, link string) page {
	v.t.Helper()
	return v.post("/console/recover/wait", url.Values{"t": {tokenOf(link)}, "brand": {string(brand)}}, link)
}

// E-mail alone never restores an owner: without codes and without another owner
// there is a wait of 72 hours, of which every member hears and which any of them
// ends; and only with the wait's own line on a domain that is the Brand's.
func TestTheWait(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	id := s.person(t, "owner@example.com")
	v, link := s.lost(t, "owner@example.com")
	ask := func(v *visitor, link string) page { return v.askToWait(brand, link) }
	s.domain(t, brand, "lake.example")
	v.open(link).must(http.StatusOK, "72 hours", "on a proven domain of").mustNot("countersign-recovery=")
	p := ask(v, link).must(http.StatusOK, "The wait has begun", "https://lake.example/.well-known/countersign-proof", "_countersign.lake.example", "still yours")
	line := recoveryShape.FindString(p.body)
	told := map[string]bool{}
	for len(told) < 4 {
		if m := s.letter(t); strings.Contains(m.Subject, "asks to come back") {
			told[m.To] = true
			if !strings.Contains(m.Text, "on a proven domain of") || strings.Contains(m.Text, line) {
				t.Errorf("what it takes is not said, or given away:\n%s", m.Text)
			}
		}
	}
	ask(v, link) // no second one
	if n := s.Count(t, `SELECT count(*) FROM recoveries`); n != 1 {
		t.Fatalf("%d waits", n)
	}
	// A stranger and a viewer of the Brand have nothing to recover there.
	for _, email := range []string{"viewer@example.com", "stranger@example.com"} {
		other, link := s.lost(t, email)
		ask(other, link).must(http.StatusForbidden).mustNot("lake.example")
	}
	if n := s.Count(t, `SELECT count(*) FROM recoveries`); n != 1 {
		t.Fatalf("%d waits", n)
	}
	// Not before the time, whatever is posted.
	s.Clock.Advance(tenants.RecoveryWait - time.Minute)
	v, link = s.lost(t, "owner@example.com")
	v.open(link).must(http.StatusOK, "The wait ends at", line, "leave it there")
	s.published.put(s.published.records, "_countersign.lake.example", line)
	if p := ask(v, link); p.find("form", "data-passkey", "") != nil {
		t.Fatal("a passkey is asked for before the time")
	}
	// Any member ends it.
	people["viewer"].login().must(http.StatusSeeOther)
	people["viewer"].open("/console/b/lake/").must(http.StatusOK, "wants to come back")
	var wait uuid.UUID
	if err := s.Owner.QueryRow(t.Context(), `SELECT id FROM recoveries`).Scan(&wait); err != nil {
		t.Fatal(err)
	}
	people["viewer"].open("/console/b/lake/members").must(http.StatusOK, wait.String())
	cancel := "/console/b/lake/recoveries/" + wait.String() + "/cancel"
	people["stranger"].login()
	people["stranger"].post(cancel, nil, "").must(http.StatusNotFound)
	people["viewer"].post(cancel, nil, "").must(http.StatusSeeOther)
	s.Clock.Advance(2 * time.Minute)
	v, link = s.lost(t, "owner@example.com")
	if p := ask(v, link); p.find("form", "data-passkey", "") != nil {
		t.Fatal("the ended wait counted")
	}

	// The second time nobody says no. Somebody who cancels while the page is open
	// still wins.
	s.Clock.Advance(tenants.RecoveryWait)
	v, link = s.lost(t, "owner@example.com")
	v.open(link).must(http.StatusOK, "The wait is over", "_countersign.lake.example", "Leave it there")
	// The line of the wait that ended is none of this one's.
	p = ask(v, link).must(http.StatusUnprocessableEntity, "Your line was not found", "the token is not there")
	again := recoveryShape.FindString(p.body)
	if again == line || p.find("form", "data-passkey", "") != nil {
		t.Fatalf("the first wait's line is good for the second: %s", again)
	}
	s.published.put(s.published.records, "_countersign.lake.example", again)
	p = ask(v, link).must(http.StatusOK, "Make a new passkey")
	form := with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	s.Exec(t, `UPDATE recoveries SET cancelled_at = now() WHERE cancelled_at IS NULL`)
	v.post("/console/link", form, link).must(http.StatusNotFound)
	s.Exec(t, `UPDATE recoveries SET cancelled_at = NULL WHERE id <> $1`, wait)
	p = ask(v, link)
	// Another Brand's id, or a wait that is not one's own, leads nowhere.
	form = with(p.fields("/console/link"), "credential", v.device.create(p.options()), "recovery", wait.String())
	v.post("/console/link", form, link).must(http.StatusNotFound)
	p = ask(v, link)
	form = with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	v.post("/console/link", form, link).mustGo("/console/keys")
	v.secure()
	v.open("/console/b/lake/").must(http.StatusOK, "new passkey")
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'member.restored' AND detail->>'host' = 'lake.example'`); n != 1 {
		t.Errorf("%d facts name the host", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM passkeys WHERE person_id = $1`, id); n != 1 {
		t.Errorf("%d passkeys: the lost ones still open", n)
	}
}

// A Brand that the operator let in without a domain cannot be had by a wait.
func TestNoWaitWithoutADomain(t *testing.T) {
	s := newSite(t)
	brand, _ := team(t, s)
	s.Exec(t, `UPDATE brands SET proven = true WHERE id = $1`, brand)
	s.Brands.Forget(brand)
	refused := func(why string) {
		t.Helper()
		v, link := s.lost(t, "owner@example.com")
		v.open(link).must(http.StatusOK, "Recovery code").mustNot("72 hours")
		v.askToWait(brand, link).must(http.StatusForbidden)
		if n := s.Count(t, `SELECT count(*) FROM recoveries`); n != 0 {
			t.Errorf("%s: %d waits", why, n)
		}
	}
	refused("no domain")
	s.domain(t, "river", "river.example")
	refused("another Brand's domain")
	s.domain(t, brand, "lake.example")
	s.Exec(t, `UPDATE brand_domains SET proven_at = NULL, method = NULL WHERE host = 'lake.example'`)
	refused("a domain that waits for its proof")
	s.Exec(t, `UPDATE brand_domains SET proven_at = $1, method = 'dns', failing_since = $1`, s.Clock.Now().Add(-8*24*time.Hour))
	refused("a lost domain")
}

// overdue is an owner's wait that is over, and nothing but a line missing.
func overdue(t *testing.T) (s *site, brand tenants.BrandID, v *visitor, link string) {
	t.Helper()
	s = newSite(t)
	brand, _ = team(t, s)
	s.domain(t, brand, "lake.example")
	s.domain(t, brand, "second.example")
	v, link = s.lost(t, "owner@example.com")
	v.askToWait(brand, link).must(http.StatusOK, "The wait has begun", "lake.example", "second.example")
	s.Clock.Advance(tenants.RecoveryWait)
	v, link = s.lost(t, "owner@example.com")
	return s, brand, v, link
}

// What counts is this wait's line, in the one file or record, on a host of this
// Brand's.
func TestOnlyTheWaitsLineCounts(t *testing.T) {
	s, brand, v, link := overdue(t)
	const file, record = "https://lake.example/.well-known/countersign-proof", "_countersign.lake.example"
	p := v.askToWait(brand, link).must(http.StatusUnprocessableEntity, "Your line was not found", file, record, "the host answers 404", "there is no such record")
	line := recoveryShape.FindString(p.body)
	s.domain(t, "river", "river.example")
	s.Exec(t, `INSERT INTO recoveries (brand_id, id, person_id, asked_at, due_at, token)
		SELECT 'river', gen_random_uuid(), $1, $2, $2::timestamptz + interval '72 hours', 'countersign-recovery=other'`,
		s.person(t, "stranger@example.com"), s.Clock.Now())
	for name, wrong := range map[string]struct {
		where    map[string]string
		at, text string
	}{
		"another wait's":        {s.published.files, file, "countersign-recovery=other"},
		"the domain's own":      {s.published.records, record, "countersign-proof=lake.example"},
		"part of a line":        {s.published.files, file, "x" + line},
		"on another host":       {s.published.records, "_countersign.elsewhere.example", line},
		"on another Brand's":    {s.published.records, "_countersign.river.example", line},
		"beneath the domain":    {s.published.files, "https://www.lake.example/.well-known/countersign-proof", line},
		"at another path there": {s.published.files, "https://lake.example/countersign-proof", line},
	} {
		s.published.put(wrong.where, wrong.at, wrong.text)
		p := v.askToWait(brand, link)
		if p.status != http.StatusUnprocessableEntity || p.find("form", "data-passkey", "") != nil {
			t.Errorf("%s: status %d", name, p.status)
		}
		s.published.put(wrong.where, wrong.at, "")
	}
	for name, right := range map[string]struct {
		where    map[string]string
		at, text string
	}{
		"a file beside the own proof": {s.published.files, file, "countersign-proof=lake.example\n" + line + "\n"},
		"a record":                    {s.published.records, record, line},
		"the second domain":           {s.published.records, "_countersign.second.example", line},
	} {
		s.published.put(right.where, right.at, right.text)
		if p := v.askToWait(brand, link); p.find("form", "data-passkey", "") == nil {
			t.Errorf("%s: status %d", name, p.status)
		}
		s.published.put(right.where, right.at, "")
	}
	// One whose own proof is missing for a few days still serves; a lost one does not.
	s.published.put(s.published.records, record, line)
	for days, status := range map[int]int{6: http.StatusOK, 8: http.StatusUnprocessableEntity} {
		s.Exec(t, `UPDATE brand_domains SET failing_since = $1 WHERE host = 'lake.example'`, s.Clock.Now().AddDate(0, 0, -days))
		if p := v.askToWait(brand, link); p.status != status {
			t.Errorf("failing for %d days: status %d", days, p.status)
		}
	}
}

// The line must still stand, and the domain still be the Brand's, when the new
// passkey comes.
func TestTheLineStandsUntilTheEnd(t *testing.T) {
	s, brand, v, link := overdue(t)
	const record = "_countersign.lake.example"
	line := recoveryShape.FindString(v.askToWait(brand, link).body)
	made := func() url.Values {
		t.Helper()
		p := v.askToWait(brand, link).must(http.StatusOK)
		return with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	}
	s.published.put(s.published.records, record, line)
	form := made()
	s.published.put(s.published.records, record, "")
	v.post("/console/link", form, link).must(http.StatusUnprocessableEntity, "Your line was not found", "there is no such record", line)

	s.published.put(s.published.records, record, line)
	form = made()
	s.Exec(t, `DELETE FROM brand_domains WHERE host = 'lake.example'`)
	v.post("/console/link", form, link).must(http.StatusUnprocessableEntity, "second.example").mustNot(record)

	s.domain(t, brand, "lake.example")
	form = made()
	s.Exec(t, `UPDATE brand_domains SET failing_since = $1`, s.Clock.Now().AddDate(0, 0, -8))
	v.post("/console/link", form, link).must(http.StatusForbidden)
	if n := s.Count(t, `SELECT count(*) FROM recoveries WHERE done_at IS NOT NULL`); n != 0 {
		t.Error("a wait was used without its proof")
	}
	s.Exec(t, `UPDATE brand_domains SET failing_since = NULL`)
	v.post("/console/link", made(), link).mustGo("/console/keys")
}

// Looks for the line are counted with the Brand's other looks outside.
func TestLooksForTheLineAreCounted(t *testing.T) {
	_, brand, v, link := overdue(t)
	last := 0
	for range 130 {
		if last = v.askToWait(brand, link).status; last == http.StatusTooManyRequests {
			break
		}
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("it ends with %d", last)
	}
}

// The rule itself knows when the wait is over and which hosts are the Brand's,
// whatever a page has looked at before.
func TestTheRuleKeepsTheWait(t *testing.T) {
	s := newSite(t)
	brand, _ := team(t, s)
	owner := s.person(t, "owner@example.com")
	record := func(context.Context, pgx.Tx, tenants.BrandID, uuid.UUID, string, map[string]any) error { return nil }
	act := tenants.Act{Brand: brand, By: owner, Event: "recovery.asked", Record: record, Now: s.Clock.Now()}
	if err := tenants.AskRecovery(t.Context(), s.DB, act); err != nil {
		t.Fatal(err)
	}
	s.domain(t, brand, "lake.example")
	s.domain(t, brand, "waiting.example")
	s.domain(t, brand, "lost.example")
	s.Exec(t, `UPDATE brand_domains SET proven_at = NULL, method = NULL WHERE host = 'waiting.example'`)
	s.Exec(t, `UPDATE brand_domains SET failing_since = $1 WHERE host = 'lost.example'`, s.Clock.Now().Add(-5*24*time.Hour))
	s.domain(t, "river", "river.example")
	waits, err := tenants.RecoveriesOf(t.Context(), s.DB, owner)
	if err != nil || len(waits) != 1 {
		t.Fatalf("%d waits, %v", len(waits), err)
	}
	for i, try := range []struct {
		at   time.Duration
		host string
		want error
	}{
		{0, "lake.example", tenants.ErrNoRecovery},
		{tenants.RecoveryWait - time.Microsecond, "lake.example", tenants.ErrNoRecovery},
		{tenants.RecoveryWait, "", tenants.ErrNoRecovery},
		{tenants.RecoveryWait, "waiting.example", tenants.ErrNoRecovery},
		{tenants.RecoveryWait, "lost.example", tenants.ErrNoRecovery}, // for 8 days
		{tenants.RecoveryWait, "river.example", tenants.ErrNoRecovery},
		{tenants.RecoveryWait, "lake.example", nil},
	} {
		now := s.Clock.Now().Add(try.at)
		token, err := tenants.IssueLink(t.Context(), s.DB, tenants.LinkRecovery, "owner@example.com", tenants.LinkData{}, now)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tenants.OpenLink(t.Context(), s.DB, token, now)
		if err != nil {
			t.Fatal(err)
		}
		key := tenants.Passkey{ID: []byte{byte(i)}, Data: json.RawMessage("{}")}
		if err := tenants.RestoreByBrand(t.Context(), s.DB, l, brand, tenants.Waited{Recovery: waits[0].ID, Host: try.host}, owner, key, record, now); !errors.Is(err, try.want) {
			t.Errorf("after %s, with %q: %v", try.at, try.host, err)
		}
	}
}

// comeBack goes all the way of a wait at the Brand, with a new device and a new passkey.
func (s *site) comeBack(t *testing.T, email string, brand tenants.BrandID, host string) *visitor {
	t.Helper()
	v, link := s.lost(t, email)
	v.askToWait(brand, link).must(http.StatusOK)
	s.Clock.Advance(tenants.RecoveryWait)
	v, link = s.lost(t, email)
	line := recoveryShape.FindString(v.askToWait(brand, link).body)
	s.published.put(s.published.records, "_countersign."+host, line)
	p := v.askToWait(brand, link).must(http.StatusOK, "Make a new passkey")
	v.post("/console/link", with(p.fields("/console/link"), "credential", v.device.create(p.options())), link).mustGo("/console/keys")
	v.secure()
	return v
}

// again asks, in the same browser, for the mail that begins every way back.
func (v *visitor) again(email string) string {
	v.t.Helper()
	v.site.drain(v.t)
	v.post("/console/recover", url.Values{"email": {email}}, "").must(http.StatusOK)
	return v.site.linkTo(v.t, email)
}

// Whoever alone owns two Brands and has lost everything comes back at both: at the
// second by its own wait and its own line, with the passkey that the first one's made.
func TestTheSoleOwnerOfTwoBrandsComesBackAtBoth(t *testing.T) {
	const email, record = "solo@example.com", "_countersign.two.example"
	s := newSite(t)
	v := s.become(t, email, "Solo")
	v.found("one")
	v.found("two")
	s.domain(t, "one", "one.example")
	s.domain(t, "two", "two.example")
	vera := s.become(t, "vera@example.com", "Vera")
	s.own(t, vera, "two", tenants.Viewer)

	v = s.comeBack(t, email, "one", "one.example")
	v.open("/console/b/one/").must(http.StatusOK)
	v.open("/console/b/two/").must(http.StatusNotFound)
	if p := v.open("/console/brands").must(http.StatusOK, "No other owner? Choose it to come back."); p.find("a", "href", "/console/recover") == nil {
		t.Error("no way on")
	}
	link := v.again(email)
	v.open(link).must(http.StatusOK, "nobody has confirmed yet that it is you").mustNot("countersign-recovery=")
	v.askToWait("two", link).must(http.StatusOK, "The wait has begun")
	for m := s.letter(t); m.To != "vera@example.com"; m = s.letter(t) { // every member, as of any wait
		t.Logf("before it came: %s", m.Subject)
	}
	s.Clock.Advance(tenants.RecoveryWait - time.Minute)
	v.login().must(http.StatusSeeOther)
	link = v.again(email)
	line := recoveryShape.FindString(v.open(link).must(http.StatusOK, "leave it there until you are back").body)
	s.published.put(s.published.records, record, line)
	v.askToWait("two", link).must(http.StatusOK, "The wait has begun") // not before the time
	v.open("/console/b/two/").must(http.StatusNotFound)

	s.Clock.Advance(time.Minute)
	s.published.put(s.published.records, record, "")
	v.open(link).must(http.StatusOK, "Come back to this Brand", "You keep the passkey that you have").mustNot("Make a new passkey")
	v.askToWait("two", link).must(http.StatusUnprocessableEntity, "Your line was not found")
	// The line of the first Brand's wait is none of this one's.
	s.published.put(s.published.records, record, s.published.records["_countersign.one.example"])
	v.askToWait("two", link).must(http.StatusUnprocessableEntity, "Your line was not found")
	s.published.put(s.published.records, record, line)
	// A browser in which nobody is signed in, or somebody else, is shown to the passkey.
	vera.login().must(http.StatusSeeOther)
	for _, other := range []*visitor{s.visitor(t), vera} {
		p := other.open(link).must(http.StatusOK, "sign in first").mustNot("Come back to this Brand")
		if p.find("a", "href", "/console/login?back="+url.QueryEscape(link)) == nil {
			t.Error("it leads to no passkey")
		}
		if p := other.askToWait("two", link); p.find("form", "data-passkey", "") == nil {
			t.Errorf("without the passkey: %d to %s", p.status, p.location)
		}
	}
	// A session alone does not do: the passkey is touched.
	s.Clock.Advance(6 * time.Minute)
	v.askToWait("two", link).mustGo("/console/touch?back=" + url.QueryEscape(link))
	v.open("/console/b/two/").must(http.StatusNotFound)
	v.touch()
	s.Exec(t, `UPDATE recoveries SET cancelled_at = now() WHERE brand_id = 'two'`) // somebody says no, at last
	if p := v.askToWait("two", link); p.location != "" {
		t.Errorf("a cancelled wait leads to %s", p.location)
	}
	v.open("/console/b/two/").must(http.StatusNotFound)
	s.Exec(t, `DELETE FROM recoveries WHERE brand_id = 'two' AND cancelled_at IS NULL`)
	s.Exec(t, `UPDATE recoveries SET cancelled_at = NULL WHERE brand_id = 'two'`)
	v.askToWait("two", link).mustGo("/console/b/two/")
	for _, brand := range []string{"one", "two"} {
		v.open("/console/b/" + brand + "/").must(http.StatusOK)
	}
	v.open(link).must(http.StatusGone)
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'two' AND event = 'member.confirmed' AND detail->>'host' = 'two.example'`); n != 1 {
		t.Errorf("%d facts name the host", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM passkeys WHERE person_id = $1`, s.person(t, email)); n != 1 {
		t.Errorf("%d passkeys", n)
	}
	// Whoever loses that one too begins anew: the second Brand's word is none of the first's.
	v = s.comeBack(t, email, "two", "two.example")
	v.open("/console/b/two/").must(http.StatusOK)
	v.open("/console/b/one/").must(http.StatusNotFound)
}

// The rule confirms who came back then, where they own the Brand and rest, and nobody who
// has come back since.
func TestTheRuleConfirmsByItsOwnWait(t *testing.T) {
	s := newSite(t)
	brand, _ := team(t, s)
	owner, began := s.person(t, "owner@example.com"), s.Clock.Now()
	record := func(context.Context, pgx.Tx, tenants.BrandID, uuid.UUID, string, map[string]any) error { return nil }
	s.domain(t, brand, "lake.example")
	if err := tenants.AskRecovery(t.Context(), s.DB, tenants.Act{Brand: brand, By: owner, Event: "recovery.asked", Record: record, Now: began}); err != nil {
		t.Fatal(err)
	}
	waits, err := tenants.RecoveriesOf(t.Context(), s.DB, owner)
	if err != nil || len(waits) != 1 {
		t.Fatalf("%d waits, %v", len(waits), err)
	}
	now, restored, former := began.Add(tenants.RecoveryWait), began.Add(time.Hour), began.Add(-time.Hour)
	for _, try := range []struct {
		name     string
		restored *time.Time
		role     tenants.Role
		host     string
		since    time.Time
		now      time.Time
		want     error
	}{
		{"does not rest", nil, tenants.Owner, "lake.example", restored, now, tenants.ErrNotMember},
		{"was confirmed", &former, tenants.Owner, "lake.example", restored, now, tenants.ErrNotMember},
		{"signed in before", &restored, tenants.Owner, "lake.example", restored.Add(-time.Microsecond), now, tenants.ErrNotMember},
		{"no owner any more", &restored, tenants.Viewer, "lake.example", restored, now, tenants.ErrNotMember},
		{"before the time", &restored, tenants.Owner, "lake.example", restored, now.Add(-time.Microsecond), tenants.ErrNoRecovery},
		{"without the proof", &restored, tenants.Owner, "", restored, now, tenants.ErrNoRecovery},
		{"all of it", &restored, tenants.Owner, "lake.example", restored, now, nil},
	} {
		s.Exec(t, `UPDATE people SET restored_at = $2 WHERE id = $1`, owner, try.restored)
		s.Exec(t, `UPDATE memberships SET role = $2 WHERE person_id = $1`, owner, try.role)
		token, err := tenants.IssueLink(t.Context(), s.DB, tenants.LinkRecovery, "owner@example.com", tenants.LinkData{}, try.now)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tenants.OpenLink(t.Context(), s.DB, token, try.now)
		if err != nil {
			t.Fatal(err)
		}
		w := tenants.Waited{Recovery: waits[0].ID, Host: try.host}
		if err := tenants.ConfirmByWait(t.Context(), s.DB, l, brand, w, owner, try.since, record, try.now); !errors.Is(err, try.want) {
			t.Errorf("%s: %v", try.name, err)
		}
		m, err := tenants.MemberOf(t.Context(), s.DB, brand, owner)
		if rests := errors.Is(err, tenants.ErrNotMember); rests != (try.want != nil && try.restored == &restored) {
			t.Errorf("%s: it rests: %v, %+v", try.name, rests, m)
		}
		if err := tenants.ConfirmByWait(t.Context(), s.DB, l, brand, w, owner, try.since, record, try.now); try.want == nil && !errors.Is(err, tenants.ErrDeadLink) {
			t.Errorf("%s: the link again: %v", try.name, err)
		}
	}
	// Who comes back from now on rests here, whatever the clocks of two instances say.
	s.Exec(t, `UPDATE people SET restored_at = restored_at + interval '1 microsecond' WHERE id = $1`, owner)
	if _, err := tenants.MemberOf(t.Context(), s.DB, brand, owner); !errors.Is(err, tenants.ErrNotMember) {
		t.Errorf("it confirmed somebody who came back later: %v", err)
	}
}
