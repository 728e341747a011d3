package tenants_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// works makes a person who has these roles at the hotel and the shop; empty: none.
func works(t *testing.T, w *authoritytest.World, email string, hotel, shop tenants.Role) uuid.UUID {
	t.Helper()
	id := uuid.New()
	w.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, $2, $2, $2, 'en', $3)`, id, email, w.Clock.Now())
	for brand, role := range map[string]tenants.Role{"harbor-hotel": hotel, "fern-and-fell": shop} {
		if role != "" {
			w.Exec(t, `INSERT INTO memberships (brand_id, person_id, role, since, confirmed_at) VALUES ($1, $2, $3, $4, $4)`, brand, id, string(role), w.Clock.Now())
		}
	}
	return id
}

// The shop has a Provider of its own; the hotel would like to share it.
func withProvider(t *testing.T) *authoritytest.World {
	t.Helper()
	w := provenHotel(t)
	if err := tenants.NameProvider(t.Context(), editor(w), site, w.Shop.ID, "Fell Group", ""); err != nil {
		t.Fatal(err)
	}
	return w
}

func into(provider string) tenants.Interface {
	want := fronted()
	want.Provider = provider
	return want
}

// Whoever shares an audience can send on the pa-jwts that he is sent: a Brand joins
// another's Provider only by the hand of somebody who owns both. To all others the
// Provider is none, as one that does not exist is.
func TestOnlyAnOwnerOfBothJoinsAProvider(t *testing.T) {
	w := withProvider(t)
	rules := w.Authority(nil)
	both := works(t, w, "both@x.example", tenants.Owner, tenants.Owner)
	move := func(by authority.By, provider string) error {
		return tenants.SetInterface(t.Context(), rules.Editor(by), site, w.Hotel.ID, into(provider), "harbor-hotel", false)
	}
	absent := move(authority.ByMember(both.String()), "no-such-provider")
	if got := problemFields(t, absent); !slices.Equal(got, []string{"provider"}) {
		t.Fatalf("one that is not there: %v", absent)
	}
	restored := works(t, w, "restored@x.example", tenants.Owner, tenants.Owner)
	w.Exec(t, `UPDATE people SET restored_at = $2::timestamptz + interval '1 hour' WHERE id = $1`, restored, w.Clock.Now())
	for name, by := range map[string]authority.By{
		"owner of the joining Brand alone":  authority.ByMember(works(t, w, "a@x.example", tenants.Owner, "").String()),
		"owner of the Provider's alone":     authority.ByMember(works(t, w, "b@x.example", "", tenants.Owner).String()),
		"owner here, security there":        authority.ByMember(works(t, w, "c@x.example", tenants.Owner, tenants.Security).String()),
		"viewer here, owner there":          authority.ByMember(works(t, w, "d@x.example", tenants.Viewer, tenants.Owner).String()),
		"an owner of both whose role rests": authority.ByMember(restored.String()),
		"somebody unknown":                  authority.ByMember(uuid.NewString()),
		"a key, named like an owner":        {Actor: "admin", ID: both.String(), Channel: "api"},
		"upkeep":                            authority.ByUpkeep(),
	} {
		if err := move(by, "fern-and-fell"); err == nil || strings.ReplaceAll(err.Error(), "fern-and-fell", "no-such-provider") != absent.Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b := w.Reload(t, w.Hotel.ID); b.Provider != "demo" || w.Count(t, `SELECT count(*) FROM notices`) != 0 {
		t.Fatalf("it moved to %s, or somebody was told", b.Provider)
	}
	third := works(t, w, "third@x.example", "", tenants.Owner)
	for range 2 {
		if err := move(authority.ByMember(both.String()), "fern-and-fell"); err != nil {
			t.Fatal(err)
		}
	}
	if b := w.Reload(t, w.Hotel.ID); b.Provider != "fern-and-fell" || b.Audience != "urn:countersign:provider:fern-and-fell" {
		t.Errorf("%s %s", b.Provider, b.Audience)
	}
	// Every owner of every Brand of it is told, and it stands in every trail; once.
	const told = `SELECT count(*) FROM notices WHERE kind = 'provider.joined' AND detail->>'about' = 'harbor-hotel' AND detail->>'by' = $1`
	const owners = `SELECT count(*) FROM memberships WHERE role = 'owner'`
	if got, want := w.Count(t, told, both.String()), w.Count(t, owners); got != want {
		t.Errorf("%d told, of %d", got, want)
	}
	if n := w.Count(t, told+` AND person_id = $2`, both.String(), third); n != 1 {
		t.Error("an owner of the Provider's Brand was not told")
	}
	for _, brand := range []string{"harbor-hotel", "fern-and-fell"} {
		if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = $1 AND event = 'provider.joined' AND actor_id = $2`, brand, both.String()); n != 1 {
			t.Errorf("%s: %d facts", brand, n)
		}
	}
	mine, err := tenants.ProvidersOf(t.Context(), w.DB, w.Hotel.ID)
	if err != nil || len(mine) != 1 || mine[0].Own || !mine[0].Present || !slices.Equal(mine[0].Brands, []tenants.BrandID{"harbor-hotel"}) {
		t.Errorf("%+v, %v", mine, err)
	}
}

// A closed Brand lets nobody in any more.
func TestNobodyJoinsAClosedBrandsProvider(t *testing.T) {
	w := withProvider(t)
	rules := w.Authority(nil)
	both := works(t, w, "both@x.example", tenants.Owner, tenants.Owner)
	if _, err := rules.Close(t.Context(), w.Shop.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	err := tenants.SetInterface(t.Context(), rules.Editor(authority.ByMember(both.String())), site, w.Hotel.ID, into("fern-and-fell"), "harbor-hotel", false)
	if got := problemFields(t, err); !slices.Equal(got, []string{"provider"}) {
		t.Errorf("%v", err)
	}
	if some, err := tenants.Joinable(t.Context(), w.DB, w.Hotel.ID, both); err != nil || len(some) != 0 {
		t.Errorf("offered: %+v, %v", some, err)
	}
}

// Through API, command line and file it is asked for where somebody owns both, and
// that is who decides; where nobody does, the Provider is none.
func TestAskingToJoinWaitsForAnOwnerOfBoth(t *testing.T) {
	w := withProvider(t)
	rules := w.Authority(nil)
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, site)}
	key := rules.Editor(authority.By{Actor: "admin", ID: "aaaaaaaaaaaa", Channel: "api"})
	here := works(t, w, "here@x.example", tenants.Owner, "")
	ask := func(provider string) (tenants.PendingChange, error) {
		return asks.AskInterface(t.Context(), key, site, w.Hotel.ID, into(provider), "aaaaaaaaaaaa", "api")
	}
	if _, err := ask("fern-and-fell"); !slices.Equal(problemFields(t, err), []string{"provider"}) {
		t.Errorf("nobody owns both: %v", err)
	}
	both := works(t, w, "both@x.example", tenants.Owner, tenants.Owner)
	c, err := ask("fern-and-fell")
	if err != nil {
		t.Fatal(err)
	}
	apply := func(person uuid.UUID) error {
		_, err := asks.Apply(t.Context(), rules.Editor(authority.ByMember(person.String())), w.Hotel.ID, c.ID, person.String())
		return err
	}
	if err := apply(here); !slices.Equal(problemFields(t, err), []string{"provider"}) {
		t.Errorf("an owner of one of the two: %v", err)
	}
	if _, err := asks.Apply(t.Context(), key, w.Hotel.ID, c.ID, "x"); !slices.Equal(problemFields(t, err), []string{"provider"}) {
		t.Errorf("a key: %v", err)
	}
	if b := w.Reload(t, w.Hotel.ID); b.Provider != "demo" {
		t.Fatal("it moved")
	}
	if err := apply(both); err != nil {
		t.Fatal(err)
	}
	if b := w.Reload(t, w.Hotel.ID); b.Provider != "fern-and-fell" {
		t.Errorf("it is at %s", b.Provider)
	}
}

// A Provider is made and named without anything moving; its audience never changes,
// and nobody names another's.
func TestAnOwnProviderIsMadeAndNamed(t *testing.T) {
	w := provenHotel(t)
	name := func(brand tenants.BrandID, name, audience string) error {
		return tenants.NameProvider(t.Context(), editor(w), site, brand, name, audience)
	}
	for what, tt := range map[string]struct{ name, audience, field string }{
		"no name":           {"", "", "name"},
		"two lines":         {"a\nb", "", "name"},
		"a bank's audience": {"Harbor", "https://bank.example", "audience"},
		"the operator's":    {"Harbor", w.Hotel.Audience, "audience"},
	} {
		if err := name(w.Hotel.ID, tt.name, tt.audience); !slices.Equal(problemFields(t, err), []string{tt.field}) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 2 {
		if err := name(w.Hotel.ID, "Harbor Group", "https://hotel.example"); err != nil {
			t.Fatal(err)
		}
	}
	if err := name(w.Hotel.ID, "Harbor Group", "https://other.hotel.example"); !slices.Equal(problemFields(t, err), []string{"audience"}) {
		t.Errorf("another audience: %v", err)
	}
	if err := name(w.Hotel.ID, "Harbors", ""); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event LIKE 'provider.%'`); n != 2 {
		t.Errorf("%d facts", n)
	}
	all, err := tenants.ProvidersOf(t.Context(), w.DB, w.Hotel.ID)
	if err != nil || len(all) != 2 || all[0].ID != "demo" || all[0].Brands != nil || all[0].Own || !all[0].Present ||
		all[1].Name != "Harbors" || !all[1].Own || all[1].Present || all[1].Audience != "https://hotel.example" {
		t.Errorf("%+v, %v", all, err)
	}
	if b := w.Reload(t, w.Hotel.ID); b.Provider != "demo" {
		t.Error("the Brand moved")
	}
	w.Exec(t, `UPDATE providers SET founder = 'harbor-hotel' WHERE id = 'demo'`)
	w.Exec(t, `INSERT INTO providers (id, name, audience, created_at) VALUES ('fern-and-fell', 'x', 'urn:x', now())`)
	if err := name(w.Shop.ID, "Ours", ""); !slices.Equal(problemFields(t, err), []string{"name"}) {
		t.Errorf("the operator's with the Brand's id: %v", err)
	}
	w.Exec(t, `UPDATE brands SET state = 'closed' WHERE id = 'harbor-hotel'`)
	if err := name(w.Hotel.ID, "Late", ""); !errors.Is(err, tenants.ErrClosed) {
		t.Errorf("a closed Brand: %v", err)
	}
}

// Two Brands may join one another's Provider while the operator stops an agent at
// all of them: nobody waits for somebody who waits for him.
func TestJoiningBothWaysWaitsForNobodyForEver(t *testing.T) {
	w := withProvider(t)
	if err := tenants.NameProvider(t.Context(), editor(w), site, w.Hotel.ID, "Harbor Group", ""); err != nil {
		t.Fatal(err)
	}
	rules := w.Authority(nil)
	both := authority.ByMember(works(t, w, "both@x.example", tenants.Owner, tenants.Owner).String())
	note := rules.NoteAgent(authority.ByOperator())
	round := 0
	join := func(brand tenants.BrandID, provider string) error {
		is, err := tenants.InterfaceOf(t.Context(), w.DB, brand)
		if err != nil {
			return err
		}
		is.Mode, is.Provider, is.Audience = tenants.Fronted, provider, ""
		is.URL = fmt.Sprintf("https://agents.hotel.example/%s/%d", brand, round) // the row is locked for good
		return tenants.SetInterface(t.Context(), rules.Editor(both), site, brand, is, string(brand), false)
	}
	const before = `SELECT provider_id FROM brands WHERE id = $1`
	var hotels, shops string
	if err := w.Owner.QueryRow(t.Context(), before, w.Hotel.ID).Scan(&hotels); err != nil {
		t.Fatal(err)
	}
	if err := w.Owner.QueryRow(t.Context(), before, w.Shop.ID).Scan(&shops); err != nil {
		t.Fatal(err)
	}
	for round = range 25 {
		start, done := make(chan struct{}), make(chan error, 3)
		for _, act := range []func() error{
			func() error { return join(w.Hotel.ID, string(w.Shop.ID)) },
			func() error { return join(w.Shop.ID, string(w.Hotel.ID)) },
			func() error {
				return pgx.BeginFunc(t.Context(), w.Owner, func(tx pgx.Tx) error {
					return note(t.Context(), tx, authoritytest.Agent, "disabled")
				})
			},
		} {
			go func() { <-start; done <- act() }()
		}
		close(start)
		for range 3 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		w.Exec(t, `UPDATE brands SET provider_id = $2 WHERE id = $1`, w.Hotel.ID, hotels)
		w.Exec(t, `UPDATE brands SET provider_id = $2 WHERE id = $1`, w.Shop.ID, shops)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'provider.joined'`); n != 100 {
		t.Errorf("%d facts of 50 joins in two trails each", n)
	}
}
