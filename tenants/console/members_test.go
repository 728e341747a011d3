package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// person is the id of whoever has the address.
func (s *site) person(t *testing.T, email string) uuid.UUID {
	t.Helper()
	p, err := tenants.PersonByEmail(t.Context(), s.DB, email)
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

func memberPath(brand tenants.BrandID, id uuid.UUID, what string) string {
	return "/console/b/" + string(brand) + "/members/" + id.String() + what
}

// An owner cannot change the members behind another owner's back (B98): each gets
// mail, whoever is removed too, and the trail says who did it.
func TestOwnersHearOfEveryChange(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner := people["owner"]
	second := s.visitor(t)
	second.useLink(owner.invite(brand, "second@example.com", tenants.Owner), "Second").mustGo("/console/keys")
	second.secure()
	s.drain(t)
	hear := func(what string, whom ...string) {
		t.Helper()
		left := make(map[string]bool)
		for _, w := range whom {
			left[w] = true
		}
		for len(left) > 0 {
			m := s.letter(t)
			if !strings.Contains(m.Subject, what) {
				continue
			}
			if !left[m.To] {
				t.Errorf("%s heard of %s", m.To, what)
			}
			if !strings.Contains(m.Text, "Olga") {
				t.Errorf("it does not say who: %s", m.Text)
			}
			delete(left, m.To)
		}
	}
	viewer := s.person(t, "viewer@example.com")
	owner.post(memberPath(brand, viewer, "/role"), url.Values{"role": {"support"}}, "").mustGo("/console/b/lake/members")
	hear("role changed", "owner@example.com", "second@example.com")
	owner.post(memberPath(brand, s.person(t, "second@example.com"), "/remove"), nil, "").must(http.StatusSeeOther)
	hear("removed", "owner@example.com", "second@example.com")
	second.open("/console/b/lake/").must(http.StatusNotFound) // at once
	owner.open("/console/b/lake/").must(http.StatusOK, "Member removed", "role changed", "Olga")
	n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event = 'member.removed' AND actor = 'admin' AND actor_id = $1`, s.person(t, "owner@example.com").String())
	if n != 1 {
		t.Errorf("%d facts in the trail", n)
	}
	// None is left to wait for ever. That a letter has left is written down after the
	// mail server took it, so a test that has read it may be ahead of that.
	s.drain(t)
}

// A notice that did not leave is sent again, by whoever comes next; it is not sent
// twice at once.
func TestNoticesOutliveTheirSender(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	brand := owner.found("lake")
	act := tenants.Act{Brand: brand, By: s.person(t, "owner@example.com"), Event: "member.invited", Tell: true, Now: s.Clock.Now()}
	act.Record = func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, by uuid.UUID, event string, detail map[string]any) error {
		return console.Record(s.console, ctx, tx, brand, by, event, detail)
	}
	if _, err := tenants.Invite(t.Context(), s.DB, act, "x@example.com", tenants.Viewer); err != nil {
		t.Fatal(err)
	}
	claim := func() int {
		t.Helper()
		due, err := tenants.ClaimNotices(t.Context(), s.DB, brand, s.Clock.Now(), 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(due)
	}
	if first, second := claim(), claim(); first != 1 || second != 0 {
		t.Errorf("claimed %d, then %d", first, second)
	}
	s.Clock.Advance(6 * time.Minute) // whoever claimed it has died
	if err := s.console.Upkeep(t.Context(), brand); err != nil {
		t.Fatal(err)
	}
	for m := s.letter(t); !strings.Contains(m.Subject, "Member invited"); m = s.letter(t) {
		t.Logf("before it came: %s", m.Subject)
	}
}

// The last owner stays: by role, by removal, and when two owners remove each other
// at the same moment.
func TestTheLastOwnerStays(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, me := people["owner"], s.person(t, "owner@example.com")
	for what, form := range map[string]url.Values{"/remove": nil, "/role": {"role": {"viewer"}}} {
		owner.post(memberPath(brand, me, what), form, "").must(http.StatusConflict, "must keep an owner")
	}
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind IN ('member.removed', 'member.role_changed')`); n != 0 {
		t.Errorf("%d notices of what did not happen", n)
	}
	for range 5 {
		second := s.become(t, uuid.NewString()+"@example.com", "Second")
		var id uuid.UUID
		if err := s.Owner.QueryRow(t.Context(), `SELECT id FROM people ORDER BY created_at DESC, codes_kept_at DESC LIMIT 1`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		id = uuid.UUID(second.device.keys[0].user)
		s.Exec(t, `INSERT INTO memberships VALUES ('lake', $1, 'owner', $2, $2)`, id, s.Clock.Now())
		var both sync.WaitGroup
		both.Go(func() { owner.post(memberPath(brand, id, "/remove"), nil, "") })
		both.Go(func() { second.post(memberPath(brand, me, "/remove"), nil, "") })
		both.Wait()
		if n := s.Count(t, `SELECT count(*) FROM memberships WHERE brand_id = 'lake' AND role = 'owner'`); n != 1 {
			t.Fatalf("%d owners are left", n)
		}
		s.Exec(t, `DELETE FROM memberships WHERE brand_id = 'lake' AND person_id = $1`, id)
		s.Exec(t, `INSERT INTO memberships VALUES ('lake', $1, 'owner', $2, $2) ON CONFLICT DO NOTHING`, me, s.Clock.Now())
	}
}

// An invitation is for one person, for a while, until it is withdrawn, and gives
// the role it was given.
func TestInvitations(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	brand := owner.found("lake")
	at := "/console/b/lake/members"

	// Somebody who is known already joins as themselves.
	ann := s.become(t, "ann@example.com", "Ann")
	link := owner.invite(brand, "ann@example.com", tenants.Support)
	token := strings.TrimPrefix(link, "/console/link?t=")
	eve := s.become(t, "eve@example.com", "Eve")
	eve.open(link).must(http.StatusForbidden, "for somebody else")
	eve.post("/console/link/accept", url.Values{"t": {token}}, "").must(http.StatusForbidden)
	p := s.visitor(t).open(link)
	p.mustGo("/console/login?back=" + url.QueryEscape(link))
	// The link alone makes no passkey for an account that exists.
	form := url.Values{"t": {token}, "credential": {ann.device.create(ann.open("/console/keys").options())}}
	s.visitor(t).post("/console/link", form, "").must(http.StatusBadRequest)
	ann.open(link).must(http.StatusOK, "Café du Lac")
	ann.post("/console/link/accept", url.Values{"t": {token}}, "").mustGo("/console/b/lake/")
	ann.open("/console/b/lake/").must(http.StatusOK)
	ann.post("/console/link/accept", url.Values{"t": {token}}, "").must(http.StatusGone)
	owner.post(at, url.Values{"email": {"ANN@example.com"}, "role": {"owner"}}, "").must(http.StatusUnprocessableEntity, "member already")

	// A later invitation takes the former one's place; a withdrawn one is none.
	former := owner.invite(brand, "ben@example.com", tenants.Viewer)
	link = owner.invite(brand, "ben@example.com", tenants.Viewer)
	s.visitor(t).useLink(former, "Ben").must(http.StatusGone)
	var id uuid.UUID
	if err := s.Owner.QueryRow(t.Context(), `SELECT id FROM invitations WHERE email = 'ben@example.com' AND withdrawn_at IS NULL`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	owner.open(at).must(http.StatusOK, "ben@example.com", id.String())
	owner.post("/console/b/lake/invitations/"+id.String()+"/withdraw", nil, "").mustGo(at)
	ben := s.visitor(t)
	ben.useLink(link, "Ben").must(http.StatusGone)
	if n := s.Count(t, `SELECT count(*) FROM people WHERE email = 'ben@example.com'`); n != 0 {
		t.Error("an account came of a withdrawn invitation")
	}

	// Seven days and no longer.
	link = owner.invite(brand, "late@example.com", tenants.Viewer)
	s.Clock.Advance(7*24*time.Hour - time.Minute)
	s.visitor(t).open(link).must(http.StatusOK)
	s.Clock.Advance(time.Minute)
	s.visitor(t).open(link).must(http.StatusGone)

	// No role but those there are.
	owner.login()
	owner.post(at, url.Values{"email": {"x@example.com"}, "role": {"king"}}, at).must(http.StatusBadRequest)
	owner.post(memberPath(brand, s.person(t, "ann@example.com"), "/role"), url.Values{"role": {"king"}}, at).must(http.StatusBadRequest)
	if n := s.Count(t, `SELECT count(*) FROM memberships WHERE brand_id = 'lake' AND role = 'support'`); n != 1 {
		t.Error("Ann has another role now")
	}
}

// A person sees their own Brands across the fence and nobody else's, and the
// fence holds for all that members have.
func TestMembershipsStayBehindTheFence(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	people["viewer"].open("/console/brands").must(http.StatusOK, "Café du Lac")
	stan := s.person(t, "stranger@example.com")
	mine, err := tenants.Memberships(t.Context(), s.DB, stan)
	if err != nil || len(mine) != 1 || mine[0].Brand != "river" || mine[0].Role != tenants.Owner {
		t.Errorf("%+v, %v", mine, err)
	}
	// Without a name the view is empty, whatever is asked of it.
	for _, view := range []string{"person_brands", "person_recoveries", "memberships", "invitations", "notices", "recoveries"} {
		var n int
		if err := s.DB.Pool().QueryRow(t.Context(), `SELECT count(*) FROM `+view).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s shows %d rows to nobody, %v", view, n, err)
		}
	}
	// The tables' owner need not be a superuser for the views to work.
	s.Exec(t, `DO $$ BEGIN CREATE ROLE console_test_owner NOSUPERUSER NOBYPASSRLS; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	for _, table := range []string{"memberships", "recoveries", "people", "brands", "person_brands", "person_recoveries"} {
		s.Exec(t, `ALTER TABLE `+table+` OWNER TO console_test_owner`)
	}
	for _, table := range []string{"memberships", "recoveries"} {
		s.Exec(t, `ALTER POLICY own_rows ON `+table+` TO console_test_owner`)
	}
	if mine, err = tenants.Memberships(t.Context(), s.DB, stan); err != nil || len(mine) != 1 {
		t.Errorf("under an ordinary owner: %+v, %v", mine, err)
	}
}

// R82: what cannot be written into the trail is not done, and nobody is told that
// it was.
func TestNothingHappensBesideTheTrail(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	viewer := s.person(t, "viewer@example.com")
	before := s.Count(t, `SELECT count(*) FROM notices`)
	s.Exec(t, `REVOKE INSERT ON audit_events FROM countersign_app`)
	owner := people["owner"]
	at := "/console/b/lake/members"
	for path, form := range map[string]url.Values{
		at: {"email": {"x@example.com"}, "role": {"viewer"}}, memberPath(brand, viewer, "/role"): {"role": {"owner"}},
		memberPath(brand, viewer, "/remove"): nil, memberPath(brand, viewer, "/vouch"): nil,
		"/console/new": {"organisation": {"L"}, "brand": {"B"}, "id": {"other"}},
	} {
		if p := owner.post(path, form, at); p.status < 500 {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	if n := s.Count(t, `SELECT count(*) FROM memberships WHERE brand_id = 'lake' AND role = 'viewer'`); n != 1 {
		t.Error("the viewer changed")
	}
	if n := s.Count(t, `SELECT (SELECT count(*) FROM invitations WHERE email = 'x@example.com') + (SELECT count(*) FROM brands WHERE id = 'other') +
		(SELECT count(*) FROM one_time_links WHERE purpose = 'restore')`); n != 0 {
		t.Errorf("%d things were made", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM notices`); n != before {
		t.Errorf("%d notices", n-before)
	}
}

// The owners hear who has come, and who has come back: the invitation and the vouching
// were one thing, that somebody took them up is another. Whoever comes need not be told.
func TestOwnersHearWhoComes(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	brand := owner.found("lake")
	s.domain(t, brand, "lake.example")
	vera := s.visitor(t)
	hear := func(event, subject, who string) { // the owner alone
		t.Helper()
		m := s.letter(t)
		for ; !strings.Contains(m.Subject, subject); m = s.letter(t) {
			t.Logf("before it came: %s", m.Subject)
		}
		if m.To != "owner@example.com" || !strings.Contains(m.Text, who) {
			t.Errorf("%s heard of %s: %s", m.To, event, m.Text)
		}
		if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = $1`, event); n != 1 {
			t.Errorf("%d letters of %s", n, event)
		}
		s.drain(t)
		s.Exec(t, `DELETE FROM notices`)
	}
	// By an invitation's passkey, and as somebody who is known.
	vera.useLink(owner.invite(brand, "vera@example.com", tenants.Owner), "Vera").mustGo("/console/keys")
	vera.secure()
	hear("member.joined", "Member joined", "Vera")
	sami := s.become(t, "sami@example.com", "Sami")
	link := owner.invite(brand, "sami@example.com", tenants.Support)
	owner.post(memberPath(brand, s.person(t, "vera@example.com"), "/role"), url.Values{"role": {"viewer"}}, "").must(http.StatusSeeOther)
	s.drain(t)
	sami.post("/console/link/accept", url.Values{"t": {tokenOf(link)}}, "").must(http.StatusSeeOther)
	hear("member.joined", "Member joined", "Sami")
	// By an owner's word, and by a wait.
	owner.post(memberPath(brand, s.person(t, "sami@example.com"), "/vouch"), nil, "").must(http.StatusSeeOther)
	link = s.linkTo(t, "sami@example.com")
	s.drain(t)
	s.visitor(t).useLink(link, "").mustGo("/console/keys")
	hear("member.restored", "came back with a new passkey", "Sami")
	s.Exec(t, `UPDATE memberships SET role = 'owner' WHERE person_id = $1`, s.person(t, "vera@example.com"))
	s.comeBack(t, "vera@example.com", brand, "lake.example")
	hear("member.restored", "came back with a new passkey", "Vera")

	// What the trail has no room for is not told either.
	owner.login()
	link = owner.invite(brand, "ben@example.com", tenants.Viewer)
	s.drain(t)
	s.Exec(t, `REVOKE INSERT ON audit_events FROM countersign_app`)
	if p := s.visitor(t).useLink(link, "Ben"); p.status < 500 {
		t.Errorf("status %d", p.status)
	}
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = 'member.joined'`); n != 0 {
		t.Errorf("%d letters of what did not happen", n)
	}
}

// One Brand's owners cannot have the service write to the whole world, and what one Brand
// has used up is not another's.
func TestInvitationsAreCounted(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	owner.found("river")
	send := func(brand string) int {
		at := "/console/b/" + brand + "/members"
		return owner.post(at, url.Values{"email": {uuid.NewString() + "@example.com"}, "role": {"viewer"}}, at).status
	}
	sent := 0
	for send("lake") == http.StatusSeeOther {
		if sent++; sent > 100 {
			t.Fatal("there is no end")
		}
	}
	if got := send("lake"); got != http.StatusTooManyRequests || sent < 10 {
		t.Errorf("after %d: %d", sent, got)
	}
	if n := s.Count(t, `SELECT count(*) FROM invitations WHERE brand_id = 'lake'`); n != sent {
		t.Errorf("%d invitations of %d", n, sent)
	}
	if got := send("river"); got != http.StatusSeeOther {
		t.Errorf("at the other Brand: %d", got)
	}
}

// Nobody takes up all names: what one person makes is counted, and by no other's count.
func TestNewBrandsAreCounted(t *testing.T) {
	s := newSite(t)
	owner, other := s.become(t, "owner@example.com", "Olga"), s.become(t, "other@example.com", "Otto")
	found := func(v *visitor) int {
		id := "b-" + uuid.NewString()
		return v.post("/console/new", url.Values{"organisation": {"Lake Ltd"}, "brand": {"Lake"}, "id": {id}}, "/console/new").status
	}
	made := 0
	for found(owner) == http.StatusSeeOther {
		if made++; made > 100 {
			t.Fatal("there is no end")
		}
	}
	if got := found(owner); got != http.StatusTooManyRequests || made < 10 {
		t.Errorf("after %d: %d", made, got)
	}
	if got := found(other); got != http.StatusSeeOther {
		t.Errorf("somebody else: %d", got)
	}
}
