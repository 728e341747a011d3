package tenants_test

import (
	"errors"
	"testing"

	"countersign.dev/tenants"
)

// Which keys sign, and when they change, is an owner's to say: no door changes it in
// passing, one that asks asks once, and every owner hears of it.
func TestSigningKeysAreAnOwnersAlone(t *testing.T) {
	const hotel, by = tenants.BrandID("harbor-hotel"), "abcdefghijkl"
	a := newAsking(t)
	ctx := t.Context()
	olga := a.joins("olga@hotel.example", tenants.Owner)
	rule := func() tenants.KeyRule {
		t.Helper()
		s, err := tenants.SettingsOf(ctx, a.DB, hotel)
		if err != nil {
			t.Fatal(err)
		}
		return s.KeyRule()
	}
	was, want := rule(), tenants.KeyRule{Alg: "RS256", Days: 1}
	file := tenants.File{Brand: hotel, Settings: []byte(`{"name":"Harbour","Signing_alg":"RS256","rotation_days":1}`)}
	for door, try := range map[string]func() error{
		"kind": func() error {
			_, err := tenants.ChangeSettings(ctx, a.owner, tenants.Site{}, hotel, func(s *tenants.Settings) error { s.SigningAlg = "RS256"; return nil })
			return err
		},
		"sooner": func() error {
			_, err := tenants.ChangeSettings(ctx, a.owner, tenants.Site{}, hotel, func(s *tenants.Settings) error { s.RotationDays--; return nil })
			return err
		},
		"later": func() error {
			_, err := tenants.ChangeSettings(ctx, a.owner, tenants.Site{}, hotel, func(s *tenants.Settings) error { s.RotationDays++; return nil })
			return err
		},
		"file": func() error { return tenants.ApplyFile(ctx, a.owner, tenants.Site{}, file) },
	} {
		var p tenants.Problems
		if err := try(); !errors.As(err, &p) || p[0].Mistake != tenants.OwnersAlone || rule() != was {
			t.Errorf("%s: %v, and it is %v", door, err, rule())
		}
	}
	if taken, err := file.TakeKeyRule(ctx, a.DB); err != nil || taken == nil || *taken != want || string(file.Settings) != `{"name":"Harbour"}` {
		t.Errorf("taken out of the file: %v, %s, %v", taken, file.Settings, err)
	}
	var p tenants.Problems
	if _, err := a.asks.AskKeyRule(ctx, a.edit, tenants.Site{}, hotel, tenants.KeyRule{Alg: "none", Days: 1}, by, "api"); !errors.As(err, &p) {
		t.Errorf("asked for what cannot be: %v", err)
	}
	ask := func(r tenants.KeyRule) tenants.PendingChange {
		t.Helper()
		c, err := a.asks.AskKeyRule(ctx, a.edit, tenants.Site{}, hotel, r, by, "api")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, other := ask(want), ask(tenants.KeyRule{Alg: "ES256", Days: 30})
	if again := ask(want); first.Kind != tenants.ChangeKeyRule || again.ID != first.ID || rule() != was {
		t.Errorf("%+v, again %s, and it is %v", first, again.ID, rule())
	}
	told := func(kind string) int {
		return a.Count(t, `SELECT count(*) FROM notices WHERE kind = $1 AND person_id = $2`, kind, olga)
	}
	if n := told(tenants.EventAsked); n != 1 { // one that waits for the post says both
		t.Errorf("%d letters that it waits", n)
	}
	if _, err := a.asks.Apply(ctx, a.owner, hotel, first.ID, "x"); err != nil || rule() != want {
		t.Errorf("applied: %v, and it is %v", err, rule())
	}
	if _, err := a.asks.Apply(ctx, a.owner, hotel, other.ID, "x"); !errors.Is(err, tenants.ErrChangeStale) || rule() != want {
		t.Errorf("asked about another rule: %v, and it is %v", err, rule())
	}
	if _, err := a.asks.AskKeyRule(ctx, a.edit, tenants.Site{}, hotel, want, by, "api"); !errors.Is(err, tenants.ErrSameKeys) {
		t.Errorf("asked for what is so: %v", err)
	}
	operator := a.edit.TellingFor(tenants.Asker{Name: "operator", Channel: "cli"}, tenants.OwnersHear()...)
	for range 2 { // twice is once
		if err := tenants.SetKeyRule(ctx, operator, tenants.Site{}, hotel, was); err != nil || rule() != was {
			t.Errorf("as the operator: %v, and it is %v", err, rule())
		}
	}
	if n := told("brand.settings"); n != 1 {
		t.Errorf("%d letters of the operator's change", n)
	}
}
