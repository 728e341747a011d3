package main

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/events/eventstest"
	"countersign.dev/authority/signing"
)

// An endpoint's life from the shell: its secret is shown once, what failed can
// be seen and sent again.
func TestAWebhooksLifeFromTheShell(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	file := filepath.Join(t.TempDir(), "master.key")
	master, err := signing.LoadMaster(file)
	if err != nil {
		t.Fatal(err)
	}
	r := eventstest.New(t)
	run := func(line string, code int) string {
		t.Helper()
		got, out, errs := typed(t, append(strings.Fields(line), "--brand", string(w.Hotel.ID), "--database-url", serviceURL(t, w))...)
		if got != code || code == 0 && errs != "" {
			t.Fatalf("%s: exit %d, %q, %q", line, got, out, errs)
		}
		return out + errs
	}
	create := "webhook create --as-operator --url " + r.URL + " --master-key-file " + file
	if said := run(create, 1); !strings.Contains(said, "no address that we call") {
		t.Errorf("loopback outside of development: %q", said)
	}
	id, secret, _ := strings.Cut(strings.TrimSpace(run(create+" --allow-loopback --events grant.created", 0)), " ")
	if list := run("webhook list", 0); !strings.Contains(list, id) || !strings.Contains(list, "grant.created") || strings.Contains(list, secret) {
		t.Errorf("listed: %q", list)
	}

	courier, err := events.NewCourier(events.Config{
		DB: w.DB, Sealer: master, Now: w.Clock.Now, Log: slog.New(slog.DiscardHandler), AllowLoopback: true,
		Edit: w.Authority(nil).Editor(authority.ByUpkeep()),
	})
	if err != nil {
		t.Fatal(err)
	}
	rules := authority.New(authority.Config{DB: w.DB, Signer: w.Keys, Master: w.Master, Now: w.Clock.Now, Announce: courier.Announce})
	drain := func() eventstest.Call {
		t.Helper()
		w.Clock.Advance(time.Minute)
		if _, err := courier.Drain(t.Context(), w.Hotel.ID, id); err != nil {
			t.Fatal(err)
		}
		return r.Next(t, 0)
	}
	r.Answer(func(eventstest.Call) int { return http.StatusGone })
	s := authoritytest.Begin(t, rules, w.Hotel, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, rules, w.Hotel, s, "guest-7", "bookings:read")
	first := drain()
	if err := eventstest.Verify(secret, first.Header, first.Body, w.Clock.Now()); err != nil {
		t.Error(err)
	}
	if list := run("webhook deliveries --state dead", 0); !strings.Contains(list, first.ID) || !strings.Contains(list, "answered 410") {
		t.Errorf("dead: %q", list)
	}
	if said := run("webhook replay --id "+id, 1); !strings.Contains(said, "webhook enable comes first") {
		t.Errorf("replayed to one that is off: %q", said)
	}
	if said := run("webhook test --id "+id, 1); !strings.Contains(said, "webhook enable comes first") {
		t.Errorf("tested where it is off: %q", said)
	}
	run("webhook test --id aaaaaaaaaaaa", 1)
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'webhook.tested'`); n != 0 {
		t.Errorf("%d tests stand in the trail", n)
	}
	if said := run("webhook enable --master-key-file "+file+" --id "+id, 0); !strings.Contains(said, "(webhook.enable) waits for an owner") {
		t.Errorf("%q", said)
	}
	if n := w.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE enabled`); n != 0 {
		t.Error("enabled unasked")
	}
	run("webhook enable --as-operator --id "+id, 0)
	changed := strings.TrimSpace(run("webhook rotate --as-operator --at-once --id "+id+" --master-key-file "+file, 0))
	r.Answer(func(eventstest.Call) int { return http.StatusOK })
	for _, again := range []string{id, first.ID} {
		if said := run("webhook replay --id "+again, 0); !strings.HasPrefix(said, "1 will be sent again") {
			t.Errorf("%q", said)
		}
		c := drain()
		if c.ID != first.ID || eventstest.Verify(changed, c.Header, c.Body, w.Clock.Now()) != nil || eventstest.Verify(secret, c.Header, c.Body, w.Clock.Now()) == nil {
			t.Errorf("sent again as %s %v", c.ID, c.Header)
		}
	}
	if said := run("webhook test --id "+id, 0); !strings.Contains(said, "a test goes to webhook "+id) {
		t.Errorf("%q", said)
	}
	if c := drain(); !strings.Contains(string(c.Body), "webhook.tested") {
		t.Errorf("%s", c.Body)
	}
	run("webhook disable --id "+id, 0)
	if list := run("webhook list", 0); !strings.Contains(list, "turned off by an operator") {
		t.Errorf("listed: %q", list)
	}
	run("webhook disable --id aaaaaaaaaaaa", 1)
}
