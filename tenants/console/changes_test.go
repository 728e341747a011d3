package console_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

func mustParse(t *testing.T, id string) uuid.UUID {
	t.Helper()
	out, err := uuid.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// program is a Brand's own, with an API key.
func (s *site) program() tenants.Editor {
	return s.Authority(nil).Editor(authority.By{Actor: "admin", ID: "abcdefghijkl", Channel: "api"})
}

func (s *site) askKey(t *testing.T) string {
	t.Helper()
	c, err := s.asks.AskKey(t.Context(), s.program(), "harbor-hotel", tenants.KeyDraft{Name: "checkout", Rights: []tenants.Right{"introspect"}}, "abcdefghijkl", "api")
	if err != nil {
		t.Fatal(err)
	}
	return c.ID.String()
}

var secretShape = regexp.MustCompile(`cs_[a-z2-7]{12}_\w+`)

// A key that a program asked for comes about by an owner's touch, and that owner
// alone sees its secret, once.
func TestAnOwnerApprovesAKeyAndSeesItOnce(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "changes"
	owner.open(at).must(http.StatusOK, "Nothing waits")
	id := s.askKey(t)
	owner.open(hotel).must(http.StatusOK, "A change waits for an owner")
	owner.open(at).must(http.StatusOK, "A new API key", "API key abcdefghijkl", "checkout", "introspect", "shown once")

	approve := at + "/" + id + "/approve"
	s.Clock.Advance(6 * time.Minute)
	if to := owner.post(approve, nil, at).must(http.StatusSeeOther).location; !strings.HasPrefix(to, "/console/touch") {
		t.Errorf("approved without a touch: %s", to)
	}
	owner.touch().must(http.StatusSeeOther)
	p := owner.post(approve, nil, at).must(http.StatusOK, "You see it now and never again")
	secret := secretShape.FindString(p.body)
	if _, err := tenants.NewCredentials(s.DB, s.Clock.Now).Check(t.Context(), "harbor-hotel", secret, tenants.RightIntrospect); err != nil {
		t.Errorf("the key does not open: %v", err)
	}
	s.told(t, "change.applied", 1)
	if strings.Contains(owner.open(at).body, secret) || strings.Contains(s.log.String(), secret) {
		t.Error("the secret is shown again")
	}
	p = owner.post(approve, nil, at).must(http.StatusConflict, "decided already")
	if secretShape.MatchString(p.body) {
		t.Error("a second press made a second key")
	}
	owner.post(at+"/"+id+"/reject", nil, at).must(http.StatusConflict, "decided already")
	owner.open(at).must(http.StatusOK, "Approved", "Nothing waits")
	s.told(t, "change.applied", 1)
}

// A key's wish may be refused; then nobody has it.
func TestAnOwnerRejectsAChange(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "changes"
	id := s.askKey(t)
	s.Clock.Advance(6 * time.Minute) // saying no needs no touch
	owner.post(at+"/"+id+"/reject", nil, at).mustGo(at)
	s.told(t, "change.rejected", 1)
	owner.touch().must(http.StatusSeeOther)
	owner.post(at+"/"+id+"/approve", nil, at).must(http.StatusConflict, "decided already")
	owner.open(at).must(http.StatusOK, "Rejected")
	if n := s.Count(t, `SELECT count(*) FROM api_keys`); n != 0 {
		t.Errorf("%d keys", n)
	}

	old := s.askKey(t)
	s.Clock.Advance(8 * 24 * time.Hour)
	owner.login().must(http.StatusSeeOther)
	owner.post(at+"/"+old+"/approve", nil, at).must(http.StatusConflict, "its time is over")
	owner.open(at).must(http.StatusOK, "Nobody decided in time")
}

// What a change was asked about may have moved on: then it does not come about.
func TestAChangeThatIsOutOfDate(t *testing.T) {
	s, owner := hotelWithGrants(t)
	at := hotel + "changes"
	c, err := s.asks.AskInterface(t.Context(), s.program(), tenants.Site{PublicURL: origin}, "harbor-hotel",
		tenants.Interface{Mode: tenants.Fronted, URL: fronted}, "abcdefghijkl", "api")
	if err != nil {
		t.Fatal(err)
	}
	owner.open(at).must(http.StatusOK, "Move the interface", fronted, "ends every living permission")
	split := move("split", "https://other.hotel.example")
	p := owner.open(split)
	owner.post(hotel+"interface/move", with(p.fields(hotel+"interface/move"), "confirm", "harbor-hotel"), split).mustGo(hotel + "interface?moved")
	owner.post(at+"/"+c.ID.String()+"/approve", nil, at).must(http.StatusConflict, "has changed since")
	s.told(t, "change.applied", 0)
	if i, err := tenants.InterfaceOf(t.Context(), s.DB, "harbor-hotel"); err != nil || i.Mode != tenants.Split {
		t.Errorf("%+v, %v", i, err)
	}
}

// A login that a program asked to make live goes live with the owner's yes.
func TestAnOwnerApprovesALogin(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	id := owner.save(hotel+"login", draftFor("https://login.example"))
	c, err := s.asks.AskLive(t.Context(), s.program(), "harbor-hotel", mustParse(t, id), "abcdefghijkl", "api")
	if err != nil {
		t.Fatal(err)
	}
	at := hotel + "changes"
	owner.open(at).must(http.StatusOK, "Make a sign-in live", "https://login.example", "customer_id")
	owner.post(at+"/"+c.ID.String()+"/approve", nil, at).mustGo(at + "?applied")
	if l, err := tenants.Login(t.Context(), s.DB, s.Master, "harbor-hotel"); err != nil || l.ID.String() != id {
		t.Errorf("%v, %v", l.ID, err)
	}
}

// Two owners at once: one of them makes it so, and one key comes about.
func TestAChangeIsApprovedOnce(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	second := s.become(t, "otto@example.com", "Otto")
	s.own(t, second, "harbor-hotel", tenants.Owner)
	id := s.askKey(t)
	var both sync.WaitGroup
	for _, v := range []*visitor{owner, second} {
		both.Go(func() { v.post(hotel+"changes/"+id+"/approve", nil, hotel+"changes") })
	}
	both.Wait()
	if n := s.Count(t, `SELECT count(*) FROM api_keys`); n != 1 {
		t.Errorf("%d keys", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = 'change.applied'`); n != 2 { // one for each owner
		t.Errorf("%d notices", n)
	}
}

// Another Brand's change is none, and waiting ones are on every page of the list.
func TestChangesAreTheBrandsOwn(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	stranger := s.become(t, "stan@example.com", "Stan")
	s.own(t, stranger, "fern-and-fell", tenants.Owner)
	id := s.askKey(t)
	const shop = "/console/b/fern-and-fell/changes"
	for _, do := range []string{"/approve", "/reject"} {
		stranger.post(shop+"/"+id+do, nil, shop).must(http.StatusNotFound)
	}
	stranger.open(shop).must(http.StatusOK, "Nothing waits")
	for range 60 {
		s.Exec(t, `INSERT INTO pending_changes (brand_id, id, kind, asked_by, channel, asked_at, expires_at, diff, state, decided_at)
			VALUES ('harbor-hotel', gen_random_uuid(), 'webhook.url', 'x', 'api', $1, $1, '{"changed":{"url":{"before":null,"after":"y"}}}', 'rejected', $1)`, s.Clock.Now())
	}
	p := owner.open(hotel+"changes").must(http.StatusOK, "Older ones", "A new API key", "Another change")
	older := p.find("a", "href", "")
	for n := range p.root.Descendants() {
		if href, ok := attr(n, "href"); ok && strings.Contains(href, "changes?before=") {
			older = n
		}
	}
	to, _ := attr(older, "href")
	owner.open(to).must(http.StatusOK, "A new API key")
	owner.open(hotel + "changes?before=x").must(http.StatusNotFound)
}

// Members that a program asked for come and go by an owner's touch: then the
// letter goes out, in the owner's name, and its secret is on no page. The last
// owner stays whatever is asked (B98).
func TestAnOwnerApprovesMembers(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "changes"
	self := uuid.UUID(owner.device.keys[0].user)
	ask := func(c tenants.PendingChange, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return at + "/" + c.ID.String() + "/approve"
	}
	invite := ask(s.asks.AskInvitation(t.Context(), s.program(), "harbor-hotel", "Sami@example.com", tenants.Support, "abcdefghijkl", "api"))
	demote := ask(s.asks.AskRole(t.Context(), s.program(), "harbor-hotel", self, tenants.Viewer, "abcdefghijkl", "api"))
	remove := ask(s.asks.AskRemoval(t.Context(), s.program(), "harbor-hotel", self, "abcdefghijkl", "api"))
	owner.open(at).must(http.StatusOK, "Invite somebody", "sami@example.com", "Support", "Another role for a member", "Remove a member")

	p := owner.post(invite, nil, at)
	p.mustGo(at + "?applied")
	m := s.letterAbout(t, "Harbor Hotel")
	for m.To != "sami@example.com" {
		m = s.letterAbout(t, "Harbor Hotel")
	}
	if !strings.Contains(m.Text, "/console/link") {
		t.Errorf("%s", m.Text)
	}
	for _, approve := range []string{demote, remove} {
		owner.post(approve, nil, at).must(http.StatusConflict, "must keep an owner who can act")
	}
	if n := s.Count(t, `SELECT count(*) FROM memberships WHERE brand_id = 'harbor-hotel' AND role = 'owner'`); n != 1 {
		t.Errorf("%d owners", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'member.invited' AND actor_id = $1`, self.String()); n != 1 {
		t.Errorf("%d invitations are under the owner's name", n)
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("the rules' no is logged as our fault:\n%s", s.log.String())
	}
}

// What has become impossible while a change waited is said to the owner, and is
// no fault of ours.
func TestAChangeThatCanBeNoMore(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	const brand, at, by = "harbor-hotel", hotel + "changes", "abcdefghijkl"
	ask := func(c tenants.PendingChange, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return at + "/" + c.ID.String() + "/approve"
	}
	site := tenants.Site{PublicURL: origin}
	hook, _, err := tenants.CreateWebhook(t.Context(), s.program(), s.Master, site, brand, tenants.WebhookDraft{URL: "https://hooks.hotel.example/"})
	if err == nil {
		_, err = tenants.SetAgentEndpoint(t.Context(), s.program(), s.Master, site, brand, "https://agent.hotel.example/")
	}
	if err != nil {
		t.Fatal(err)
	}
	login := owner.save(hotel+"login", draftFor("https://login.example"))
	key := tenants.KeyID(owner.post(hotel+"api-keys", filled("once", uuid.NewString(), "name", "x", "right-events", "yes"), "").secret())
	waiting := map[string]string{
		ask(s.asks.AskInvitation(t.Context(), s.program(), brand, "otto@example.com", tenants.Viewer, by, "api")): "This person is a member already",
		ask(s.asks.AskWebhookSecret(t.Context(), s.program(), brand, hook.ID, by, "api")):                         "has changed since",
		ask(s.asks.AskAgentSecret(t.Context(), s.program(), brand, by, "api")):                                    "has changed since",
		ask(s.asks.AskLive(t.Context(), s.program(), brand, mustParse(t, login), by, "api")):                      "has changed since",
		ask(s.asks.AskRotation(t.Context(), s.program(), brand, key, by, "api")):                                  "has changed since",
	}
	s.own(t, s.become(t, "otto@example.com", "Otto"), brand, tenants.Viewer)
	s.Exec(t, `DELETE FROM webhook_endpoints`)
	s.Exec(t, `DELETE FROM agent_endpoints`)
	s.Exec(t, `UPDATE login_connections SET ended_at = now() WHERE NOT live`)
	s.Exec(t, `UPDATE api_keys SET revoked_at = created_at`)
	for approve, say := range waiting {
		owner.post(approve, nil, at).must(http.StatusConflict, say)
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("it is logged as our fault:\n%s", s.log.String())
	}
}

// Every kind of change has words in every language, and what a program asks for of
// domains, permissions and keys reads like everything else. An owner who approves
// signs for it: the trail has their name.
func TestWhatWaitsIsReadable(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	const brand, at, by = "harbor-hotel", hotel + "changes", "abcdefghijkl"
	ask := func(c tenants.PendingChange, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return at + "/" + c.ID.String() + "/approve"
	}
	if err := errors.Join(tenants.RetireScope(t.Context(), s.program(), brand, "extras:order"), tenants.Stop(t.Context(), s.program(), brand)); err != nil {
		t.Fatal(err)
	}
	waiting := []string{
		ask(s.asks.AskDomain(t.Context(), s.program(), brand, "rooms.example", by, "api")),
		ask(s.asks.AskRestore(t.Context(), s.program(), brand, "extras:order", "operator", "cli")),
		ask(s.asks.AskResume(t.Context(), s.program(), brand, by, "api")),
		ask(s.Keys.AskNext(t.Context(), s.asks, s.program(), brand, by, "api")),
		ask(s.asks.AskKeyRule(t.Context(), s.program(), tenants.Site{PublicURL: origin}, brand, tenants.KeyRule{Alg: "RS256", Days: 31}, by, "api")),
	}
	words := []string{
		"Begin the proof of a domain", "rooms.example", "Put a retired permission back", "Let agents go on after the pause",
		"Publish a next signing key", "Countersign’s operator, by the command line", "Follows the key",
		"Which keys sign, or when they change", "Signing method", "RS256", "New signing key every, in days", "31",
	}
	owner.open(at).must(http.StatusOK, words...).mustNot("Another change")
	owner.open(at+"?ui_locales=zh-Hant").must(http.StatusOK, "開始證明網域", "公布下一把簽章金鑰", "命令列", "簽章方式").mustNot("其他變更", "follows", "signing_alg", "rotation_days")
	owner.open(at + "?ui_locales=en")
	for _, approve := range waiting {
		owner.post(approve, nil, at).mustGo(at + "?applied")
	}
	person := uuid.UUID(owner.device.keys[0].user).String()
	for _, event := range []string{"domain.added", "scope.restored", "brand.resumed", "key.next", "brand.settings"} {
		if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = $1 AND actor_id = $2`, event, person); n != 1 {
			t.Errorf("%s stands %d times under the owner's name", event, n)
		}
	}
	s.told(t, "change.applied", 5)
	// Another next key was published meanwhile: the wish is out of date.
	c, err := s.Keys.AskRetire(t.Context(), s.asks, s.program(), brand, kidOf(t, s, "next"), by, "api")
	retire := ask(c, err)
	if err := s.Keys.Revoke(t.Context(), brand, kidOf(t, s, "current"), "test", signing.Policy{Alg: signing.ES256, Backend: "local"}); err != nil {
		t.Fatal(err)
	}
	owner.post(retire, nil, at).must(http.StatusConflict, "has changed since") // it signs now
}

func kidOf(t *testing.T, s *site, state string) (kid string) {
	t.Helper()
	if err := s.Owner.QueryRow(t.Context(), `SELECT kid FROM signing_keys WHERE brand_id = 'harbor-hotel' AND state = $1`, state).Scan(&kid); err != nil {
		t.Fatal(err)
	}
	return kid
}

// The letter about a change that waits says what kind it is, who asked and by which
// way, and where to decide; of what it is about it says nothing.
func TestOwnersGetALetterOfWhatWaits(t *testing.T) {
	s := newSite(t)
	s.owner(t, "harbor-hotel")
	ask := func(name, channel string) {
		t.Helper()
		if _, err := s.asks.AskInvitation(t.Context(), s.program(), "harbor-hotel", "sami@example.com", tenants.Support, name, channel); err != nil {
			t.Fatal(err)
		}
		if err := s.console.Upkeep(t.Context(), "harbor-hotel"); err != nil {
			t.Fatal(err)
		}
	}
	ask("abcdefghijkl", "api")
	m := s.letter(t)
	for _, want := range []string{"Invite somebody", "API key abcdefghijkl", "December", origin + hotel + "changes"} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("%q is missing:\n%s", want, m.Text)
		}
	}
	if m.To != "olga@example.com" || !strings.Contains(m.Subject, "Harbor Hotel") || strings.Contains(m.Text, "sami") {
		t.Errorf("%+v", m)
	}
	ask("operator", "cli") // waits already
	s.Exec(t, `UPDATE people SET language = 'zh-Hant'`)
	if _, err := s.asks.AskResume(t.Context(), s.program(), "harbor-hotel", "x", "api"); !errors.Is(err, tenants.ErrNotPaused) {
		t.Fatal(err)
	}
	if _, err := s.asks.AskDomain(t.Context(), s.program(), "harbor-hotel", "rooms.example", "operator", "cli"); err != nil {
		t.Fatal(err)
	}
	if err := s.console.Upkeep(t.Context(), "harbor-hotel"); err != nil {
		t.Fatal(err)
	}
	if m := s.letter(t); !strings.Contains(m.Text, "開始證明網域") || !strings.Contains(m.Text, "命令列") || strings.Contains(m.Text, "rooms") {
		t.Errorf("%+v", m)
	}
}
