package tenants_test

import (
	"errors"
	"slices"
	"testing"

	"countersign.dev/tenants"
)

// What an owner allowed was asked about certain events of a certain endpoint: where
// these have changed since, it is asked for again; nothing of another Brand's moves.
func TestEventsOfAWebhookChangeAsAsked(t *testing.T) {
	w, ctx := withProvider(t), t.Context()
	edit := editor(w)
	hook, _, err := tenants.CreateWebhook(ctx, edit, w.Master, tenants.Site{}, w.Hotel.ID, tenants.WebhookDraft{URL: "https://hotel.example/hook", Events: []string{"grant.created"}})
	if err != nil {
		t.Fatal(err)
	}
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, site)}
	if _, err := asks.AskWebhookEvents(ctx, edit, w.Shop.ID, hook.ID, []string{"grant.revoked"}, "k", "api"); !errors.Is(err, tenants.ErrNoWebhook) {
		t.Errorf("asked for at another Brand: %v", err)
	}
	c, err := asks.AskWebhookEvents(ctx, edit, w.Hotel.ID, hook.ID, []string{"grant.revoked"}, "k", "api")
	if err != nil {
		t.Fatal(err)
	}
	set := func(brand tenants.BrandID, before, after string) error {
		return tenants.SetWebhookEvents(ctx, edit, brand, hook.ID, []string{before}, []string{after})
	}
	if err := set(w.Shop.ID, "grant.created", "grant.expired"); !errors.Is(err, tenants.ErrNoWebhook) {
		t.Errorf("at another Brand: %v", err)
	}
	for range 2 {
		if err := set(w.Hotel.ID, "grant.created", "grant.expired"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := asks.Apply(ctx, edit, w.Hotel.ID, c.ID, "x"); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("out of date: %v", err)
	}
	all, err := tenants.Webhooks(ctx, w.DB, w.Hotel.ID)
	if err != nil || len(all) != 1 || !slices.Equal(all[0].Events, []string{"grant.expired"}) {
		t.Errorf("%+v, %v", all, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'webhook.events'`); n != 1 {
		t.Errorf("%d facts", n)
	}
}

// A key that a file names no more is asked to be revoked; another Brand's is none.
func TestAKeyIsAskedToEnd(t *testing.T) {
	w, ctx := withProvider(t), t.Context()
	edit := editor(w)
	key, err := tenants.NewAPIKey(ctx, edit, w.Hotel.ID, tenants.KeyDraft{Name: "x", Rights: []tenants.Right{"verify"}})
	if err != nil {
		t.Fatal(err)
	}
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, site)}
	if _, err := asks.AskKeyEnd(ctx, edit, w.Shop.ID, tenants.KeyID(key), "k", "api"); !errors.Is(err, tenants.ErrBadKey) {
		t.Errorf("at another Brand: %v", err)
	}
	c, err := asks.AskKeyEnd(ctx, edit, w.Hotel.ID, tenants.KeyID(key), "k", "api")
	if err != nil {
		t.Fatal(err)
	}
	opens := func() error {
		_, err := tenants.NewCredentials(w.DB, w.Clock.Now).Check(ctx, w.Hotel.ID, key, "verify")
		return err
	}
	if err := opens(); err != nil {
		t.Errorf("before an owner's yes: %v", err)
	}
	if _, err := asks.Apply(ctx, edit, w.Hotel.ID, c.ID, "x"); err != nil {
		t.Fatal(err)
	}
	if err := opens(); !errors.Is(err, tenants.ErrBadKey) {
		t.Errorf("after: %v", err)
	}
}
