package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

func pageDraft() tenants.ConnectionDraft {
	return tenants.ConnectionDraft{
		Kind: tenants.KindAssertion, Issuer: "https://hotel.example", JWKSURI: "https://hotel.example/jwks.json", LoginURL: "https://login.hotel.example/in",
	}
}

// unwanted is a keeper of secrets that has none to keep.
type unwanted struct{}

func (unwanted) Rewrap(context.Context, tenants.BrandID, string, []byte) ([]byte, bool, error) {
	return nil, false, errors.New("there is nothing to open")
}

// Mistakes about the Brand's own login page are told before anything is tried.
func TestLoginPagesSayHowToMendThem(t *testing.T) {
	ten := 10
	for name, tt := range map[string]struct {
		change func(*tenants.ConnectionDraft)
		field  string
	}{
		"as it is":              {func(*tenants.ConnectionDraft) {}, ""},
		"an origin of its own":  {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "https://login.hotel.example:8443" }, ""},
		"page on another port":  {func(d *tenants.ConnectionDraft) { d.LoginURL = "https://login.hotel.example:8443/in?tenant=1" }, ""},
		"a made-up kind":        {func(d *tenants.ConnectionDraft) { d.Kind = "saml" }, "kind"},
		"no issuer":             {func(d *tenants.ConnectionDraft) { d.Issuer = "" }, "issuer"},
		"no keys":               {func(d *tenants.ConnectionDraft) { d.JWKSURI = "" }, "jwks_uri"},
		"keys without TLS":      {func(d *tenants.ConnectionDraft) { d.JWKSURI = "http://hotel.example/jwks.json" }, "jwks_uri"},
		"keys inside":           {func(d *tenants.ConnectionDraft) { d.JWKSURI = "https://10.0.0.1/jwks.json" }, "jwks_uri"},
		"no page":               {func(d *tenants.ConnectionDraft) { d.LoginURL = "" }, "login_url"},
		"page without TLS":      {func(d *tenants.ConnectionDraft) { d.LoginURL = "http://hotel.example/in" }, "login_url"},
		"page of script":        {func(d *tenants.ConnectionDraft) { d.LoginURL = "javascript:alert(1)" }, "login_url"},
		"page with fragment":    {func(d *tenants.ConnectionDraft) { d.LoginURL += "#x" }, "login_url"},
		"page with a user":      {func(d *tenants.ConnectionDraft) { d.LoginURL = "https://u@hotel.example/in" }, "login_url"},
		"page with a space":     {func(d *tenants.ConnectionDraft) { d.LoginURL += " x" }, "login_url"},
		"another's page":        {func(d *tenants.ConnectionDraft) { d.LoginURL = "https://other.example/in" }, "login_url"},
		"a look-alike's page":   {func(d *tenants.ConnectionDraft) { d.LoginURL = "https://myhotel.example/in" }, "login_url"},
		"this machine's page":   {func(d *tenants.ConnectionDraft) { d.LoginURL = "https://localhost/in" }, "login_url"},
		"another's origin":      {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "https://other.example" }, "login_origin"},
		"another's issuer":      {func(d *tenants.ConnectionDraft) { d.Issuer = "https://other.example" }, ""},
		"return_to already":     {func(d *tenants.ConnectionDraft) { d.LoginURL += "?return_to=x" }, "login_url"},
		"origin with path":      {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "https://hotel.example/" }, "login_origin"},
		"origin with port":      {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "https://hotel.example:443" }, "login_origin"},
		"origin in capitals":    {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "https://Hotel.example" }, "login_origin"},
		"origin without TLS":    {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "http://hotel.example" }, "login_origin"},
		"origin null":           {func(d *tenants.ConnectionDraft) { d.LoginOrigin = "null" }, "login_origin"},
		"our own origin":        {func(d *tenants.ConnectionDraft) { d.LoginOrigin = tenants.Origin(site.PublicURL) }, "login_origin"},
		"a client":              {func(d *tenants.ConnectionDraft) { d.ClientID = "us" }, "client_id"},
		"a secret":              {func(d *tenants.ConnectionDraft) { d.Secret = "hush" }, "client_secret"},
		"another claim":         {func(d *tenants.ConnectionDraft) { d.SubjectClaim = "email" }, "subject_claim"},
		"scopes":                {func(d *tenants.ConnectionDraft) { d.Scopes = []string{"openid"} }, "scopes"},
		"a prompt":              {func(d *tenants.ConnectionDraft) { d.Prompt = "login" }, "prompt"},
		"an age":                {func(d *tenants.ConnectionDraft) { d.MaxAge = &ten }, "max_age"},
		"a way to authenticate": {func(d *tenants.ConnectionDraft) { d.Auth = tenants.AuthSecret }, "auth"},
		"a provider's keys":     {func(d *tenants.ConnectionDraft) { *d = draft(); d.JWKSURI = "https://hotel.example/jwks.json" }, "jwks_uri"},
	} {
		d := pageDraft()
		tt.change(&d)
		p := d.Check(site, tenants.Hosts{Proven: []string{"hotel.example"}})
		if tt.field == "" && len(p) > 0 || tt.field != "" && (len(p) == 0 || p[0].Field != tt.field || p[0].Mend == "") {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// A login page is tried beside the live provider, goes live by an owner's yes and
// back again; no secret is kept with it, and none is carried over to a provider.
func TestALoginPageIsAConnectionLikeAnother(t *testing.T) {
	w := authoritytest.New(t)
	ctx := t.Context()
	mustCandidate(t, w, draft())
	c := mustCandidate(t, w, pageDraft()) // in the place of the provider that was tried
	if c.Kind != tenants.KindAssertion || c.LoginOrigin != "https://login.hotel.example" || c.ClientID != "" || c.Auth != "" {
		t.Errorf("%+v", c)
	}
	if n := w.Count(t, `SELECT count(*) FROM login_connections WHERE client_secret_sealed <> ''`); n != 0 {
		t.Error("the provider's secret stayed")
	}
	if _, err := tenants.Login(ctx, w.DB, w.Master, w.Hotel.ID); !errors.Is(err, tenants.ErrNoLogin) {
		t.Error("people log in through a candidate")
	}
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, site)}
	change, err := asks.AskLive(ctx, editor(w), w.Hotel.ID, c.ID, "somebody", "api")
	if err != nil {
		t.Fatal(err)
	}
	// Another origin slid under the owner's yes does not go live with it.
	moved := pageDraft()
	moved.LoginOrigin = "https://evil.example"
	mustCandidate(t, w, moved)
	if _, err := asks.Apply(ctx, editor(w), w.Hotel.ID, change.ID, "owner"); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("it went live: %v", err)
	}
	mustCandidate(t, w, pageDraft())
	if _, err := asks.Apply(ctx, editor(w), w.Hotel.ID, change.ID, "owner"); err != nil {
		t.Fatal(err)
	}
	l, err := tenants.Login(ctx, w.DB, w.Master, w.Hotel.ID)
	if err != nil || l.Kind != tenants.KindAssertion || l.JWKSURI != pageDraft().JWKSURI || l.LoginOrigin != c.LoginOrigin {
		t.Fatalf("%+v, %v", l, err)
	}
	if got, want := l.LoginLink("https://x.example/a?b=c d"), "https://login.hotel.example/in?return_to=https%3A%2F%2Fx.example%2Fa%3Fb%3Dc+d"; got != want {
		t.Errorf("link %s", got)
	}
	// Where nothing is sealed, nothing is brought under another key.
	if n, err := tenants.RewrapLogins(ctx, w.DB, unwanted{}, w.Hotel.ID); err != nil || n != 0 {
		t.Errorf("rewrapped %d, %v", n, err)
	}
	// Written as a file and read again, it is the same.
	f, err := tenants.FileOf(ctx, w.DB, w.Hotel.ID, w.Clock.Now())
	if err != nil || f.Login == nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(f.Login)
	if err != nil {
		t.Fatal(err)
	}
	var again tenants.ConnectionDraft
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	live, err := tenants.Connections(ctx, w.DB, w.Hotel.ID)
	if err != nil || !again.Is(live[0], "") || !pageDraft().Is(live[0], "") || draft().Is(live[0], "") {
		t.Errorf("%s is not %+v, %v", raw, live, err)
	}
	if p := again.Check(site, tenants.Hosts{Any: true}); len(p) > 0 {
		t.Error(p)
	}
	// A provider that is tried next has to bring its own secret.
	bare := draft()
	bare.Secret = ""
	if _, err := candidate(t, w, bare); err == nil {
		t.Error("a provider without a secret is taken")
	}
}

// prove has the hotel prove the host.
func prove(t *testing.T, w *authoritytest.World, host string) {
	t.Helper()
	d, err := tenants.AddDomain(t.Context(), w.DB, editor(w), w.Hotel.ID, host)
	if err != nil {
		t.Fatal(err)
	}
	world := &published{records: map[string][]string{d.Record(): {d.Token}}}
	if _, err := tenants.CheckDomain(t.Context(), w.DB, editor(w), world.prover(), w.Hotel.ID, host); err != nil {
		t.Fatal(err)
	}
}

// People are sent to a login page, and what it says of them is believed: it stands
// on a domain of the Brand's when it is saved, when it goes live, and from then on.
func TestLoginPagesStandOnProvenDomains(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	prove(t, w, "office.example")
	prove(t, w, "shop.example")
	both := []string{"login_origin", "login_url"}
	if _, err := candidate(t, w, pageDraft()); !slices.Equal(problemFields(t, err), both) {
		t.Errorf("saved on a domain that is not proven: %v", err)
	}
	prove(t, w, "hotel.example")
	c := mustCandidate(t, w, pageDraft())
	if err := tenants.RemoveDomain(ctx, edit, id, "hotel.example"); err != nil {
		t.Fatalf("nobody logs in through a candidate: %v", err)
	}
	if err := tenants.MakeLive(ctx, edit, site, id, c.ID); !slices.Equal(problemFields(t, err), both) {
		t.Errorf("live on a domain that is not proven: %v", err)
	}
	prove(t, w, "hotel.example")
	if err := tenants.MakeLive(ctx, edit, site, id, c.ID); err != nil {
		t.Fatal(err)
	}
	err := tenants.RemoveDomain(ctx, edit, id, "hotel.example")
	if !slices.Equal(problemFields(t, err), both) || !strings.Contains(err.Error(), "stands on hotel.example") {
		t.Errorf("removed what the login page stands on: %v", err)
	}
	if err := tenants.RemoveDomain(ctx, edit, id, "office.example"); err != nil {
		t.Errorf("kept what nothing stands on: %v", err)
	}
	// In development the page is on this machine.
	local := pageDraft()
	local.LoginURL = "http://127.0.0.1:9/in"
	dev := tenants.Site{PublicURL: site.PublicURL, AllowLoopback: true}
	c, err = tenants.SaveCandidate(ctx, w.DB, edit, w.Master, dev, id, local)
	if err == nil {
		err = tenants.MakeLive(ctx, edit, dev, id, c.ID)
	}
	if err != nil {
		t.Error(err)
	}
}
