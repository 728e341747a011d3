package tenants_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// mover seals under a new master key what an old one sealed.
type mover struct{ from, to *signing.Master }

func (m mover) Rewrap(ctx context.Context, brand tenants.BrandID, purpose string, sealed []byte) ([]byte, bool, error) {
	if _, err := m.to.Open(ctx, brand, purpose, sealed); err == nil {
		return sealed, false, nil
	}
	plain, err := m.from.Open(ctx, brand, purpose, sealed)
	if err != nil {
		return nil, false, err
	}
	fresh, err := m.to.Seal(ctx, brand, purpose, plain)
	return fresh, err == nil, err
}

// B71: secrets of webhooks move to a new keeper, former ones too, and sign as
// before; only those of the Brand.
func TestWebhookSecretsAreRewrapped(t *testing.T) {
	w := authoritytest.New(t)
	ctx := t.Context()
	hook, first, err := tenants.CreateWebhook(ctx, editor(w), w.Master, tenants.Site{}, w.Hotel.ID, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.RotateWebhook(ctx, editor(w), w.Master, w.Hotel.ID, hook.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tenants.CreateWebhook(ctx, editor(w), w.Master, tenants.Site{}, w.Shop.ID, tenants.WebhookDraft{URL: "https://shop.example/hook"}); err != nil {
		t.Fatal(err)
	}
	before, err := tenants.NewReceivers(w.DB, w.Master, w.Clock.Now).Receiver(ctx, w.Hotel.ID, hook.ID)
	if err != nil || len(before.Keys) != 2 {
		t.Fatalf("%v, %v", before, err)
	}
	m := mover{from: w.Master, to: signing.NewMaster()}
	if n, err := tenants.RewrapWebhooks(ctx, w.DB, m, w.Hotel.ID); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := tenants.RewrapWebhooks(ctx, w.DB, m, w.Hotel.ID); n != 0 || err != nil {
		t.Errorf("once more: %d, %v", n, err)
	}
	after, err := tenants.NewReceivers(w.DB, m.to, w.Clock.Now).Receiver(ctx, w.Hotel.ID, hook.ID)
	if err != nil || len(after.Keys) != 2 {
		t.Fatalf("%v, %v", after, err)
	}
	for i := range before.Keys {
		if !bytes.Equal(before.Keys[i].Key, after.Keys[i].Key) || !before.Keys[i].Until.Equal(after.Keys[i].Until) {
			t.Errorf("key %d is another one", i)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE brand_id = 'fern-and-fell' AND former_sealed IS NULL`); n != 1 {
		t.Error("another Brand's secret was touched")
	}
	// A secret says nothing when it is printed or logged.
	if text := fmt.Sprintf("%v %+v %#v %s", after, after, after, after.Keys[0]); strings.Contains(text, first[6:]) || !strings.Contains(text, "[hidden]") ||
		strings.Contains(text, fmt.Sprint(after.Keys[0].Key)) || strings.Contains(text, fmt.Sprintf("%#v", after.Keys[0].Key)) {
		t.Errorf("printed: %s", text)
	}
}

// The endpoint is bound into the ciphertext: whoever can write rows makes no
// endpoint of his own sign with another's secret.
func TestAWebhookSecretOpensInItsPlaceOnly(t *testing.T) {
	w := authoritytest.New(t)
	ctx := t.Context()
	var ids []string
	for range 2 {
		hook, _, err := tenants.CreateWebhook(ctx, editor(w), w.Master, tenants.Site{}, w.Hotel.ID, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, hook.ID)
	}
	w.Exec(t, `UPDATE webhook_endpoints SET secret_sealed = (SELECT secret_sealed FROM webhook_endpoints WHERE id = $1) WHERE id = $2`, ids[0], ids[1])
	receivers := tenants.NewReceivers(w.DB, w.Master, w.Clock.Now)
	if _, err := receivers.Receiver(ctx, w.Hotel.ID, ids[0]); err != nil {
		t.Error(err)
	}
	if _, err := receivers.Receiver(ctx, w.Hotel.ID, ids[1]); err == nil {
		t.Error("a copied secret opened")
	}
	if _, err := receivers.Receiver(ctx, w.Shop.ID, ids[0]); !errors.Is(err, tenants.ErrNoWebhook) {
		t.Errorf("another Brand's endpoint: %v", err)
	}
	if err := tenants.EnableWebhook(ctx, w.Authority(nil).Editor(authority.ByOperator()), w.Shop.ID, ids[0], false, "x"); !errors.Is(err, tenants.ErrNoWebhook) {
		t.Errorf("another Brand turned it off: %v", err)
	}
}

func TestWebhooksAreCheckedWhenSaved(t *testing.T) {
	w := authoritytest.New(t)
	for url, loopback := range map[string]bool{
		"http://hotel.example/": true, "https://192.168.1.1/": true, "https://[fd00::1]/": true, "http://127.0.0.1:80/": false, "": true, "x": true,
	} {
		_, _, err := tenants.CreateWebhook(t.Context(), editor(w), w.Master, tenants.Site{AllowLoopback: loopback}, w.Hotel.ID, tenants.WebhookDraft{URL: url})
		if p, ok := errors.AsType[tenants.Problems](err); !ok || len(p) != 1 || p[0].Field != "url" {
			t.Errorf("%q: %v", url, err)
		}
	}
	_, _, err := tenants.CreateWebhook(t.Context(), editor(w), w.Master, tenants.Site{}, w.Hotel.ID, tenants.WebhookDraft{URL: "https://hotel.example/", Events: []string{"grant.*"}, Format: "xml"})
	if p, ok := errors.AsType[tenants.Problems](err); !ok || len(p) != 2 || p[0].Field != "format" || p[1].Field != "events" {
		t.Errorf("an event and a format that there are not: %v", err)
	}
	if n := w.Count(t, `SELECT count(*) FROM webhook_endpoints`); n != 0 {
		t.Errorf("%d were saved", n)
	}
}

// Who is told, and under which secret, decides over what a Brand learns: each
// change of it stands in the trail, with who made it and without what is secret.
func TestWebhooksLeaveATrail(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	hook, secret, err := tenants.CreateWebhook(ctx, edit, w.Master, tenants.Site{}, id, tenants.WebhookDraft{URL: "https://hotel.example/hook?key=hush", Events: []string{"grant.revoked"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.RotateWebhook(ctx, edit, w.Master, id, hook.ID, 0); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false, false, true} {
		if err := tenants.EnableWebhook(ctx, edit, id, hook.ID, on, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		tenants.EnableWebhook(ctx, edit, w.Shop.ID, hook.ID, false, ""),
		func() error { _, err := tenants.RotateWebhook(ctx, edit, w.Master, w.Shop.ID, hook.ID, 0); return err }(),
	} {
		if !errors.Is(err, tenants.ErrNoWebhook) {
			t.Errorf("another Brand's endpoint: %v", err)
		}
	}
	var got []string
	err = w.Authority(nil).Trail(ctx, id, authority.Events{}, 100, func(e authority.Entry) error {
		got = append(got, e.Actor+" "+e.ActorID+" "+e.Event)
		if strings.Contains(e.Detail, "hush") || strings.Contains(e.Detail, secret) || !strings.Contains(e.Detail, hook.ID) {
			t.Errorf("%s: %s", e.Event, e.Detail)
		}
		return nil
	})
	want := []string{
		"admin key-1 webhook.created", "admin key-1 webhook.secret_rotated",
		"admin key-1 webhook.disabled", "admin key-1 webhook.enabled",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = $1`, w.Shop.ID); n != 0 {
		t.Error("what did not happen stands in a trail")
	}
}
