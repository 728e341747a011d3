package a2a_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
)

// onVault is a door whose Hotel signs in a real Vault.
func onVault(t *testing.T) (*door, *signingtest.Vault) {
	t.Helper()
	d, vault := newDoor(t), signingtest.StartVault(t)
	c := transit.Config{Address: vault.Addr, Auth: transit.Token(vault.RootToken), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	auth, err := transit.Setup(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Auth = auth
	backend, err := transit.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	keys := signing.NewKeys(signing.Config{
		DB: d.DB, Backends: []signing.Backend{local.New(d.DB, d.Master, d.Clock.Now), backend}, Log: slog.New(slog.DiscardHandler), Now: d.Clock.Now,
	})
	d.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = 'harbor-hotel'`)
	if err := keys.Ensure(t.Context(), d.Hotel.ID, backend.Name(), signing.ES256); err != nil {
		t.Fatal(err)
	}
	d.rules = d.World.Authority(keys)
	d.url = d.instance() + "/a2a/" + string(d.Hotel.ID)
	return d, vault
}

// R77: Vault is stopped for eight minutes, and everybody's tokens are over when it is
// back. What was said meanwhile was done once, and is countersigned once, in its order:
// each receipt says when it was signed, and its line of the log when it was said too.
func TestAnOutageOfVaultLosesNoReceipt(t *testing.T) {
	const people, minutes = 3, 8
	d, vault := onVault(t)
	d.agent.says(`{"text":"Done.","scopesUsed":["bookings:read"],"actions":[{"tool":"bookings.list","args":{"month":12}}]}`)
	tokens, open := make([]authority.Tokens, people), make([]string, people)
	who := func(i int) string { return fmt.Sprint("person-", i) }
	for i := range people {
		tokens[i] = d.delegated(d.pa, who(i), "guest-of-"+who(i), "bookings:read")
		if open[i] = d.send(d.pa, who(i), tokens[i].JWS, said("m", "", "Hi")).context(); open[i] == "" {
			t.Fatal("no conversation began")
		}
	}
	vault.Kill()
	type message struct {
		person int
		id     string
		at     time.Time
	}
	var outage []message
	for minute := range minutes {
		for i := range people {
			m := message{i, fmt.Sprint("m", minute), d.Clock.Now()}
			var twice sync.WaitGroup
			for range 2 { // and never more than once
				twice.Go(func() {
					a := d.send(d.pa, who(i), tokens[i].JWS, said(m.id, open[i], "Hi"))
					if a.status != http.StatusServiceUnavailable && !strings.Contains(a.body, "has no reply") && !strings.Contains(a.body, "will have no reply") {
						t.Errorf("without Vault: %d %s", a.status, a.body)
					}
				})
			}
			twice.Wait()
			outage = append(outage, m)
			d.Clock.Advance(time.Second)
		}
		d.Clock.Advance(time.Minute)
		if n, err := a2a.Drain(t.Context(), d.rules, d.Hotel); n != 0 || err == nil && minute > 1 {
			t.Errorf("drained without Vault: %d, %v", n, err)
		}
	}
	if n := d.Count(t, `SELECT count(*) FROM receipts`); n != people {
		t.Fatalf("%d receipts without Vault", n-people)
	}
	d.Clock.Advance(d.Hotel.TokenLifetime + authority.LateTime)
	vault.Restart(t)
	vault.Unseal(t)
	back := d.Clock.Now()
	for deadline := time.Now().Add(time.Minute); d.Count(t, `SELECT count(*) FROM receipts`) < people+len(outage); {
		var both sync.WaitGroup
		for range 2 { // instances, each with its own minute
			both.Go(func() {
				_, _ = d.rules.Flush(t.Context(), d.Hotel)
				_, _ = a2a.Drain(t.Context(), d.rules, d.Hotel)
			})
		}
		both.Wait()
		if time.Now().After(deadline) {
			t.Fatalf("%d receipts of %d", d.Count(t, `SELECT count(*) FROM receipts`), people+len(outage))
		}
	}
	if n := d.agent.count(); n != people+len(outage) {
		t.Errorf("the agent acted %d times for %d messages", n, people+len(outage))
	}
	for i, m := range outage {
		seq := int64(people + i)
		line, err := d.rules.LogEntry(t.Context(), d.Hotel.ID, seq)
		if err != nil {
			t.Fatal(err)
		}
		var e receiptlog.Entry
		if err := json.Unmarshal(line.Entry, &e); err != nil {
			t.Fatal(err)
		}
		signed, err := time.Parse(receiptlog.Stamp, e.At)
		switch {
		case e.Message != receiptlog.SealMessage(line.Salt, open[m.person], m.id):
			t.Errorf("line %d is not of %s, said %s", seq, m.id, m.at)
		case e.Text != receiptlog.SealText(line.Salt, receiptlog.HashText("Hi")), e.Reply != receiptlog.SealReply(line.Salt, receiptlog.HashText("Done.")):
			t.Errorf("line %d does not bind what was said and answered: %s", seq, line.Entry)
		case e.Began != receiptlog.At(m.at):
			t.Errorf("line %d began %s instead of %s", seq, e.Began, receiptlog.At(m.at))
		case err != nil || signed.Before(back.Truncate(time.Millisecond)) || !e.Late:
			t.Errorf("line %d was signed %s, and Vault was back %s; late: %t", seq, e.At, back, e.Late)
		}
	}
	// Who comes for the reply has it, with that receipt.
	for i := range people {
		later, err := d.rules.Refresh(t.Context(), d.Hotel, authority.Caller{Agent: d.pa.Issuer, Sub: who(i)}, tokens[i].Refresh, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := d.send(d.pa, who(i), later.JWS, said("m0", open[i], "Hi"))
		if a.status != http.StatusOK || !strings.Contains(string(a.json.Message.Metadata["pact.receipt"]), `"ts":"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := d.Count(t, `SELECT count(*) FROM receipts`); n != people+len(outage) {
		t.Errorf("%d receipts of %d messages", n, people+len(outage))
	}
}

// R77: no more than so much waits. Beyond it a message that would need a receipt is not
// passed on, and says so; one that needs none is.
func TestNothingIsDoneBeyondWhatMayWait(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	full := func(n int) {
		d.Exec(t, `DELETE FROM turns WHERE message_id LIKE 'full-%'`)
		d.Exec(t, `
			INSERT INTO turns (brand_id, conversation_id, message_id, agent, agent_sub, state, grant_id, began_at, answer, claims, answered_at)
			SELECT 'harbor-hotel', $1::uuid, 'full-' || n, 'x', 'x', 'answered', $2::uuid, $3, '{}', '{}', $3 FROM generate_series(1, $4::int) n`,
			open, tokens.GrantID, d.Clock.Now(), n)
	}
	full(10_000)
	before := d.agent.count()
	for what, body := range map[string]string{"going on": said("m1", open, "Hi"), "beginning": said("m1", "", "Hi")} {
		a := d.send(d.pa, "alex", tokens.JWS, body)
		a.is(t, what, http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE")
		if !strings.Contains(a.body, "Nothing was sent to its agent") || a.header.Get("Retry-After") != "30" {
			t.Errorf("%s: %s, %q", what, a.body, a.header.Get("Retry-After"))
		}
	}
	if n := d.agent.count(); n != before || d.Count(t, `SELECT count(*) FROM turns WHERE message_id = 'm1'`) != 0 {
		t.Errorf("the agent was called %d times, or the message is spent", n-before)
	}
	if a := d.send(d.pa, "alex", tokens.JWS, said("m0", open, "Hi")); a.status != http.StatusOK {
		t.Errorf("what has its receipt: %d %s", a.status, a.body)
	}
	if a := d.send(d.pa, "alex", "", said("no token", "", "Hi")); a.status != http.StatusOK {
		t.Errorf("without a token: %d %s", a.status, a.body)
	}
	full(9_999)
	if a := d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi")); a.status != http.StatusOK {
		t.Errorf("below it: %d %s", a.status, a.body)
	}
	// What has its receipt does not count, though nobody came for it.
	full(10_000)
	d.Exec(t, `UPDATE turns SET settled_at = $1 WHERE message_id = 'full-1'`, d.Clock.Now())
	if a := d.send(d.pa, "alex", tokens.JWS, said("m2", open, "Hi")); a.status != http.StatusOK {
		t.Errorf("one is settled: %d %s", a.status, a.body)
	}
}
