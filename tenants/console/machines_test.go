package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"github.com/google/uuid"
)

const lake = "/console/b/lake/"

// facts counts what stands in the Brand's trail.
func (s *site) facts(t *testing.T, event string) int {
	t.Helper()
	return s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event = $1 AND actor = 'admin'`, event)
}

// notices counts what owners were told.
func (s *site) notices(t *testing.T, event string) int {
	t.Helper()
	return s.Count(t, `SELECT count(*) FROM notices WHERE brand_id = 'lake' AND kind = $1`, event)
}

func (s *site) states(t *testing.T, brand tenants.BrandID) map[string]string {
	t.Helper()
	keys, err := s.Keys.List(t.Context(), brand)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, k := range keys {
		out[k.State] = k.KID
	}
	return out
}

// What means control of keys and of where events go is the owners' and
// security's, under a fresh touch, and all owners hear of it (B98).
func TestKeysAndWebhooksAreForOwnersAndSecurity(t *testing.T) {
	for _, a := range []console.Action{console.ChangeSigningKeys, console.ChangeWebhooks, console.ChangeAPIKeys} {
		r := console.RightOf(a)
		if !r.Member || !r.Touch || !r.Tells {
			t.Errorf("%s: %+v", a, r)
		}
		for _, role := range tenants.Roles() {
			if console.May(role, a) != (role == tenants.Owner || role == tenants.Security) {
				t.Errorf("%s may %s: %v", role, a, console.May(role, a))
			}
		}
	}
	if console.May(tenants.Viewer, console.TryOut) || console.May(tenants.Support, console.SeeWebhooks) {
		t.Error("a viewer acts, or support reads addresses that may hold a secret")
	}
}

// P37, B98: rotation by an admin: published, taken back, published again; revoked
// with what ends said before; each in the trail and told to the owners, once.
func TestSigningKeysOnTheDashboard(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, at := people["owner"], lake+"signing-keys"
	first := s.states(t, brand)["current"]
	people["viewer"].open(at).must(http.StatusOK, first, "Signs every token", "local keyring").mustNot("Publish the next key")
	people["security"].post(at, nil, at).mustGo(at + "?published")
	next := s.states(t, brand)["next"]
	owner.open(at+"?published").must(http.StatusOK, next, "signs nothing yet", "The next key is published").mustNot("Publish the next key")
	owner.post(at, nil, at).must(http.StatusConflict, "published already")
	owner.post(at+"/"+first+"/retire", nil, "").must(http.StatusConflict, "signs now")
	owner.post(at+"/"+next+"/retire", nil, "").mustGo(at)
	owner.post(at+"/"+next+"/retire", nil, "").mustGo(at) // twice is once
	if n := s.facts(t, "key.retired"); n != 1 {
		t.Errorf("%d facts of one taking back", n)
	}

	owner.open(at+"/"+first).must(http.StatusOK, "0 customers’ permissions", "15 minutes", "Receipts that it signed")
	owner.post(at+"/"+first+"/revoke", url.Values{"reason": {"  "}}, "").must(http.StatusUnprocessableEntity, "Say why")
	owner.post(at+"/"+first+"/revoke", url.Values{"reason": {strings.Repeat("長", 80)}}, "").must(http.StatusUnprocessableEntity, "200 bytes")
	if s.states(t, brand)["current"] != first {
		t.Fatal("revoked without a reason")
	}
	owner.post(at+"/"+first+"/revoke", url.Values{"reason": {"laptop <stolen>"}}, "").mustGo(at + "?revoked")
	if now := s.states(t, brand); now["revoked"] != first || now["current"] == "" || now["current"] == first {
		t.Errorf("after the revocation: %v", now)
	}
	owner.open(at).must(http.StatusOK, "laptop &lt;stolen&gt;", "Revoked")
	owner.open(at + "/" + first).must(http.StatusOK).mustNot("Revoke this key now")
	for event, want := range map[string]int{"key.next": 1, "key.retired": 1, "key.revoked": 1} {
		if facts, notices := s.facts(t, event), s.notices(t, event); facts != want || notices != want {
			t.Errorf("%s: %d facts, %d notices", event, facts, notices)
		}
	}

	// Another Brand's key is not there, under either Brand.
	river := s.states(t, "river")["current"]
	owner.open(at + "/" + river).must(http.StatusNotFound)
	owner.post(at+"/"+river+"/revoke", url.Values{"reason": {"x"}}, "").must(http.StatusNotFound)
	owner.post("/console/b/river/signing-keys/"+river+"/revoke", url.Values{"reason": {"x"}}, "").must(http.StatusNotFound)
	if s.states(t, "river")["current"] != river {
		t.Error("another Brand's key was revoked")
	}
	// Without a touch nothing happens.
	s.Clock.Advance(6 * time.Minute)
	current := s.states(t, brand)["current"]
	owner.post(at+"/"+current+"/revoke", url.Values{"reason": {"x"}}, "").must(http.StatusSeeOther)
	if s.states(t, brand)["current"] != current {
		t.Error("revoked without a touch")
	}
}

// R82: a key does not change where the trail cannot say so.
func TestSigningKeysDoNotChangeBesideTheTrail(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	before := s.states(t, brand)
	s.Exec(t, `REVOKE INSERT ON audit_events FROM countersign_app`)
	at := lake + "signing-keys"
	for path, form := range map[string]url.Values{at: nil, at + "/" + before["current"] + "/revoke": {"reason": {"x"}}} {
		if p := people["owner"].post(path, form, at); p.status < 500 {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	if after := s.states(t, brand); after["current"] != before["current"] || after["next"] != "" {
		t.Errorf("%v became %v", before, after)
	}
}

// A key that does not sign is told, by the page that shows it.
func TestSignerTroubleIsTold(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	people["owner"].open(lake + "signing-keys").must(http.StatusOK).mustNot("trial just now")
	s.Exec(t, `UPDATE signing_keys SET backend = 'vault-gone' WHERE brand_id = 'lake'`)
	s.Clock.Advance(2 * time.Second)
	people["owner"].open(lake+"signing-keys").must(http.StatusOK, "did not answer a trial", "Vault (vault-gone)")
	s.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = 'lake'`)
	people["owner"].open(lake+"signing-keys").must(http.StatusOK, "No key signs now")
}

var handedOver = regexp.MustCompile(`class="sample secret"[^>]*><code>([^<]+)<`)

// secret is what the page shows once.
func (p page) secret() string {
	p.t.Helper()
	found := handedOver.FindStringSubmatch(p.must(http.StatusOK).body)
	if found == nil {
		p.t.Fatalf("no secret is shown\n%s", p.body)
	}
	if c := p.header.Get("Cache-Control"); !strings.Contains(c, "no-store") {
		p.t.Errorf("the secret may be kept: Cache-Control %q", c)
	}
	return found[1]
}

// An API key's life on the dashboard: made with rights, shown once, used, replaced
// with both open for a day, revoked; a reload makes no second one.
func TestAPIKeysOnTheDashboard(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, at := people["owner"], lake+"api-keys"
	owner.open(at).must(http.StatusOK, "Your servers have no key yet", "countersign apikey create --brand lake")
	form := owner.open(at).fields(at)
	bare := url.Values{"once": form["once"], "name": {"checkout"}}
	owner.post(at, bare, at).must(http.StatusUnprocessableEntity, "Tick at least one right", `value="checkout"`)
	good := url.Values{"once": form["once"], "name": {"checkout"}, "right-introspect": {"yes"}}
	owner.post(at, url.Values{"name": {"checkout"}, "right-introspect": {"yes"}}, at).must(http.StatusBadRequest) // a form that is none of ours
	key := owner.post(at, good, at).secret()
	owner.post(at, good, at).mustGo(at + "?made")
	owner.open(at).must(http.StatusOK, "checkout", "Never").mustNot(key)
	if n := s.Count(t, `SELECT count(*) FROM api_keys WHERE brand_id = 'lake'`); n != 1 {
		t.Fatalf("%d keys", n)
	}

	creds := tenants.NewCredentials(s.DB, s.Clock.Now)
	id, err := creds.Check(t.Context(), brand, key, tenants.RightIntrospect)
	if err != nil {
		t.Fatal(err)
	}
	owner.open(at).must(http.StatusOK).mustNot("Never")

	// Rotated, from a form that is sent twice.
	rotate := owner.open(at+"/"+id).must(http.StatusOK, "introspect").fields(at + "/" + id + "/rotate")
	fresh := owner.post(at+"/"+id+"/rotate", rotate, "").secret()
	owner.post(at+"/"+id+"/rotate", rotate, "").mustGo(at + "?made")
	again := url.Values{"once": {uuid.NewString()}}
	owner.post(at+"/"+id+"/rotate", again, "").must(http.StatusBadRequest) // the former one is no more to be rotated
	s.Clock.Advance(2 * time.Second)
	for _, k := range []string{key, fresh} {
		if _, err := creds.Check(t.Context(), brand, k, tenants.RightIntrospect); err != nil {
			t.Errorf("during the overlap: %v", err)
		}
	}
	freshID := tenants.KeyID(fresh)
	// Neither from another Brand, nor by a role that may not.
	people["stranger"].post("/console/b/river/api-keys/"+freshID+"/revoke", nil, "").must(http.StatusNotFound)
	people["support"].post(at+"/"+freshID+"/revoke", nil, "").must(http.StatusForbidden)
	owner.open(at+"/"+freshID).must(http.StatusOK, "What ends:", "No customer")
	owner.post(at+"/"+freshID+"/revoke", nil, "").mustGo(at)
	owner.post(at+"/"+freshID+"/revoke", nil, "").mustGo(at) // twice is once
	s.Clock.Advance(2 * time.Second)
	if _, err := creds.Check(t.Context(), brand, fresh, tenants.RightIntrospect); err == nil {
		t.Error("a revoked key opens")
	}
	for event, want := range map[string]int{"apikey.created": 2, "apikey.rotated": 1, "apikey.revoked": 1} {
		if n := s.facts(t, event); n != want {
			t.Errorf("%s: %d facts", event, n)
		}
	}
	if n := s.notices(t, "apikey.revoked"); n != 1 {
		t.Errorf("%d notices of one revocation", n)
	}
}

// Webhooks on the dashboard: an address that we never call is refused with the way
// to mend it; the secret is shown once; off, on, another secret, a test.
func TestWebhooksOnTheDashboard(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, at := people["owner"], lake+"webhooks"
	people["viewer"].open(at).must(http.StatusForbidden)
	owner.open(at).must(http.StatusOK, "Nobody is told yet", "countersign webhook create --brand lake")
	form := func(address string) url.Values {
		return url.Values{"once": owner.open(at).fields(at)["once"], "url": {address}, "event-grant.revoked": {"yes"}}
	}
	for _, bad := range []string{"", "http://hotel.example/hook", "https://192.168.1.1/hook", "https://u:p@hotel.example/", "https://hotel.example:8443/", "https://hotel.example/#x"} {
		owner.post(at, form(bad), at).must(http.StatusUnprocessableEntity, `id="field-url-problem"`)
	}
	good := form("https://hotel.example/hook")
	if secret := owner.post(at, good, at).secret(); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is %q", secret)
	}
	owner.post(at, good, at).mustGo(at + "?made")
	hooks, err := tenants.Webhooks(t.Context(), s.DB, brand)
	if err != nil || len(hooks) != 1 {
		t.Fatalf("%v, %v", hooks, err)
	}
	one := at + "/" + hooks[0].ID
	owner.open(at).must(http.StatusOK, "https://hotel.example/hook", "grant.revoked")

	owner.post(one+"/test", nil, "").mustGo(one + "?tested")
	owner.open(one).must(http.StatusOK, "Webhook tested", "Waiting")
	owner.open(one+"?state=dead").must(http.StatusOK, "No message of this kind")
	owner.open(one+"?state=nonsense&before=x").must(http.StatusOK, "Webhook tested")
	owner.post(one+"/replay", nil, "").must(http.StatusConflict, "nothing to send")
	s.Exec(t, `UPDATE webhook_deliveries SET state = 'dead', attempts = 9, last_status = 500, last_at = now() WHERE brand_id = 'lake'`)
	owner.open(one+"?state=dead").must(http.StatusOK, "500", "1 message was given up")
	owner.post(one+"/replay", nil, "").mustGo(one + "?replayed")
	if n := s.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE brand_id = 'lake' AND state = 'pending'`); n != 1 {
		t.Errorf("%d wait after the replay", n)
	}

	fresh := owner.open(one).fields(one + "/secret")
	delete(fresh, "at-once") // a box that was not ticked
	if owner.post(one+"/secret", fresh, "").secret() == "" {
		t.Error("no new secret")
	}
	owner.open(one).must(http.StatusOK, "signs too until")
	owner.post(one+"/secret", url.Values{"once": {uuid.NewString()}, "at-once": {"yes"}}, "").secret()
	owner.open(one).must(http.StatusOK).mustNot("signs too until")

	owner.post(one+"/disable", nil, "").mustGo(one)
	owner.post(one+"/disable", nil, "").mustGo(one)
	owner.post(one+"/test", nil, "").must(http.StatusConflict, "is off")
	owner.post(one+"/enable", nil, "").mustGo(one)
	people["stranger"].post("/console/b/river/webhooks/"+hooks[0].ID+"/disable", nil, "").must(http.StatusNotFound)
	for event, want := range map[string]int{"webhook.created": 1, "webhook.secret_rotated": 2, "webhook.disabled": 1, "webhook.enabled": 1} {
		if facts, notices := s.facts(t, event), s.notices(t, event); facts != want || notices != want {
			t.Errorf("%s: %d facts, %d notices", event, facts, notices)
		}
	}
	if n := s.facts(t, "webhook.tested"); n != 1 {
		t.Errorf("%d tests in the trail", n)
	}
}

// Pages by place in the trail neither skip nor repeat a delivery.
func TestDeliveriesArePaged(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner := people["owner"]
	at := lake + "webhooks"
	owner.post(at, url.Values{"once": {uuid.NewString()}, "url": {"https://hotel.example/hook"}}, at).must(http.StatusOK)
	hooks, err := tenants.Webhooks(t.Context(), s.DB, brand)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		owner.post(at+"/"+hooks[0].ID+"/test", nil, "").must(http.StatusSeeOther)
	}
	seen := make(map[string]bool)
	shape := regexp.MustCompile(`<code dir="ltr" translate="no">([0-9a-f-]{36})<`)
	to := at + "/" + hooks[0].ID
	for range 5 {
		p := owner.open(to).must(http.StatusOK)
		for _, m := range shape.FindAllStringSubmatch(p.body, -1) {
			if seen[m[1]] {
				t.Errorf("%s twice", m[1])
			}
			seen[m[1]] = true
		}
		older := regexp.MustCompile(`<a class="button" href="([^"]+before=[^"]+)"`).FindStringSubmatch(p.body)
		if older == nil {
			break
		}
		to = strings.ReplaceAll(older[1], "&amp;", "&")
	}
	if len(seen) != 30 {
		t.Errorf("%d of 30 were seen", len(seen))
	}
}

// Where everything of the Brand stands, with what a proxy needs.
func TestConnectShowsTheBrandsOwnAddresses(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	at := lake + "connect"
	issuer := origin + "/a2a/lake/oauth"
	people["viewer"].open(at).must(http.StatusOK, issuer+"/jwks.json", issuer+"/.well-known/oauth-authorization-server", issuer+"/status", issuer+"/events",
		origin+"/a2a/lake/.well-known/agent-card.json", "proxy_pass "+issuer+"/;", "https://agents.example").mustNot("harbor-hotel", "hotel.example")
	s.Exec(t, `UPDATE brands SET mode = 'fronted', interface_url = 'https://a2a.lake.test/help', issuer = 'https://a2a.lake.test/help/oauth' WHERE id = 'lake'`)
	s.Brands.Forget("lake")
	people["viewer"].open(at).must(http.StatusOK, "location ^~ /help/oauth/", "a2a.lake.test {", `domains: [&#34;a2a.lake.test&#34;]`, "Countersign-*").mustNot("agents.example")
}

// ready gives the Brand what an agent can ask for.
func (s *site) ready(t *testing.T, brand tenants.BrandID) *tenants.Brand {
	t.Helper()
	s.Exec(t, `INSERT INTO brand_scopes (brand_id, id, position, description, effect, impact) VALUES ($1, 'bookings:read', 1, 'See your bookings', 'sees', 'low')`, brand)
	s.Brands.Forget(brand)
	return s.Reload(t, brand)
}

// One button: the test agent asks, the member decides as a customer, and sees what
// the token says and what was checked; no secret is on any page, nor in the
// session's row; ending it ends the grant.
func TestTryIt(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, at := people["owner"], lake+"try"
	people["viewer"].open(at).must(http.StatusForbidden)
	b := s.ready(t, brand)
	owner.open(at).must(http.StatusOK, "Let the test agent ask").mustNot("Open the customer")
	owner.post(at, nil, at).mustGo(at)
	owner.open(at).must(http.StatusOK, "Open the customer", "/b/lake/device?user_code=", "Look how it goes on")
	// A colleague does not see it, and cannot go on with it.
	people["support"].open(at).must(http.StatusOK).mustNot("user_code=")
	if n := s.Count(t, `SELECT count(*) FROM browser_sessions WHERE convert_from(data, 'UTF8') LIKE '%user_code%' OR convert_from(data, 'UTF8') LIKE '%device_code%'`); n != 0 {
		t.Error("a session holds the try in the open")
	}
	s.Clock.Advance(6 * time.Second)
	owner.open(at).must(http.StatusOK, "Nobody has decided yet")

	var request uuid.UUID
	if err := s.Owner.QueryRow(t.Context(), `SELECT id FROM device_requests WHERE brand_id = 'lake'`).Scan(&request); err != nil {
		t.Fatal(err)
	}
	authoritytest.Approve(t, s.Authority(nil), b, authority.Started{ID: request}, "guest-7", "bookings:read")
	s.Clock.Advance(6 * time.Second)
	owner.open(at).must(http.StatusOK, "guest-7", "bookings:read", "The token is verified", "signature", "status", "passed").mustNot("eyJ", "not looked at")
	owner.open(at).must(http.StatusOK, "guest-7") // and again
	var living int
	count := `SELECT count(*) FROM grants WHERE brand_id = 'lake' AND ended_at IS NULL`
	if living = s.Count(t, count); living != 1 {
		t.Fatalf("%d grants", living)
	}
	people["support"].post(at+"/end", nil, at).mustGo(at)
	if s.Count(t, count) != 1 {
		t.Error("a colleague ended it")
	}
	owner.post(at+"/end", nil, at).mustGo(at)
	owner.post(at+"/end", nil, at).mustGo(at)
	if s.Count(t, count) != 0 {
		t.Error("the try goes on")
	}
	owner.open(at).must(http.StatusOK).mustNot("guest-7")
}

// What goes wrong is told: a Brand that refuses, one that knows the agent no more,
// a customer who says no, nobody who answers in time.
func TestTryItTellsWhatWentWrong(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, at := people["owner"], lake+"try"
	owner.post(at, nil, at).must(http.StatusConflict, "refused the test agent") // nothing on the card
	b := s.ready(t, brand)
	deny := func() {
		t.Helper()
		var request uuid.UUID
		if err := s.Owner.QueryRow(t.Context(), `SELECT id FROM device_requests WHERE brand_id = 'lake' ORDER BY created_at DESC LIMIT 1`).Scan(&request); err != nil {
			t.Fatal(err)
		}
		if err := s.Authority(nil).Deny(t.Context(), b.ID, authority.Decision{Request: request, Subject: "guest-7"}); err != nil {
			t.Fatal(err)
		}
	}
	owner.post(at, nil, at).mustGo(at)
	deny()
	s.Clock.Advance(6 * time.Second)
	owner.open(at).must(http.StatusOK, "No token came", "Forget this try").mustNot("What the token says")
	owner.post(at, nil, at).mustGo(at)
	s.Clock.Advance(20 * time.Minute)
	owner.open(at).must(http.StatusOK, "Nobody decided in time")
	s.Exec(t, `UPDATE agents SET enabled = false`)
	s.Clock.Advance(3 * time.Second)
	owner.post(at, nil, at).must(http.StatusConflict, "does not know the test agent")
}

// Two at once: one key comes to be, and one notice.
func TestTwoPublishAtOnce(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	var both sync.WaitGroup
	for _, who := range []string{"owner", "security"} {
		both.Go(func() { people[who].post(lake+"signing-keys", nil, "") })
	}
	both.Wait()
	keys, err := s.Keys.List(t.Context(), brand)
	if err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if facts, notices := s.facts(t, "key.next"), s.notices(t, "key.next"); facts != 1 || notices != 1 {
		t.Errorf("%d facts, %d notices", facts, notices)
	}
}

// Another site's post does nothing, whatever it holds (CSRF).
func TestForeignPostsChangeNoKey(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	v := people["owner"]
	v.header.Set("Origin", "https://evil.example")
	v.header.Set("Sec-Fetch-Site", "cross-site")
	for _, to := range []string{"signing-keys", "webhooks", "api-keys", "try"} {
		v.post(lake+to, url.Values{"once": {uuid.NewString()}, "name": {"x"}, "right-admin": {"yes"}, "url": {"https://evil.example/"}}, "").must(http.StatusForbidden)
	}
	if len(s.states(t, brand)) != 1 || s.Count(t, `SELECT (SELECT count(*) FROM api_keys) + (SELECT count(*) FROM webhook_endpoints)`) != 0 {
		t.Error("a foreign post changed something")
	}
}
