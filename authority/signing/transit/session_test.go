package transit_test

import (
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
)

// R61: what is forbidden stays so after a login. It is tried ever more seldom, the
// tokens it cost are given back, and it does not delay the replacement of a token
// that is really gone.
func TestForbiddenOperationFillsNoVaultWithTokens(t *testing.T) {
	w := newWorld(t)
	var clock offset
	b := w.backend(t, func(c *transit.Config) {
		c.Now = clock.now
		c.Timeout = 2 * time.Second // also the grace of a replaced token
	})
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	const name = "countersign-dev-transit"
	all := transit.Policy("transit", "tenant-")
	policy := func(text string) {
		t.Helper()
		if err := w.root.Sys().PutPolicyWithContext(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
	}
	create := func() error {
		_, err := b.Create(t.Context(), signingtest.Hotel, 1, signing.ES256)
		return err
	}
	logins := func() int {
		n, _ := b.number(t, "countersign_vault_logins_total")
		return n
	}
	without := strings.ReplaceAll(all, "transit/keys/tenant-", "transit/keys/nobody-")
	policy(without)
	for range 120 { // two minutes
		clock.Add(int64(time.Second))
		if create() == nil {
			t.Fatal("the policy forbids nothing")
		}
	}
	if n := logins(); n < 4 || n > 10 {
		t.Errorf("%d logins in two minutes", n)
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for start := time.Now(); ; <-ticker.C {
		tokens, err := w.root.Logical().ListWithContext(t.Context(), "auth/token/accessors")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(tokens.Data["keys"].([]any)); n == 2 { // root's and ours
			break
		} else if time.Since(start) > 30*time.Second {
			t.Fatalf("%d tokens stay in Vault", n)
		}
	}
	// A token that is gone is replaced without waiting for the pause.
	clock.Add(int64(31 * time.Second))
	_ = create() // logs in, in vain
	clock.Add(int64(2 * time.Second))
	w.operator(t, "sys/leases/revoke-prefix/auth/approle", nil)
	if err := b.sign(t.Context()); err != nil {
		t.Errorf("after a revocation: %v", err)
	}
	// A login that helped ends the pause.
	before := logins()
	policy(without)
	clock.Add(int64(2 * time.Second))
	_ = create()
	if n := logins() - before; n != 1 {
		t.Errorf("%d logins after the pause was over", n)
	}
}

// R83, R61: a Vault that is away for longer than a token lives is not asked four
// times a second for ever, and the log says twice what there is to say.
func TestOverdueTokenIsTriedSeldom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator(t, "auth/approle/role/countersign-dev-transit", map[string]any{"token_ttl": 2, "token_max_ttl": 60})
	var log book
	b := w.backend(t, logTo(&log))
	signingtest.Create(t, b, signingtest.Hotel, 1, signing.ES256)
	w.Kill()
	<-time.After(9 * time.Second)
	failed, _ := b.number(t, "countersign_vault_token_extensions_total", "unreachable")
	if failed < 3 || failed > 10 {
		t.Errorf("%d tries in 9 s", failed)
	}
	if n := strings.Count(log.String(), "vault token is not extended"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	w.Restart(t)
	w.Unseal(t)
	b.recovers(t)
	if n := strings.Count(log.String(), "vault token is good again"); n != 1 {
		t.Errorf("the end was said %d times:\n%s", n, log.String())
	}
}
