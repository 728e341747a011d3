package tenants_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

func scope(id string) tenants.Scope {
	return tenants.Scope{ID: id, Description: "See it", Effect: "sees", Impact: "low"}
}

func cardOrder(b *tenants.Brand) string {
	ids := make([]string, len(b.Scopes))
	for i, s := range b.Scopes {
		ids[i] = s.ID
	}
	return strings.Join(ids, " ")
}

// Every mistake in a scope is found and says how to mend it (B84 among them).
func TestScopesSayHowToMendThem(t *testing.T) {
	w := authoritytest.New(t)
	for name, tt := range map[string]struct {
		change func(*tenants.Scope)
		field  string
	}{
		"as it is":               {func(*tenants.Scope) {}, ""},
		"a space":                {func(s *tenants.Scope) { s.ID = "a b" }, "id"},
		"a quote":                {func(s *tenants.Scope) { s.ID = `a"b` }, "id"},
		"no id":                  {func(s *tenants.Scope) { s.ID = "" }, "id"},
		"only case apart":        {func(s *tenants.Scope) { s.ID = "Bookings:Read" }, "id"},
		"no words":               {func(s *tenants.Scope) { s.Description = "" }, "description"},
		"endless words":          {func(s *tenants.Scope) { s.Description = strings.Repeat("x", 201) }, "description"},
		"two lines":              {func(s *tenants.Scope) { s.Undo = "a\nb" }, "undo"},
		"a made-up effect":       {func(s *tenants.Scope) { s.Effect = "sells" }, "effect"},
		"a made-up impact":       {func(s *tenants.Scope) { s.Impact = "none" }, "impact"},
		"words in no language":   {func(s *tenants.Scope) { s.Texts = map[string]tenants.ScopeText{"??": {Description: "x"}} }, "texts.??"},
		"half a translation":     {func(s *tenants.Scope) { s.Texts = map[string]tenants.ScopeText{"de": {Undo: "x"}} }, "texts.de.description"},
		"a whole translation":    {func(s *tenants.Scope) { s.Texts = map[string]tenants.ScopeText{"de": {Description: "Sehen"}} }, ""},
		"a bidi mark in its own": {func(s *tenants.Scope) { s.Description = "See \u202e it" }, "description"},
	} {
		s := scope("things:read")
		tt.change(&s)
		got := problemFields(t, tenants.SaveScope(t.Context(), editor(w), w.Hotel.ID, s))
		if tt.field == "" && len(got) > 0 || tt.field != "" && !slices.Contains(got, tt.field) {
			t.Errorf("%s: problems with %v", name, got)
		}
	}
}

// New ones come last, changed ones stay where they are, and the order is the
// Brand's.
func TestScopesAreAddedChangedAndOrdered(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	for _, s := range []tenants.Scope{scope("things:read"), {ID: "bookings:change", Description: "Anders", Effect: "changes", Impact: "high", Undo: "Call us"}} {
		if err := tenants.SaveScope(ctx, edit, id, s); err != nil {
			t.Fatal(err)
		}
	}
	b := w.Reload(t, id)
	if cardOrder(b) != "bookings:read bookings:change extras:order account:read things:read" {
		t.Error(cardOrder(b))
	}
	if s, _ := b.Scope("bookings:change"); s.Description != "Anders" || s.Impact != "high" || s.Undo != "Call us" {
		t.Errorf("%+v", s)
	}
	if event, _, _, detail := lastFact(t, w); event != "scope.changed" || detail["scope"] != "bookings:change" || detail["changed"] == nil {
		t.Errorf("%s %v", event, detail)
	}
	order := []string{"things:read", "account:read", "extras:order", "bookings:change", "bookings:read"}
	if err := tenants.OrderScopes(ctx, edit, id, order); err != nil {
		t.Fatal(err)
	}
	if got := cardOrder(w.Reload(t, id)); got != strings.Join(order, " ") {
		t.Error(got)
	}
	for name, ids := range map[string][]string{
		"one is missing": order[1:], "one is twice": append(order[1:], "bookings:read"), "one is not there": append(order[1:], "x"), "none": nil,
	} {
		if got := problemFields(t, tenants.OrderScopes(ctx, edit, id, ids)); !slices.Equal(got, []string{"order"}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := cardOrder(w.Reload(t, w.Shop.ID)); got != "orders:read bookings:read" {
		t.Errorf("the shop's: %s", got)
	}
}

// Retiring breaks no grant: the next token does not name the scope, and with the
// scope comes the permission back.
func TestRetiringKeepsGrants(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, a := t.Context(), editor(w), w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read", "bookings:change")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-1", "bookings:read", "bookings:change")
	paid, err := a.Poll(ctx, w.Hotel, authoritytest.Alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	refresh := func(want string) {
		t.Helper()
		next, err := a.Refresh(ctx, w.Hotel, authoritytest.Alex, paid.Refresh, nil)
		if err != nil || strings.Join(next.Scopes, " ") != want {
			t.Fatalf("%v, %v; want %s", next.Scopes, err, want)
		}
		paid = next
	}
	for range 2 {
		if err := tenants.RetireScope(ctx, edit, w.Hotel.ID, "bookings:change"); err != nil {
			t.Fatal(err)
		}
	}
	refresh("bookings:read")
	if _, err := a.Begin(ctx, w.Reload(t, w.Hotel.ID), authoritytest.Alex, []string{"bookings:change"}); !errors.Is(err, authority.ErrScope) {
		t.Errorf("asked for a retired scope: %v", err)
	}
	for range 2 {
		if err := tenants.RestoreScope(ctx, edit, w.Hotel.ID, "bookings:change"); err != nil {
			t.Fatal(err)
		}
	}
	refresh("bookings:read bookings:change")
	if got := cardOrder(w.Reload(t, w.Hotel.ID)); got != "bookings:read extras:order account:read bookings:change" {
		t.Error(got)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event IN ('scope.retired', 'scope.restored')`); n != 2 {
		t.Errorf("%d facts", n)
	}
	if err := tenants.RetireScope(ctx, edit, w.Hotel.ID, "orders:read"); !errors.Is(err, tenants.ErrNoScope) {
		t.Errorf("retired the shop's: %v", err)
	}
}

// A language stands on the list when every scope has its words, and from then on
// no scope is without.
func TestLanguagesHaveEveryWord(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	for _, s := range w.Hotel.Scopes {
		s.Texts = map[string]tenants.ScopeText{"de": {Description: "Auf Deutsch"}}
		if err := tenants.SaveScope(ctx, edit, id, s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := set(t, w, func(s *tenants.Settings) { s.Languages = []string{"de"} }); err != nil {
		t.Fatal(err)
	}
	if got := problemFields(t, tenants.SaveScope(ctx, edit, id, scope("things:read"))); !slices.Equal(got, []string{"texts.de"}) {
		t.Errorf("a scope without German: %v", got)
	}
	s := scope("things:read")
	s.Undo, s.Texts = "Call us", map[string]tenants.ScopeText{"de": {Description: "Sehen"}}
	if got := problemFields(t, tenants.SaveScope(ctx, edit, id, s)); !slices.Equal(got, []string{"texts.de"}) {
		t.Errorf("an undo without German: %v", got)
	}
}

// Whoever revises a scope writes over nothing that they have not seen, and a new
// one over none that is there. Of two at the same time one wins.
func TestReviseScopeWritesOverNothingUnseen(t *testing.T) {
	w := authoritytest.New(t)
	revise := func(seen string, s tenants.Scope) error {
		return tenants.ReviseScope(t.Context(), editor(w), w.Hotel.ID, seen, s)
	}
	now, _ := w.Hotel.Scope("bookings:read")
	s := now
	s.Description = "See all your bookings"
	if err := revise("", s); !errors.Is(err, tenants.ErrScopeStale) {
		t.Errorf("a new scope over an old one: %v", err)
	}
	if err := revise(now.Version()+"x", s); !errors.Is(err, tenants.ErrScopeStale) {
		t.Errorf("over what was not seen: %v", err)
	}
	if err := revise(now.Version(), tenants.Scope{ID: "other:read", Description: "x", Effect: "sees", Impact: "low"}); !errors.Is(err, tenants.ErrScopeStale) {
		t.Errorf("over one that is not there: %v", err)
	}
	done := make(chan error)
	for _, words := range []string{"See every booking", "See each booking"} {
		mine := now
		mine.Description = words
		go func() { done <- revise(now.Version(), mine) }()
	}
	one, other := <-done, <-done
	if (one == nil) == (other == nil) || !errors.Is(errors.Join(one, other), tenants.ErrScopeStale) {
		t.Errorf("of two at the same time: %v and %v", one, other)
	}
}

// An editor that tells puts a notice for every owner beside each fact, and none
// where nothing changed or nothing came about.
func TestTellingTellsOwnersOnce(t *testing.T) {
	w := authoritytest.New(t)
	var owner, viewer uuid.UUID
	for _, p := range []struct {
		id   *uuid.UUID
		role string
	}{{&owner, "owner"}, {&viewer, "viewer"}} {
		*p.id = uuid.New()
		w.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, $2, $2, 'P', 'en', $3)`, *p.id, p.role+"@example.com", w.Clock.Now())
		w.Exec(t, `INSERT INTO memberships VALUES ($1, $2, $3, $4, $4)`, w.Hotel.ID, *p.id, p.role, w.Clock.Now())
	}
	telling := editor(w).Telling(viewer)
	for range 2 {
		if err := tenants.RetireScope(t.Context(), telling, w.Hotel.ID, "bookings:read"); err != nil {
			t.Fatal(err)
		}
	}
	if err := tenants.RetireScope(t.Context(), telling, w.Hotel.ID, "nothing"); !errors.Is(err, tenants.ErrNoScope) {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM notices WHERE person_id = $1 AND kind = 'scope.retired' AND brand_id = $2`, owner, w.Hotel.ID); n != 1 {
		t.Errorf("the owner has %d notices", n)
	}
	if n := w.Count(t, `SELECT count(*) FROM notices`); n != 1 {
		t.Errorf("%d notices in all", n)
	}
}

// A Brand sees every registered agent as it stands with itself, and nothing of what
// another Brand thinks.
func TestAgentsAtIsTheBrandsOwnView(t *testing.T) {
	w := authoritytest.New(t)
	for brand, allowed := range map[tenants.BrandID]bool{w.Hotel.ID: false, w.Shop.ID: true} {
		if err := tenants.ListAgent(t.Context(), editor(w), brand, authoritytest.Agent, allowed); err != nil {
			t.Fatal(err)
		}
	}
	w.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, authoritytest.OtherAgent)
	for brand, allowed := range map[tenants.BrandID]bool{w.Hotel.ID: false, w.Shop.ID: true} {
		all, err := tenants.AgentsAt(t.Context(), w.DB, brand, "", "", 10)
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		if a := all[0]; a.Listed == nil || *a.Listed != allowed || a.May != allowed || !a.Enabled || a.KeysURL != authoritytest.Agent+"/jwks.json" {
			t.Errorf("%s sees %+v", brand, a)
		}
		if a := all[1]; a.Listed != nil || a.May || a.Enabled {
			t.Errorf("%s sees %+v", brand, a)
		}
	}
	if _, err := tenants.AgentAt(t.Context(), w.DB, w.Hotel.ID, "https://nobody.example"); !errors.Is(err, tenants.ErrNoAgent) {
		t.Error(err)
	}
}
