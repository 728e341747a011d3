package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/signing/signingtest"
)

// onVault starts a product whose keys rest in a real Vault.
func onVault(t *testing.T) (*product, *signingtest.Vault) {
	t.Helper()
	vault := signingtest.StartVault(t)
	p, err := start(filepath.Join(scratch, "vault"), "data", "localhost:0",
		"COUNTERSIGN_VAULT_ADDR="+vault.Addr, "VAULT_TOKEN="+vault.RootToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		const patience = 30 * time.Second
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := p.stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return p, vault
}

// The journey is the same with keys that never leave Vault: link, login, one
// permission unticked, allowed, paid out, verified offline, refreshed. Then Vault
// is killed: the code is kept, the agent is told to come again, and when Vault is
// back and unsealed the code is paid out, exactly once (R83, R84, M13).
func TestJourneyAgainstVault(t *testing.T) {
	p, vault := onVault(t)
	if n := p.count(t, `SELECT count(*) FROM signing_keys WHERE backend <> 'vault'`); n != 0 {
		t.Fatalf("%d keys rest elsewhere", n)
	}
	alex, asked := question(t, p, "bookings:read", "bookings:change", "extras:order")
	alex.untick("extras:order")
	alex.waitForEye()
	alex.allow()
	got := asked.poll()
	if got.AccessToken == "" || strings.Contains(got.Scope, "extras:order") {
		t.Fatalf("paid out %q, %s", got.Scope, got.Error)
	}
	if out, code := p.run(t, got.AccessToken, "verify", "token", "-", "--card", p.hotel(t).CardURL); code != 0 {
		t.Fatalf("the token does not verify: %s", out)
	}

	second := p.ask(t, p.hotel(t), userOf(t)+"-second", "bookings:read")
	alex.reachQuestion(second.Link, "alex")
	alex.waitForEye()
	alex.allow()
	// In the middle of the redemption: the signature is under way when Vault dies.
	vault.Pause(t)
	during := make(chan answer, 1)
	go func() { during <- second.poll() }()
	for p.count(t, `SELECT count(*) FROM device_requests WHERE agent_sub = $1 AND lease_id IS NOT NULL`, userOf(t)+"-second") == 0 {
		select {
		case got := <-during:
			t.Fatalf("answered while Vault stood still: %+v", got)
		case <-time.After(10 * time.Millisecond): // until the lease is taken
		}
	}
	vault.Kill()
	if got := <-during; got.Error != "temporarily_unavailable" {
		t.Fatalf("Vault died in the middle: %+v", got)
	}
	if down := second.poll(); down.Error != "temporarily_unavailable" {
		t.Fatalf("without Vault: %+v", down)
	}
	vault.Restart(t)
	if sealed := second.poll(); sealed.Error != "temporarily_unavailable" {
		t.Fatalf("with a sealed Vault: %+v", sealed)
	}
	vault.Unseal(t)
	paid := second.pollUntilPaid(t)
	if again := second.poll(); again.Error != "invalid_grant" || paid.Scope != "bookings:read" {
		t.Fatalf("paid %q, and again %+v", paid.Scope, again)
	}
	if n := p.count(t, `SELECT count(*) FROM refresh_tokens t JOIN grants g USING (brand_id) WHERE g.id = t.grant_id AND g.agent_sub = $1`, userOf(t)+"-second"); n != 1 {
		t.Fatalf("%d refresh families", n)
	}
}

// pollUntilPaid polls until the signer has noticed that Vault is back, which it
// does within two seconds (R84).
func (r *request) pollUntilPaid(t *testing.T) answer {
	t.Helper()
	const patience, pause = 10 * time.Second, 200 * time.Millisecond
	late := time.After(patience)
	for {
		got := r.poll()
		if got.AccessToken != "" {
			return got
		}
		select {
		case <-late:
			t.Fatalf("still %+v", got)
		case <-time.After(pause):
		}
	}
}

// A developer's Vault forgets everything when it ends. The next run, over the old
// data and a fresh Vault, makes the keys anew instead of failing at a payment.
func TestFreshVaultUnderOldData(t *testing.T) {
	folder := filepath.Join(scratch, "forgetful")
	for run := range 2 {
		vault := signingtest.StartVault(t)
		p, err := start(folder, "data", "localhost:0", "COUNTERSIGN_VAULT_ADDR="+vault.Addr, "VAULT_TOKEN="+vault.RootToken)
		if err != nil {
			t.Fatal(err)
		}
		alex, asked := question(t, p, "bookings:read")
		alex.waitForEye()
		alex.allow()
		if got := asked.poll(); got.AccessToken == "" {
			t.Errorf("run %d: %+v", run, got)
		}
		const patience = 30 * time.Second
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		if err := p.stop(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}
