package tenants_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// published is what the world has published: files by URL, TXT records by name.
type published struct {
	files   map[string]string
	records map[string][]string
	asked   []string
}

func (p *published) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked = append(p.asked, r.URL.String())
	body, ok := p.files[r.URL.String()]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (p *published) LookupTXT(_ context.Context, name string) ([]string, error) {
	if r, ok := p.records[strings.TrimSuffix(name, ".")]; ok {
		return r, nil
	}
	return nil, errors.New("lookup on 10.0.0.53: no such host")
}

func (p *published) prover() tenants.Prover {
	return tenants.Prover{HTTP: &http.Client{Transport: p}, DNS: p}
}

// A Brand proves its domain by a file or by DNS, with its own token and no other.
func TestDomainIsProven(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Proven = false })
	add := func(brand tenants.BrandID, name string) tenants.Domain {
		t.Helper()
		d, err := tenants.AddDomain(ctx, w.DB, edit, brand, name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	hotel, shop := add(id, "https://Hotel.example/"), add(w.Shop.ID, "hotel.example")
	if hotel.Host != "hotel.example" || hotel.Token == shop.Token || add(id, "hotel.example").Token != hotel.Token {
		t.Fatalf("%+v %+v", hotel, shop)
	}
	const file = "https://hotel.example/.well-known/countersign-proof"
	for name, tt := range map[string]struct {
		world  published
		proven bool
	}{
		"nothing":               {published{}, false},
		"another Brand's":       {published{files: map[string]string{file: shop.Token}}, false},
		"part of a line":        {published{files: map[string]string{file: "x" + hotel.Token}}, false},
		"behind 4 KiB":          {published{files: map[string]string{file: strings.Repeat("\n", 5000) + hotel.Token}}, false},
		"at the wrong name":     {published{records: map[string][]string{"hotel.example": {hotel.Token}}}, false},
		"another's in DNS":      {published{records: map[string][]string{"_countersign.hotel.example": {shop.Token}}}, false},
		"in DNS":                {published{records: map[string][]string{"_countersign.hotel.example": {"v=spf1", hotel.Token}}}, true},
		"in a file, and others": {published{files: map[string]string{file: shop.Token + "\r\n" + hotel.Token + "\n"}}, true},
	} {
		w.Exec(t, `UPDATE brand_domains SET proven_at = NULL, method = NULL, failing_since = NULL`)
		w.Exec(t, `UPDATE brands SET proven = false WHERE id = $1`, id)
		d, err := tenants.CheckDomain(ctx, w.DB, edit, tt.world.prover(), id, "hotel.example")
		if err != nil || (d.State(w.Clock.Now()) == "proven") != tt.proven {
			t.Errorf("%s: %s, %v", name, d.State(w.Clock.Now()), err)
		}
		b := w.Reload(t, id)
		if b.Proven != tt.proven || (b.Domain == "hotel.example") != tt.proven {
			t.Errorf("%s: the Brand counts as proven: %v %q", name, b.Proven, b.Domain)
		}
		if !tt.proven && (d.Trouble == "" || strings.Contains(d.Trouble, "10.0.0.53")) {
			t.Errorf("%s: trouble %q", name, d.Trouble)
		}
	}
	if _, err := tenants.CheckDomain(ctx, w.DB, edit, (&published{}).prover(), id, "other.example"); !errors.Is(err, tenants.ErrNoDomain) {
		t.Errorf("a domain that was not added: %v", err)
	}
	if b := w.Reload(t, w.Shop.ID); b.Domain != "" {
		t.Errorf("the shop shows %s", b.Domain)
	}
}

// Only names that can stand for a Brand are proved.
func TestDomainNames(t *testing.T) {
	w := authoritytest.New(t)
	for _, name := range []string{"", "localhost", "127.0.0.1", "https://127.0.0.1/", "[::1]", "a b.example", "a_b.example", "hotel.example:8443", "hotel.example/x", "user@hotel.example", strings.Repeat("a", 64) + ".example"} {
		if _, err := tenants.AddDomain(t.Context(), w.DB, editor(w), w.Hotel.ID, name); !slices.Equal(problemFields(t, err), []string{"host"}) {
			t.Errorf("%q was added: %v", name, err)
		}
	}
	d, err := tenants.AddDomain(t.Context(), w.DB, editor(w), w.Hotel.ID, "Bücher.example.")
	if err != nil || d.Host != "xn--bcher-kva.example" {
		t.Errorf("%s, %v", d.Host, err)
	}
}

// A proof that goes missing is told, after a week loudly, and stops nobody; found
// again, all is well.
func TestLostProofIsNoSuddenDeath(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	d, err := tenants.AddDomain(ctx, w.DB, edit, id, "hotel.example")
	if err != nil {
		t.Fatal(err)
	}
	world := &published{records: map[string][]string{d.Record(): {d.Token}}}
	recheck := func() string {
		t.Helper()
		if err := tenants.RecheckDomain(ctx, w.DB, edit, world.prover(), id, w.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		all, err := tenants.Domains(ctx, w.DB, id)
		if err != nil {
			t.Fatal(err)
		}
		return all[0].State(w.Clock.Now())
	}
	if _, err := tenants.CheckDomain(ctx, w.DB, edit, world.prover(), id, d.Host); err != nil {
		t.Fatal(err)
	}
	world.asked = nil
	if recheck() != "proven" || len(world.asked) > 0 {
		t.Errorf("looked again at once: %v", world.asked)
	}
	world.records = nil
	w.Clock.Advance(25 * time.Hour)
	if got := recheck(); got != "failing" || w.Reload(t, id).Domain != d.Host {
		t.Errorf("after a day: %s", got)
	}
	w.Clock.Advance(8 * 24 * time.Hour)
	b := w.Reload(t, id)
	if got := recheck(); got != "lost" || !b.Proven || b.Domain != "" {
		t.Errorf("after a week: %s, proven %v, shows %q", got, b.Proven, b.Domain)
	}
	a := w.Authority(nil)
	authoritytest.Begin(t, a, b, authoritytest.Alex, "bookings:read")
	world.records = map[string][]string{d.Record(): {d.Token}}
	w.Clock.Advance(2 * time.Hour)
	if got := recheck(); got != "proven" || w.Reload(t, id).Domain != d.Host {
		t.Errorf("found again: %s", got)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event IN ('domain.proven', 'domain.failing', 'domain.found_again')`); n != 3 {
		t.Errorf("%d facts", n)
	}
}

// The last proof, and one that the Brand's addresses stand on, cannot be taken
// away.
func TestDomainInUseStays(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), w.Authority(nil).Editor(authority.ByOperator()), w.Hotel.ID
	for _, host := range []string{"hotel.example", "help.example", "waiting.example"} {
		d, err := tenants.AddDomain(ctx, w.DB, edit, id, host)
		if err != nil {
			t.Fatal(err)
		}
		world := &published{}
		if host != "waiting.example" {
			world.records = map[string][]string{d.Record(): {d.Token}}
		}
		if _, err := tenants.CheckDomain(ctx, w.DB, edit, world.prover(), id, host); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := set(t, w, func(s *tenants.Settings) { s.SupportURL = "https://www.help.example/" }); err != nil {
		t.Fatal(err)
	}
	if got := problemFields(t, tenants.RemoveDomain(ctx, edit, id, "help.example")); !slices.Equal(got, []string{"support_url"}) {
		t.Errorf("removed what help stands on: %v", got)
	}
	for _, host := range []string{"waiting.example", "hotel.example"} {
		if err := tenants.RemoveDomain(ctx, edit, id, host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := set(t, w, func(s *tenants.Settings) { s.SupportURL = "" }); err != nil {
		t.Fatal(err)
	}
	if err := tenants.RemoveDomain(ctx, edit, id, "help.example"); !errors.Is(err, tenants.ErrLastDomain) {
		t.Errorf("removed the last: %v", err)
	}
	if err := tenants.RemoveDomain(ctx, edit, w.Shop.ID, "help.example"); !errors.Is(err, tenants.ErrNoDomain) {
		t.Errorf("the shop removed it: %v", err)
	}
}

// Nothing new comes to a place whose proof is lost, and it takes the place of no other;
// what stands there already stays, and no other change is refused for its sake.
func TestLostDomainsHoldNothingNew(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	for _, host := range []string{"hotel.example", "office.example"} {
		prove(t, w, host)
	}
	support := func(to string) func(*tenants.Settings) { return func(s *tenants.Settings) { s.SupportURL = to } }
	connected := func(to string) func(*tenants.Settings) { return func(s *tenants.Settings) { s.ConnectedURL = to } }
	if _, err := set(t, w, support("https://hotel.example/help")); err != nil {
		t.Fatal(err)
	}
	c := mustCandidate(t, w, pageDraft())
	fronted := tenants.Interface{Mode: tenants.Fronted, URL: "https://hotel.example/agent"}
	if err := moveTo(t, w, fronted); err != nil {
		t.Fatal(err)
	}
	lose := func(host string, ago time.Duration) {
		w.Exec(t, `UPDATE brand_domains SET failing_since = $2 WHERE host = $1`, host, w.Clock.Now().Add(-ago))
	}
	const week = 7 * 24 * time.Hour
	lose("hotel.example", week) // failing, and not lost
	if _, err := set(t, w, connected("https://hotel.example/on")); err != nil {
		t.Errorf("on a domain that fails: %v", err)
	}
	lose("hotel.example", week+time.Second)
	for what, got := range map[string][]string{
		"connected_url": problemsOf(t, w, connected("https://hotel.example/elsewhere")),
		"support_url":   problemsOf(t, w, support("https://hotel.example/new")),
		"interface_url": problemFields(t, moveTo(t, w, tenants.Interface{Mode: tenants.Fronted, URL: "https://hotel.example/other"})),
	} {
		if !slices.Equal(got, []string{what}) {
			t.Errorf("%s on a lost domain: %v", what, got)
		}
	}
	page := []string{"login_origin", "login_url"}
	if got := problemFields(t, tenants.MakeLive(ctx, edit, site, id, c.ID)); !slices.Equal(got, page) {
		t.Errorf("a login page on a lost domain went live: %v", got)
	}
	if _, err := candidate(t, w, pageDraft()); !slices.Equal(problemFields(t, err), page) {
		t.Errorf("a login page on a lost domain was saved: %v", err)
	}
	// What stands stays.
	if _, err := set(t, w, func(s *tenants.Settings) { s.Colour = "#102030" }); err != nil {
		t.Errorf("another setting: %v", err)
	}
	fronted.Provider = "harbor-hotel"
	if err := moveTo(t, w, fronted); err != nil {
		t.Errorf("the interface as it stands: %v", err)
	}
	// The lost one counts for nothing: the other is the last, and holds nothing of it.
	if err := tenants.RemoveDomain(ctx, edit, id, "office.example"); !errors.Is(err, tenants.ErrLastDomain) {
		t.Errorf("removed the last that stands: %v", err)
	}
	prove(t, w, "third.example")
	if err := tenants.RemoveDomain(ctx, edit, id, "third.example"); err != nil {
		t.Errorf("kept what nothing stands on: %v", err)
	}
	if got := problemFields(t, tenants.RemoveDomain(ctx, edit, id, "hotel.example")); !slices.Contains(got, "support_url") || !slices.Contains(got, "interface_url") {
		t.Errorf("removed the lost one, and what stands on it: %v", got)
	}
	// The operator's leave from before there were proofs does not come back.
	lose("office.example", week+time.Second)
	w.Exec(t, `UPDATE brands SET proven = true WHERE id = $1`, id)
	if got := problemsOf(t, w, support("https://anywhere.example/")); !slices.Equal(got, []string{"support_url"}) {
		t.Errorf("with every domain lost, anything goes: %v", got)
	}
	if err := tenants.RemoveDomain(ctx, edit, id, "office.example"); !errors.Is(err, tenants.ErrLastDomain) {
		t.Errorf("removed one of two lost ones: %v", err)
	}
}

func problemsOf(t *testing.T, w *authoritytest.World, fn func(*tenants.Settings)) []string {
	t.Helper()
	_, err := set(t, w, fn)
	return problemFields(t, err)
}

// The page on which a person goes on after a decision holds its domain, as every other
// address of the Brand's does.
func TestEveryAddressHoldsItsDomain(t *testing.T) {
	w := authoritytest.New(t)
	prove(t, w, "hotel.example")
	prove(t, w, "office.example")
	for field, at := range map[string]func(*tenants.Settings, string){
		"support_url":   func(s *tenants.Settings, to string) { s.SupportURL = to },
		"privacy_url":   func(s *tenants.Settings, to string) { s.PrivacyURL = to },
		"connected_url": func(s *tenants.Settings, to string) { s.ConnectedURL = to },
	} {
		if _, err := set(t, w, func(s *tenants.Settings) { at(s, "https://on.hotel.example/x") }); err != nil {
			t.Fatal(err)
		}
		err := tenants.RemoveDomain(t.Context(), editor(w), w.Hotel.ID, "hotel.example")
		if got := problemFields(t, err); !slices.Equal(got, []string{field}) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := set(t, w, func(s *tenants.Settings) { at(s, "") }); err != nil {
			t.Fatal(err)
		}
	}
}
