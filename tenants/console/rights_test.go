package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"github.com/google/uuid"
)

const (
	refusedByRole = "Your role does not allow this"
	signedOut     = "Please sign in again"
)

// team is a Brand with one member of every role, and a stranger who owns another.
func team(t *testing.T, s *site) (tenants.BrandID, map[string]*visitor) {
	t.Helper()
	owner := s.become(t, "owner@example.com", "Olga")
	brand := owner.found("lake")
	out := map[string]*visitor{"owner": owner}
	for _, role := range []tenants.Role{tenants.Security, tenants.Support, tenants.Viewer} {
		email := string(role) + "@example.com"
		v := s.visitor(t)
		v.useLink(owner.invite(brand, email, role), string(role)).mustGo("/console/keys")
		v.secure()
		out[string(role)] = v
	}
	out["stranger"] = s.become(t, "stranger@example.com", "Stan")
	out["stranger"].found("river")
	s.drain(t)
	return brand, out
}

var gaps = regexp.MustCompile(`\{\w+\}`)

// path fills the pattern's gaps.
func path(pattern string, brand tenants.BrandID) (method, to string) {
	method, to, _ = strings.Cut(pattern, " ")
	id := uuid.NewString()
	to = strings.NewReplacer("{brand}", string(brand), "{$}", "", "{host}", "nowhere.example").Replace(to)
	return method, gaps.ReplaceAllLiteralString(to, id)
}

func (v *visitor) send(method, to string) page {
	v.t.Helper()
	if method == http.MethodGet {
		return v.open(to)
	}
	return v.post(to, nil, "")
}

// B98: every page times every role against the rights table, at the door itself:
// what no button offers is posted directly.
func TestEveryDoorKeepsTheRightsTable(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	nobody := s.visitor(t)
	unsecured := s.visitor(t)
	unsecured.useLink(unsecured.signUp("new@example.com"), "New").mustGo("/console/keys")
	doors := console.Doors()
	slices.SortStableFunc(doors, func(a, b console.Door) int { // signing out ends the walk
		return strings.Count(a.Pattern, "/logout") - strings.Count(b.Pattern, "/logout")
	})
	for _, d := range doors {
		method, to := path(d.Pattern, brand)
		if d.Anybody {
			continue
		}
		p := nobody.send(method, to)
		if in := method == http.MethodGet && p.status == http.StatusSeeOther && strings.HasPrefix(p.location, "/console/login") ||
			method == http.MethodPost && p.status == http.StatusForbidden && strings.Contains(p.body, signedOut); !in {
			t.Errorf("%s let nobody in: %d to %s", d.Pattern, p.status, p.location)
		}
		if p := unsecured.send(method, to); !d.Early && d.Action != console.ChangeKeys && (p.status != http.StatusSeeOther || p.location != "/console/keys") {
			t.Errorf("%s let somebody in whom a lost device locks out: %d", d.Pattern, p.status)
		}
		if !d.Member {
			continue
		}
		if p := people["stranger"].send(method, to); p.status != http.StatusNotFound {
			t.Errorf("%s tells a stranger %d", d.Pattern, p.status)
		}
		for _, role := range tenants.Roles() {
			p := people[string(role)].send(method, to)
			refused := p.status == http.StatusForbidden && strings.Contains(p.body, refusedByRole)
			if may := slices.Contains(d.Roles, role); may == refused || p.status >= 500 {
				t.Errorf("%s for %s: %d, but the table says %v", d.Pattern, role, p.status, may)
			}
		}
	}
	// Later the passkey's touch is no longer fresh.
	s.Clock.Advance(5 * time.Minute)
	for _, d := range doors {
		method, to := path(d.Pattern, brand)
		if method != http.MethodPost || d.Anybody || strings.Contains(to, "logout") {
			continue
		}
		p := people["owner"].send(method, to)
		if asked := p.status == http.StatusSeeOther && strings.HasPrefix(p.location, "/console/touch"); asked != d.Touch {
			t.Errorf("%s: touch asked %v, but the table says %v (%d to %s)", d.Pattern, asked, d.Touch, p.status, p.location)
		}
		if d.Member && !slices.Contains(d.Roles, tenants.Viewer) {
			people["viewer"].send(method, to).must(http.StatusForbidden, refusedByRole) // not asked in vain
		}
	}
	people["viewer"].send(http.MethodPost, "/console/logout").mustGo("/console")
}

// B98: what means control of the Brand is the owners', under a fresh touch, and
// all of them hear of it. Written out here, so that a slip in the table is one.
func TestControlIsTheOwners(t *testing.T) {
	for _, a := range []console.Action{
		console.ChangeLogin, console.ChangeInterface, console.InviteMember, console.WithdrawInvitation,
		console.ChangeMember, console.RemoveMember, console.ConfirmMember, console.VouchForMember,
		console.ChangeDomains, console.ApproveChange, console.ChangeAdminKeys,
	} {
		r := console.RightOf(a)
		if !r.Member || !r.Touch || !r.Tells || !slices.Equal(r.Roles, []tenants.Role{tenants.Owner}) {
			t.Errorf("%s: %+v", a, r)
		}
		for _, role := range tenants.Roles() {
			if console.May(role, a) != (role == tenants.Owner) {
				t.Errorf("%s may %s", role, a)
			}
		}
	}
	if console.May(tenants.Owner, "something else") || console.May(tenants.Owner, console.Work) {
		t.Error("an owner may what no Brand gives")
	}
}

// B98: a key with the right admin does what is the owners', so security neither
// makes one nor is handed a fresh one, but ends it at once.
func TestKeysThatChangeTheBrandAreTheOwners(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	owner, security, at := people["owner"], people["security"], lake+"api-keys"
	const box = `name="right-admin"`
	owner.open(at).must(http.StatusOK, box)
	security.open(at).must(http.StatusOK, `name="right-introspect"`).mustNot(box)
	form := func(v *visitor) url.Values {
		return url.Values{"once": v.open(at).fields(at)["once"], "name": {"deploy"}, "right-introspect": {"yes"}, "right-admin": {"yes"}}
	}
	keys := func() int { return s.Count(t, `SELECT count(*) FROM api_keys WHERE brand_id = 'lake'`) }
	security.post(at, form(security), at).must(http.StatusForbidden, refusedByRole)
	if n := keys(); n != 0 {
		t.Fatalf("security made %d", n)
	}
	id := tenants.KeyID(owner.post(at, form(owner), at).secret())
	if n := s.notices(t, "apikey.created"); n != 1 {
		t.Errorf("%d notices of one key", n)
	}
	one := at + "/" + id
	owner.open(one).must(http.StatusOK, one+"/rotate")
	security.open(one).must(http.StatusOK, one+"/revoke").mustNot(one + "/rotate")
	security.post(one+"/rotate", url.Values{"once": {uuid.NewString()}}, one).must(http.StatusForbidden, refusedByRole)
	if n := keys(); n != 1 {
		t.Fatalf("security was handed another: %d keys", n)
	}
	fresh := tenants.KeyID(owner.post(one+"/rotate", url.Values{"once": {uuid.NewString()}}, one).secret())
	for _, key := range []string{id, fresh} {
		security.post(at+"/"+key+"/revoke", nil, "").mustGo(at)
	}
	s.Clock.Advance(2 * time.Second)
	if n := s.Count(t, `SELECT count(*) FROM api_keys WHERE brand_id = 'lake' AND revoked_at <= $1`, s.Clock.Now()); n != 2 {
		t.Errorf("security ended %d of 2", n)
	}
}

// The last step of the way to the first agent leads there too, for those who may.
func TestTheChecklistLeadsToTheTry(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	const step = `<b><a href="` + lake + `try">Try it</a></b>`
	people["owner"].open(lake).must(http.StatusOK, step)
	people["viewer"].open(lake).must(http.StatusOK, "<b>Try it</b>").mustNot(step)
}

// A page that has no line in the rights table does not come to be.
func TestAPageWithoutARightCannotBe(t *testing.T) {
	s := newSite(t)
	defer func() {
		if recover() == nil {
			t.Error("it was registered")
		}
	}()
	s.console.RegisterStray()
}

// Every page of a Brand names the Brand in its address, and none of it is reached
// under another's.
func TestDoorsAreInOrder(t *testing.T) {
	for _, d := range console.Doors() {
		if of := strings.Contains(d.Pattern, "/console/b/{brand}/"); of != d.Member {
			t.Errorf("%s: in a Brand %v, for members %v", d.Pattern, of, d.Member)
		}
		if d.Member && len(d.Roles) == 0 {
			t.Errorf("%s is for nobody", d.Pattern)
		}
	}
}
