package console_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	jose "github.com/go-jose/go-jose/v4"
)

const idpSecret = "the-secret-of-the-client"

// provider starts an OpenID provider that knows the Brand's redirect URI.
func provider(t *testing.T, brand tenants.BrandID) *demoidp.Provider {
	t.Helper()
	p, err := demoidp.New(demoidp.Config{
		Name: "Harbor Hotel", ClientID: "countersign", ClientSecret: idpSecret,
		RedirectURIs: []string{origin + "/b/" + string(brand) + "/callback"},
		Users: []demoidp.User{{
			Username: "alex", Password: "tide", Subject: "u-1", Name: "Alex Reed", Email: "alex@harbor.example",
			Claims: map[string]any{"customer_id": "C-77", "rooms": []int{4, 7}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func draftFor(issuer string, more ...string) url.Values {
	return with(filled("issuer", issuer, "client_id", "countersign", "auth", "secret", "client_secret", idpSecret,
		"subject_claim", "customer_id", "scopes", "profile, email", "prompt", "", "max_age", ""), more...)
}

// save makes a candidate of the Brand and returns its id.
func (v *visitor) save(at string, form url.Values) string {
	v.t.Helper()
	v.post(at, form, at).mustGo(at + "?saved")
	all, err := tenants.Connections(v.t.Context(), v.site.DB, tenants.BrandID(strings.Split(at, "/")[3]))
	if err != nil || len(all) == 0 || all[len(all)-1].Live {
		v.t.Fatalf("%+v, %v", all, err)
	}
	return all[len(all)-1].ID.String()
}

// answered leaves for the provider, signs in there, and returns where the answer
// is read: by way of the page that all logins come back to.
func (v *visitor) answered(at, id string) string {
	v.t.Helper()
	p := v.open(at + "/" + id + "/try").must(http.StatusSeeOther)
	back, err := demoidp.NewVisitor().SignIn(v.t.Context(), p.location, "alex", "tide")
	if err != nil {
		v.t.Fatal(err)
	}
	brand := strings.Split(at, "/")[3]
	if got := back.Scheme + "://" + back.Host + back.Path; got != origin+"/b/"+brand+"/callback" {
		v.t.Fatalf("the provider answers at %s", got)
	}
	return console.TriedPath(tenants.BrandID(brand), back.Query())
}

// A Brand connects its provider, tries it on itself and makes it live; the one
// before stays beside it (B62).
func TestALoginIsConnectedTriedAndMadeLive(t *testing.T) {
	s := newSite(t)
	owner, idp := s.owner(t, "harbor-hotel"), provider(t, "harbor-hotel")
	at := hotel + "login"
	owner.open(at).must(http.StatusOK, "customers cannot sign in", origin+"/b/harbor-hotel/callback", origin+"/b/harbor-hotel/login/jwks.json")

	looked := owner.post(at+"/look", filled("issuer", idp.Issuer()), at).must(http.StatusOK, "What your provider says of itself", "authorization_endpoint", ">Good<")
	if strings.Contains(looked.body, ">Wrong<") {
		t.Error("a healthy provider is found wrong")
	}
	id := owner.save(at, draftFor(idp.Issuer()))
	p := owner.open(at).must(http.StatusOK, "Nobody comes in through it yet", "customer_id", "profile email")
	if strings.Contains(p.body, idpSecret) {
		t.Error("the secret is shown")
	}
	s.told(t, "login.candidate", 1)
	owner.post(at+"/"+id+"/check", nil, at).must(http.StatusOK, "token_endpoint", ">Good<")

	tried := owner.answered(at, id)
	p = owner.open(tried).must(http.StatusOK, "The sign-in works", "C-77", "alex@harbor.example", "[4,7]", "Would become “sub”", "Alex Reed")
	if p.header.Get("Cache-Control") != "no-store" {
		t.Error("the claims may be kept by the browser")
	}
	owner.open(tried).must(http.StatusBadRequest, "no longer current") // once
	if kept := s.Count(t, `SELECT count(*) FROM browser_sessions WHERE convert_from(data, 'UTF8') ~ 'C-77|alex@harbor'`) +
		s.Count(t, `SELECT count(*) FROM audit_events WHERE detail::text ~ 'C-77|alex@harbor'`); kept != 0 || strings.Contains(s.log.String(), "C-77") || strings.Contains(s.log.String(), "alex@harbor") {
		t.Error("the claims were kept or logged")
	}

	form := p.fields(at + "/" + id + "/live")
	s.Clock.Advance(6 * time.Minute)
	if to := owner.post(at+"/"+id+"/live", form, at).must(http.StatusSeeOther).location; !strings.HasPrefix(to, "/console/touch") {
		t.Errorf("made live without a touch: %s", to)
	}
	s.told(t, "login.live", 0)
	owner.touch().must(http.StatusSeeOther)
	for range 2 { // twice is once
		owner.post(at+"/"+id+"/live", form, at).mustGo(at + "?live")
	}
	s.told(t, "login.live", 1)
	l, err := tenants.Login(t.Context(), s.DB, s.Master, "harbor-hotel")
	if err != nil || l.ID.String() != id || l.ClientSecret != idpSecret {
		t.Errorf("%v %v", l.ID, err)
	}
	owner.post(at+"/"+id+"/remove", nil, at).must(http.StatusConflict, "Make another one live first")

	second := owner.save(at, draftFor(idp.Issuer(), "subject_claim", "sub"))
	owner.open(at).must(http.StatusOK, "Customers sign in through it now", "Nobody comes in through it yet")
	owner.post(at+"/"+second+"/remove", nil, at).mustGo(at)
	owner.post(at+"/"+second+"/remove", nil, at).must(http.StatusNotFound)
}

// Another candidate, slid under the owner's yes, does not go live by it.
func TestACandidateGoesLiveAsItWasShown(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "login"
	id := owner.save(at, draftFor("https://login.example"))
	form := owner.open(at).fields(at + "/" + id + "/live")
	owner.save(at, draftFor("https://login.example", "subject_claim", "sub"))
	owner.post(at+"/"+id+"/live", form, at).must(http.StatusBadRequest, "no longer current")
	owner.post(at+"/"+id+"/live", nil, at).must(http.StatusBadRequest)
	s.told(t, "login.live", 0)
}

// B54: what the provider calls itself is offered, and taken by one button; the
// secret need not be typed again for a slash, and must be for another server.
func TestTheProvidersSpellingIsTakenByOneButton(t *testing.T) {
	s := newSite(t)
	owner, idp := s.owner(t, "harbor-hotel"), provider(t, "harbor-hotel")
	at := hotel + "login"
	typed := idp.Issuer() + "/"
	p := owner.post(at+"/look", filled("issuer", typed), at).must(http.StatusOK, ">Wrong<", "Use ")
	if got := p.fields(at + "/look").Get("issuer"); got != idp.Issuer() {
		t.Errorf("offers %q", got)
	}
	id := owner.save(at, draftFor(typed))
	owner.open(at+"/"+id+"/try").must(http.StatusOK, "does not work yet", "do not fit")
	p = owner.post(at+"/"+id+"/check", nil, at).must(http.StatusOK, ">Wrong<")
	owner.post(at+"/"+id+"/issuer", p.fields(at+"/"+id+"/issuer"), at).mustGo(at + "?saved")
	owner.open(owner.answered(at, id)).must(http.StatusOK, "The sign-in works")

	owner.post(at+"/"+id+"/issuer", filled("issuer", "https://evil.example"), at).must(http.StatusUnprocessableEntity, "give it anew")
	l, err := tenants.Candidate(t.Context(), s.DB, s.Master, "harbor-hotel", mustParse(t, id))
	if err != nil || l.Issuer != idp.Issuer() {
		t.Errorf("%s, %v", l.Issuer, err)
	}
}

// B63: a provider that is dead costs its own Brand only, which is told.
func TestADeadProviderCostsItsOwnBrandOnly(t *testing.T) {
	s := newSite(t)
	owner, idp := s.owner(t, "harbor-hotel"), provider(t, "harbor-hotel")
	s.own(t, owner, "fern-and-fell", tenants.Owner)
	dead, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://" + dead.Addr().String()
	dead.Close()
	const shop = "/console/b/fern-and-fell/login"
	ill := owner.save(shop, draftFor(issuer))
	well := owner.save(hotel+"login", draftFor(idp.Issuer()))
	for range 2 {
		owner.post(shop+"/"+ill+"/check", nil, shop).must(http.StatusOK, ">Wrong<", "cannot be reached")
		owner.open(shop+"/"+ill+"/try").must(http.StatusOK, "does not work yet", "cannot be reached")
		owner.open(shop).must(http.StatusOK, "Candidate")
		owner.open(owner.answered(hotel+"login", well)).must(http.StatusOK, "The sign-in works", "C-77")
	}
}

// Every way a test login can fail is told, and nothing the provider writes runs.
func TestATestLoginThatFails(t *testing.T) {
	s := newSite(t)
	owner, idp := s.owner(t, "harbor-hotel"), provider(t, "harbor-hotel")
	at := hotel + "login"
	id := owner.save(at, draftFor(idp.Issuer(), "client_secret", "a wrong one"))
	owner.open(owner.answered(at, id)).must(http.StatusOK, "does not work yet", "does not accept the client id and secret")

	id = owner.save(at, draftFor(idp.Issuer(), "subject_claim", "nowhere"))
	owner.open(owner.answered(at, id)).must(http.StatusOK, "does not work yet", "no usable claim", "alex@harbor.example")

	state := func(to string) string {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("state")
	}
	begun := state(owner.open(at + "/" + id + "/try").must(http.StatusSeeOther).location)
	p := owner.open(console.TriedPath("harbor-hotel", url.Values{"state": {begun}, "error": {"access_denied"}, "error_description": {"<b>no</b>"}}))
	p.must(http.StatusOK, "Your provider refused", "access_denied")
	if strings.Contains(p.body, "<b>no") {
		t.Error("the provider's words are on the page")
	}
}

// The answer to a test login is of use to the browser that began it, for the
// Brand and the connection it was begun with, and for a while.
func TestATestLoginIsItsBeginnersOnly(t *testing.T) {
	s := newSite(t)
	owner, idp := s.owner(t, "harbor-hotel"), provider(t, "harbor-hotel")
	s.own(t, owner, "fern-and-fell", tenants.Owner)
	at := hotel + "login"
	id := owner.save(at, draftFor(idp.Issuer()))

	other := s.become(t, "otto@example.com", "Otto")
	s.own(t, other, "harbor-hotel", tenants.Owner)
	tried := owner.answered(at, id)
	other.open(tried).must(http.StatusBadRequest)
	owner.open(strings.Replace(tried, "harbor-hotel", "fern-and-fell", 1)).must(http.StatusBadRequest)
	owner.open(strings.Replace(tried, "state=try.", "state=try.x", 1)).must(http.StatusBadRequest)
	viewer := s.become(t, "vic@example.com", "Vic")
	s.own(t, viewer, "harbor-hotel", tenants.Viewer)
	viewer.open(tried).must(http.StatusForbidden)
	viewer.open(at + "/" + id + "/try").must(http.StatusForbidden)
	owner.open(tried).must(http.StatusOK, "The sign-in works")

	late := owner.answered(at, id)
	s.Clock.Advance(11 * time.Minute)
	owner.open(late).must(http.StatusBadRequest)

	changed := owner.answered(at, id)
	owner.save(at, draftFor(idp.Issuer(), "subject_claim", "sub"))
	owner.open(changed).must(http.StatusBadRequest)

	gone := owner.answered(at, id)
	owner.touch().must(http.StatusSeeOther)
	owner.post(at+"/"+id+"/remove", nil, at).mustGo(at)
	owner.open(gone).must(http.StatusBadRequest)

	// Nobody else's page sends a member round.
	id = owner.save(at, draftFor(idp.Issuer()))
	owner.header.Set("Sec-Fetch-Site", "cross-site")
	owner.open(at+"/"+id+"/try").must(http.StatusForbidden, "did not come from our page")
}

// With a key of our own there is no secret; the provider reads our public key.
func TestALoginWithAKeyOfOurOwn(t *testing.T) {
	s := newSite(t)
	owner, idp := s.owner(t, "harbor-hotel"), provider(t, "harbor-hotel")
	at := hotel + "login"
	owner.post(at, draftFor(idp.Issuer(), "auth", "private_key_jwt"), at).must(http.StatusUnprocessableEntity, "needs no secret")
	id := owner.save(at, draftFor(idp.Issuer(), "auth", "private_key_jwt", "client_secret", ""))
	keys, err := tenants.LoginKeys(t.Context(), s.DB, "harbor-hotel")
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	var key jose.JSONWebKey
	if err := json.Unmarshal(keys[0], &key); err != nil {
		t.Fatal(err)
	}
	idp.SetClientKey(key)
	owner.open(owner.answered(at, id)).must(http.StatusOK, "The sign-in works", "C-77")
}

// Mistakes are told at their fields, and what was typed stays; but for the secret.
func TestAConnectionThatCannotBe(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "login"
	for name, tt := range map[string]struct {
		form url.Values
		says string
	}{
		"no issuer":   {draftFor(""), "no issuer address"},
		"plain http":  {draftFor("http://login.example"), "Begin the address with https://"},
		"e-mail":      {draftFor("https://login.example", "subject_claim", "email"), "somebody else&#39;s one day"},
		"no secret":   {draftFor("https://login.example", "client_secret", ""), "is missing"},
		"no number":   {draftFor("https://login.example", "max_age", "an hour"), "number of seconds"},
		"prompt none": {draftFor("https://login.example", "prompt", "none"), "Choose one of these"},
	} {
		p := owner.post(at, tt.form, at).must(http.StatusUnprocessableEntity, tt.says)
		if strings.Contains(p.body, idpSecret) {
			t.Errorf("%s: the secret comes back", name)
		}
	}
	owner.post(at+"/look", filled("issuer", " "), at).must(http.StatusUnprocessableEntity, "Enter the issuer")
	s.told(t, "login.candidate", 0)

	id := owner.save(at, draftFor("https://login.example"))
	stranger := s.become(t, "stan@example.com", "Stan")
	s.own(t, stranger, "fern-and-fell", tenants.Owner)
	const shop = "/console/b/fern-and-fell/login/"
	for _, do := range []string{"/check", "/issuer", "/live", "/remove"} {
		stranger.post(shop+id+do, nil, "").must(http.StatusNotFound)
	}
	stranger.open(shop + id + "/try").must(http.StatusNotFound)
}
