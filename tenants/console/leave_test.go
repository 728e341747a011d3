package console_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"countersign.dev/tenants/mail"
)

// open makes the Brand ready for agents, and has a customer allow one something.
func (s *site) allowed(t *testing.T, brand tenants.BrandID, subject string) {
	t.Helper()
	s.Exec(t, `UPDATE brands SET proven = true, state = 'active' WHERE id = $1`, string(brand))
	s.Exec(t, `INSERT INTO brand_scopes (brand_id, id, position, description, effect, impact) VALUES ($1, 'rooms:read', 0, 'See rooms', 'sees', 'low') ON CONFLICT DO NOTHING`, string(brand))
	b := s.Reload(t, brand)
	a := s.Authority(nil)
	started := authoritytest.Begin(t, a, b, authority.Caller{Agent: authoritytest.Agent, Sub: "phone of " + subject}, "rooms:read")
	authoritytest.Approve(t, a, b, started, subject, "rooms:read")
}

// letterAbout waits for mail with the words in its subject, whatever other mail
// comes before.
func (s *site) letterAbout(t *testing.T, words string) mail.Message {
	t.Helper()
	for {
		if m := s.letter(t); strings.Contains(m.Subject, words) {
			return m
		}
	}
}

// everything digests what every table holds, but for sessions; of notices, which
// others send meanwhile, only how many there are.
func (s *site) everything(t *testing.T) string {
	t.Helper()
	const q = `
		SELECT string_agg(c.relname || ' ' || (xpath('/row/d/text()', query_to_xml(
		       format('SELECT md5(coalesce(string_agg(x::text, '''' ORDER BY x::text), '''')) AS d FROM %I x', c.relname), false, true, '')))[1]::text, E'\n' ORDER BY c.relname)
		  FROM pg_class c
		 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname NOT IN ('browser_sessions', 'notices') AND c.relname NOT LIKE 'river%'`
	var out string
	if err := s.Owner.QueryRow(t.Context(), q).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(out, s.Count(t, `SELECT count(*) FROM notices`))
}

// R66: an owner takes everything along, under a fresh touch, and all owners hear of
// it. Nobody else does.
func TestAnOwnerTakesEverythingAlong(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	s.allowed(t, brand, "guest-1")
	at := "/console/b/" + string(brand) + "/leave"
	owner := people["owner"]
	owner.open(at).must(http.StatusOK, "Take everything along", "countersign brand export --brand lake", "/api/v1/brands/lake/export")
	for role, status := range map[string]int{"security": 403, "support": 403, "viewer": 403, "stranger": 404} {
		if p := people[role].post(at+"/export", nil, at); p.status != status {
			t.Errorf("%s: %d", role, p.status)
		}
	}
	forged := s.visitor(t)
	forged.jar, forged.header = owner.jar, http.Header{"Sec-Fetch-Site": {"cross-site"}}
	forged.post(at+"/export", nil, "").must(http.StatusForbidden)
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.exported'`); n != 0 {
		t.Errorf("noted %d times", n)
	}
	p := owner.post(at+"/export", nil, at)
	if p.status != http.StatusOK || p.header.Get("Content-Type") != "application/zip" || !strings.HasPrefix(p.header.Get("Content-Disposition"), `attachment; filename="countersign-lake-`) {
		t.Fatalf("%d %v", p.status, p.header)
	}
	z, err := zip.NewReader(bytes.NewReader([]byte(p.body)), int64(len(p.body)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("audit.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if proof, err := authority.VerifyExport(f, nil); err != nil || proof.Brand != "lake" {
		t.Errorf("%+v, %v", proof, err)
	}
	if m := s.letterAbout(t, "archive"); m.To != "owner@example.com" || !strings.Contains(m.Text, "Olga") {
		t.Errorf("%+v", m)
	}
	s.Clock.Advance(5 * time.Minute)
	if p := owner.post(at+"/export", nil, at); p.status != http.StatusSeeOther || !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d", p.status)
	}
}

// B92, R66: only an owner closes, with the id typed, under a touch; then nothing
// counts, every member is told and for 30 days everything can be taken along.
func TestAnOwnerClosesTheBrand(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	s.allowed(t, brand, "guest-1")
	s.allowed(t, brand, "guest-2")
	at := "/console/b/" + string(brand) + "/leave"
	owner := people["owner"]
	owner.open(at).must(http.StatusOK, "2 permissions of customers’ agents end at once", "4 members are told", "Type lake to close it", "brand close --yes --brand lake")
	before := s.everything(t)
	typed := url.Values{"id": {string(brand)}}
	for role, status := range map[string]int{"security": 403, "support": 403, "viewer": 403, "stranger": 404} {
		if p := people[role].post(at+"/close", typed, at); p.status != status {
			t.Errorf("%s: %d", role, p.status)
		}
	}
	for _, wrong := range []string{"", "Lake", "lake ", "river", "harbor-hotel"} {
		owner.post(at+"/close", url.Values{"id": {wrong}}, at).must(http.StatusUnprocessableEntity, "That is not lake. Nothing was closed.")
	}
	owner.post("/console/b/river/leave/close", url.Values{"id": {"river"}}, at).must(http.StatusNotFound)
	if s.everything(t) != before {
		t.Error("something changed")
	}
	s.Clock.Advance(5 * time.Minute)
	if p := owner.post(at+"/close", typed, at); p.status != http.StatusSeeOther || !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d", p.status)
	}
	owner.touch()
	for range 2 {
		owner.post(at+"/close", typed, at).mustGo(at)
	}
	if n := s.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'lake' AND ended_at IS NULL`); n != 0 {
		t.Errorf("%d grants live", n)
	}
	told := map[string]bool{}
	for range 4 {
		m := s.letterAbout(t, "closed for good")
		if told[m.To] = true; m.Subject != "Café du Lac is closed for good" || !strings.Contains(m.Text, "by Olga") || !strings.Contains(m.Text, "Until") {
			t.Errorf("%+v", m)
		}
	}
	if len(told) != 4 {
		t.Errorf("told: %v", told)
	}
	p := owner.open(at).must(http.StatusOK, "does not open again", "you can take its data along")
	if p.find("form", "action", at+"/close") != nil {
		t.Error("it can be closed again")
	}
	people["viewer"].open("/console/b/lake/").must(http.StatusOK, "is closed for good. Until")
	if p := owner.post(at+"/export", nil, at); p.status != http.StatusOK {
		t.Errorf("export: %d", p.status)
	}
	// The id is taken, in the words of any taken one (B92).
	newcomer := s.become(t, "new@example.com", "Nora")
	form := func(id string) url.Values {
		return url.Values{"organisation": {"Lake Ltd"}, "brand": {"Café du Lac"}, "id": {id}}
	}
	refused := func(id string) string {
		p := newcomer.post("/console/new", form(id), "/console/new").must(http.StatusUnprocessableEntity)
		return strings.ReplaceAll(p.body, id, "ID")
	}
	if closed, living := refused("lake"), refused("river"); closed != living {
		t.Error("a closed Brand's id is told from a living one's")
	}
	s.Clock.Advance(tenants.ClosedFor)
	if _, err := s.Authority(nil).Leave(t.Context(), brand); err != nil {
		t.Fatal(err)
	}
	newcomer.login()
	if gone, living := refused("lake"), refused("river"); gone != living {
		t.Error("a gone Brand's id is told from a living one's")
	}
	owner.login()
	owner.open("/console/b/lake/").must(http.StatusNotFound)
}

// B92: an owner or security erases a customer: first it is shown what there is, and
// nothing happens; with the id typed once more it is gone.
func TestACustomerIsErased(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	s.allowed(t, brand, "guest-1")
	s.allowed(t, brand, "guest-2")
	at := "/console/b/" + string(brand) + "/erase"
	form := func(pairs ...string) url.Values { return with(url.Values{}, pairs...) }
	for role, status := range map[string]int{"support": 403, "viewer": 403, "stranger": 404} {
		if p := people[role].post(at, form("subject", "guest-1", "again", "guest-1"), at); p.status != status {
			t.Errorf("%s: %d", role, p.status)
		}
	}
	who := people["security"]
	before := s.everything(t)
	who.open(at).must(http.StatusOK, "countersign user erase --brand lake")
	who.post(at, form("subject", ""), at).must(http.StatusUnprocessableEntity, "Type the id")
	who.post(at, form("subject", "guest-1"), at).must(http.StatusOK, "1 permission ends", "1 answer goes")
	who.post(at, form("subject", "nobody"), at).must(http.StatusOK, "Check the id")
	for _, wrong := range []string{"", "guest-2", "guest-1 "} {
		who.post(at, form("subject", "guest-1", "again", wrong), at).must(http.StatusUnprocessableEntity, "not the same id")
	}
	if s.everything(t) != before {
		t.Error("something changed")
	}
	s.Clock.Advance(5 * time.Minute)
	if p := who.post(at, form("subject", "guest-1", "again", "guest-1"), at); p.status != http.StatusSeeOther || !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d", p.status)
	}
	who.touch()
	p := who.post(at, form("subject", "guest-1", "again", "guest-1"), at).must(http.StatusOK, "1 permission has ended", "verifies as before")
	if strings.Contains(p.body, "guest-1") {
		t.Error("the page still names the person")
	}
	who.post(at, form("subject", "guest-1", "again", "guest-1"), at).must(http.StatusOK, "0 permissions have ended")
	if gone, stays := s.Count(t, `SELECT count(*) FROM grants WHERE subject = 'guest-1'`), s.Count(t, `SELECT count(*) FROM grants WHERE subject = 'guest-2' AND ended_at IS NULL`); gone != 0 || stays != 1 {
		t.Errorf("%d and %d", gone, stays)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'user.erased' AND channel = 'console' AND actor_id <> ''`); n != 1 {
		t.Errorf("said %d times", n)
	}
	if strings.Contains(s.log.String(), "guest-1") {
		t.Error("the log names the person")
	}
}

// R82: what a member does and cannot be written down does not happen: 503, and
// every table is as it was.
func TestWhatCannotBeNotedDoesNotHappenHere(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	s.allowed(t, brand, "guest-1")
	owner := people["owner"]
	var viewer string
	if err := s.Owner.QueryRow(t.Context(), `SELECT m.person_id::text FROM memberships m WHERE m.brand_id = 'lake' AND m.role = 'viewer'`).Scan(&viewer); err != nil {
		t.Fatal(err)
	}
	owner.invite(brand, "asked@example.com", tenants.Viewer)
	var invitation string
	if err := s.Owner.QueryRow(t.Context(), `SELECT id::text FROM invitations WHERE email = 'asked@example.com'`).Scan(&invitation); err != nil {
		t.Fatal(err)
	}
	s.drain(t)
	acts := []struct {
		to   string
		form url.Values
	}{
		{"members", url.Values{"email": {"x@example.com"}, "role": {"viewer"}}},
		{"members/" + viewer + "/role", url.Values{"role": {"support"}}},
		{"members/" + viewer + "/remove", nil},
		{"members/" + viewer + "/confirm", nil},
		{"members/" + viewer + "/vouch", nil},
		{"invitations/" + invitation + "/withdraw", nil},
		{"erase", url.Values{"subject": {"guest-1"}, "again": {"guest-1"}}},
		{"leave/export", nil},
		{"leave/close", url.Values{"id": {"lake"}}},
	}
	s.Exec(t, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$`)
	for _, how := range [][2]string{
		{`REVOKE INSERT ON audit_events FROM countersign_app`, `GRANT INSERT ON audit_events TO countersign_app`},
		{`CREATE TRIGGER a_full BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION full_disk()`, `DROP TRIGGER a_full ON audit_events`},
	} {
		s.Exec(t, how[0])
		before := s.everything(t)
		for _, act := range acts {
			if p := owner.post("/console/b/lake/"+act.to, act.form, "/console/b/lake/members"); p.status != http.StatusServiceUnavailable {
				t.Errorf("%s: %s: %d", how[0], act.to, p.status)
			}
			if s.everything(t) != before {
				t.Fatalf("%s: %s changed something", how[0], act.to)
			}
		}
		s.Exec(t, how[1])
	}
	if n := s.Count(t, `SELECT count(*) FROM one_time_links WHERE email = 'x@example.com'`); n != 0 {
		t.Error("an invitation went out")
	}
}

// B99: an invitation answers, and does, the same for somebody who is here already
// and for somebody who is not; and a passkey that is nobody's is told like one that
// is somebody's and does not fit.
func TestInvitingAndSigningInTellNobodyWhoIsHere(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	brand := owner.found("lake")
	s.become(t, "known@example.com", "Kim")
	s.drain(t)
	at := "/console/b/" + string(brand) + "/members"
	var answers []string
	for _, email := range []string{"known@example.com", "xnown@example.com"} {
		tables := fmt.Sprintf(`SELECT (SELECT count(*) FROM one_time_links) * 1000000 + (SELECT count(*) FROM invitations) * 10000
			+ (SELECT count(*) FROM notices) * 100 + (SELECT count(*) FROM audit_events WHERE brand_id = '%s')`, brand)
		before := s.Count(t, tables)
		p := owner.post(at, url.Values{"email": {email}, "role": {"viewer"}}, at)
		answers = append(answers, fmt.Sprint(p.status, p.location, len(p.body), s.Count(t, tables)-before))
		list := owner.open(at)
		answers[len(answers)-1] += fmt.Sprint(strings.Count(list.body, email))
		s.linkTo(t, email)
		s.drain(t)
	}
	if answers[0] != answers[1] {
		t.Errorf("%q", answers)
	}

	// A device that is nobody's, and one of Kim's whose signature is another's.
	stranger, thief := s.visitor(t), s.visitor(t)
	other := s.become(t, "other@example.com", "Otto")
	s.drain(t)
	thief.device = other.device
	link := stranger.signUp("gone@example.com")
	stranger.device.create(stranger.open(link).options()) // and never hands it in
	before := s.everything(t)
	var told []string
	for _, v := range []*visitor{stranger, thief} {
		p := v.open("/console/login").must(http.StatusOK)
		credential := stranger.device.get(p.options())
		if v == thief { // Otto's key over another's question
			credential = thief.device.get(s.visitor(t).open("/console/login").options())
		}
		p = v.post("/console/login", with(p.fields("/console/login"), "credential", credential), "/console/login")
		told = append(told, fmt.Sprint(p.status, len(p.body)))
	}
	if told[0] != told[1] {
		t.Errorf("%q", told)
	}
	if s.everything(t) != before {
		t.Error("a refused sign-in wrote something")
	}
}
