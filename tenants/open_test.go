package tenants_test

import (
	"errors"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// A Brand is opened to unregistered agents by OpenAgents alone, and only once it
// has proved a domain; an owner who is asked may do it, once.
func TestOpeningIsAnOwnersAlone(t *testing.T) {
	w := authoritytest.New(t)
	edit, id, ctx := w.Authority(nil).Editor(authority.ByOperator()), w.Hotel.ID, t.Context()
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, tenants.Site{})}
	rule := func() string {
		t.Helper()
		s, err := tenants.SettingsOf(ctx, w.DB, id)
		if err != nil {
			t.Fatal(err)
		}
		return s.Agents
	}
	refused := func(what string, err error, why tenants.Mistake) {
		t.Helper()
		var p tenants.Problems
		if !errors.As(err, &p) || p[0].Mistake != why || rule() != tenants.AgentsRegistered {
			t.Errorf("%s: %v, and it is %s", what, err, rule())
		}
	}
	set := func(to string) error {
		_, err := tenants.ChangeSettings(ctx, edit, tenants.Site{}, id, func(s *tenants.Settings) error { s.Agents = to; return nil })
		return err
	}
	file := tenants.File{Brand: id, Settings: []byte(`{"agents":"open"}`)}
	refused("as a setting", set(tenants.AgentsOpen), tenants.OwnersAlone)
	refused("by a file", tenants.ApplyFile(ctx, edit, tenants.Site{}, file), tenants.OwnersAlone)
	w.Exec(t, `UPDATE brands SET proven = false WHERE id = $1`, string(id))
	refused("unproven", tenants.OpenAgents(ctx, edit, id), tenants.Unproven)
	_, err := asks.AskOpen(ctx, edit, id, "key", "api")
	refused("unproven, asked for", err, tenants.Unproven)
	w.Exec(t, `UPDATE brands SET proven = true WHERE id = $1`, string(id))

	asked, err := asks.AskOpen(ctx, edit, id, "key", "api")
	if err != nil || rule() != tenants.AgentsRegistered {
		t.Fatalf("%v, and it is %s", err, rule())
	}
	if taken, err := file.TakeWidening(ctx, w.DB); err != nil || taken != tenants.AgentsOpen || string(file.Settings) != `{}` {
		t.Errorf("taken out of the file: %q, %s, %v", taken, file.Settings, err)
	}
	if _, err := asks.Apply(ctx, edit, id, asked.ID, "owner"); err != nil || rule() != tenants.AgentsOpen {
		t.Fatalf("applied: %v, and it is %s", err, rule())
	}
	if _, err := asks.AskOpen(ctx, edit, id, "key", "api"); !errors.Is(err, tenants.ErrOpen) {
		t.Errorf("asked again: %v", err)
	}
	if err := errors.Join(set(tenants.AgentsOpen), tenants.OpenAgents(ctx, edit, id)); err != nil { // twice is once
		t.Error(err)
	}
	if err := set(tenants.AgentsListed); err != nil || rule() != tenants.AgentsListed {
		t.Errorf("closed again: %v", err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.settings'`); n != 2 {
		t.Errorf("%d facts", n)
	}
}
