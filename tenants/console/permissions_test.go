package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

const (
	permissionsAt = lakePages + "permissions"
	onePermission = permissionsAt + "/one"
)

// permit adds a permission on its page.
func (v *visitor) permit(id string, pairs ...string) page {
	v.t.Helper()
	form := v.open(permissionsAt + "/new").must(http.StatusOK).filled(onePermission)
	form = with(form, "id", id, "description", "See your "+id)
	return v.post(onePermission, with(form, pairs...), permissionsAt+"/new")
}

// order is the card's, as the page shows it.
func (s *site) order(t *testing.T) string {
	t.Helper()
	var ids []string
	for _, scope := range s.Reload(t, "lake").Scopes {
		ids = append(ids, scope.ID)
	}
	return strings.Join(ids, " ")
}

// A permission is added, shown in the card's order, moved and changed; nothing is
// written over that was not seen.
func TestPermissions(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	owner.open(permissionsAt).must(http.StatusOK, "There is nothing yet", "countersign scope set --brand lake")
	for _, id := range []string{"boats:read", "boats:book", "a/b?c&amp=%2F"} {
		owner.permit(id).mustGo(permissionsAt + "?saved")
	}
	owner.open(permissionsAt).must(http.StatusOK, "boats:read", "boats:book", "a/b?c&amp;amp=%2F", "Sees", "Low")

	// An id that is there is not written over, and nothing typed is lost.
	p := owner.permit("boats:read", "description", "Sink all boats").must(http.StatusConflict, "with this id already")
	if p.valueOf("description") != "Sink all boats" || p.problemAt("id") == "" {
		t.Errorf("%q, %q", p.valueOf("description"), p.problemAt("id"))
	}
	if n := s.Count(t, `SELECT count(*) FROM brand_scopes WHERE description = 'Sink all boats'`); n != 0 {
		t.Error("it was written over")
	}
	owner.permit("Boats:read").must(http.StatusUnprocessableEntity, "only in capitals") // B84
	owner.permit("boats read", "description", "", "effect", "explodes").must(http.StatusUnprocessableEntity, "without space", "This is missing", "Choose one of these")

	// Up and down; pressed twice is once.
	up := url.Values{"id": {"boats:book"}, "place": {"0"}}
	owner.post(permissionsAt+"/move", up, permissionsAt).mustGo(permissionsAt)
	owner.post(permissionsAt+"/move", up, permissionsAt).mustGo(permissionsAt)
	if got := s.order(t); got != "boats:book boats:read a/b?c&amp=%2F" {
		t.Errorf("the order is %s", got)
	}
	for _, place := range []string{"-1", "3", "x", ""} {
		owner.post(permissionsAt+"/move", with(up, "place", place), permissionsAt).must(http.StatusBadRequest)
	}
	owner.post(permissionsAt+"/move", with(up, "id", "nothing", "place", "0"), permissionsAt).must(http.StatusBadRequest)

	// Two owners change the same one.
	at := onePermission + "?id=boats%3Aread"
	first, second := owner.open(at).filled(onePermission), owner.open(at).filled(onePermission)
	owner.post(onePermission, with(first, "impact", "high"), at).mustGo(permissionsAt + "?saved")
	p = owner.post(onePermission, with(second, "undo", "Row back"), at).must(http.StatusConflict, "Somebody else changed this")
	if p.valueOf("undo") != "Row back" || s.Count(t, `SELECT count(*) FROM brand_scopes WHERE brand_id = 'lake' AND impact = 'high' AND undo = ''`) != 1 {
		t.Error("one change undid the other")
	}
	owner.open(onePermission + "?id=nothing").must(http.StatusNotFound)
}

// The Brand's words in each language stand in the form; a language is promised
// only when every permission has it, and taken on one by one.
func TestPermissionsAreTranslated(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	owner.permit("boats:read").mustGo(permissionsAt + "?saved")
	const settings = lakePages + "settings"
	owner.post(settings, with(owner.open(settings).filled(settings), "languages", "zh-Hant"), settings).
		must(http.StatusUnprocessableEntity, "boats:read has no words in zh-Hant")
	at := onePermission + "?id=boats%3Aread"
	form := owner.open(at).filled(onePermission)
	p := owner.post(onePermission, with(form, "more.language", "zh_tw", "more.description", "看船"), at).must(http.StatusUnprocessableEntity)
	if p.problemAt("more.language") == "" || p.valueOf("more.description") != "看船" {
		t.Errorf("%q, %q", p.problemAt("more.language"), p.valueOf("more.description"))
	}
	owner.post(onePermission, with(p.filled(onePermission), "more.language", "zh-Hant"), at).mustGo(permissionsAt + "?saved")
	owner.post(settings, with(owner.open(settings).filled(settings), "languages", "zh-Hant"), settings).mustGo(settings + "?saved")

	// What stands in its own field is not lost to a second one.
	p = owner.open(at).must(http.StatusOK, "In zh-Hant")
	p = owner.post(onePermission, with(p.filled(onePermission), "more.language", "zh-Hant", "more.description", "別的"), at).must(http.StatusUnprocessableEntity, "stands there twice")
	if p.valueOf("texts.zh-Hant.description") != "看船" {
		t.Errorf("lost: %q", p.valueOf("texts.zh-Hant.description"))
	}
	// A promised language is owed, and the preview speaks it.
	form = with(owner.open(at).filled(onePermission), "texts.zh-Hant.description", "")
	owner.post(onePermission, form, at).must(http.StatusUnprocessableEntity, "zh-Hant is one of your languages")
	owner.post(permissionsAt+"/preview", with(form, "texts.zh-Hant.description", "看所有的船", "preview", "zh-Hant"), at).
		must(http.StatusOK, "看所有的船", "的預覽")
	if n := s.Count(t, `SELECT count(*) FROM brand_scopes WHERE texts::text LIKE '%看所有的船%'`); n != 0 {
		t.Error("the preview saved it")
	}
}

// Retiring says how many people it concerns, keeps their grants, and comes back
// under a fresh touch alone; every owner hears of both, once.
func TestPermissionsRetireAndReturn(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner := people["owner"]
	for _, id := range []string{"boats:read", "boats:book"} {
		owner.permit(id).mustGo(permissionsAt + "?saved")
	}
	s.letIn(t, brand)
	a := s.Authority(nil)
	for _, who := range []string{"guest-1", "guest-2"} {
		started := authoritytest.Begin(t, a, s.Reload(t, brand), authority.Caller{Agent: authoritytest.Agent, Sub: who}, "boats:read", "boats:book")
		authoritytest.Approve(t, a, s.Reload(t, brand), started, who, "boats:read")
	}
	id := url.Values{"id": {"boats:read"}}
	owner.open(onePermission+"?id=boats%3Aread").must(http.StatusOK, "2 customers allow an agent this today")
	owner.open(onePermission+"?id=boats%3Abook").must(http.StatusOK, "0 customers allow an agent this today")
	for _, role := range []string{"security", "support", "viewer"} {
		people[role].post(permissionsAt+"/retire", id, permissionsAt).must(http.StatusForbidden, refusedByRole)
	}
	people["stranger"].post(permissionsAt+"/retire", id, permissionsAt).must(http.StatusNotFound)
	owner.post("/console/b/river/permissions/retire", id, permissionsAt).must(http.StatusNotFound)
	s.drain(t)
	for range 2 { // twice is once
		owner.post(permissionsAt+"/retire", id, permissionsAt).mustGo(permissionsAt + "?saved")
	}
	if got := s.order(t); got != "boats:book" {
		t.Errorf("the card holds %s", got)
	}
	if n := s.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'lake' AND ended_at IS NULL`); n != 2 {
		t.Errorf("%d grants live", n)
	}
	if m := s.letter(t); !strings.Contains(m.Subject, "Permission retired") {
		t.Errorf("owners read %s", m.Subject)
	}
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = 'scope.retired'`); n != 1 {
		t.Errorf("%d notices", n)
	}
	owner.open(onePermission+"?id=boats%3Aread").must(http.StatusOK, "2 customers had allowed an agent this")
	s.Clock.Advance(6 * time.Minute)
	if p := owner.post(permissionsAt+"/restore", id, onePermission); p.status != http.StatusSeeOther || !strings.HasPrefix(p.location, "/console/touch") {
		t.Fatalf("restored without a touch: %d to %s", p.status, p.location)
	}
	owner.touch()
	owner.post(permissionsAt+"/restore", id, permissionsAt).mustGo(permissionsAt + "?saved")
	if got := s.order(t); got != "boats:book boats:read" {
		t.Errorf("the card holds %s", got)
	}
	owner.post(permissionsAt+"/retire", url.Values{"id": {"nothing"}}, permissionsAt).must(http.StatusNotFound)
}

// What a retired permission lacks by now is told on its page.
func TestRestoringTellsWhatIsOwed(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	owner.permit("boats:read").mustGo(permissionsAt + "?saved")
	id := url.Values{"id": {"boats:read"}}
	owner.post(permissionsAt+"/retire", id, permissionsAt).mustGo(permissionsAt + "?saved")
	s.Exec(t, `UPDATE brands SET languages = '{de}' WHERE id = 'lake'`)
	s.Brands.Forget("lake")
	p := owner.post(permissionsAt+"/restore", id, permissionsAt).must(http.StatusUnprocessableEntity)
	if !strings.Contains(p.problemAt("texts.de.description"), "de is one of your languages") {
		t.Errorf("said: %q\n%s", p.problemAt("texts.de.description"), p.body)
	}
	all, err := tenants.Scopes(t.Context(), s.DB, "lake")
	if err != nil || all[0].RetiredAt == nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// Whoever looks at the permissions sees in which terms agents may ask for them more
// exactly (R39); a Brand without types sees nothing about them.
func TestPermissionsShowTheTypesOfDetails(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	owner.permit("boats:book").mustGo(permissionsAt + "?saved")
	if p := owner.open(permissionsAt).must(http.StatusOK); strings.Contains(p.body, "How exactly agents may ask") {
		t.Error("there are none")
	}
	d := authoritytest.StayCharge()
	d.Scope, d.Words = "boats:book", "<b>Up</b> to {amount} {currency}[ at {shop}]"
	if err := tenants.SaveDetailType(t.Context(), s.Authority(nil).Editor(authority.ByOperator()), "lake", d); err != nil {
		t.Fatal(err)
	}
	owner.open(permissionsAt).must(http.StatusOK, "How exactly agents may ask", "&lt;b&gt;Up&lt;/b&gt; to {amount}", "stay_charge", "boats:book", "detail list", "detail-types")
}
