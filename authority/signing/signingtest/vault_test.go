package signingtest_test

import (
	"testing"

	"countersign.dev/authority/signing/signingtest"
)

// The server starts, keeps what it was told through kill -9, and comes back sealed.
func TestVaultStarts(t *testing.T) {
	v := signingtest.StartVault(t)
	ctx := t.Context()
	if err := v.Client(t, v.RootToken).Sys().PutPolicyWithContext(ctx, "kept", `path "x" { capabilities = ["read"] }`); err != nil {
		t.Fatal(err)
	}
	v.Kill()
	if _, err := v.Client(t, "").Sys().SealStatusWithContext(ctx); err == nil {
		t.Fatal("a killed server answers")
	}
	v.Restart(t)
	health, err := v.Client(t, "").Sys().HealthWithContext(ctx)
	if err != nil || !health.Sealed {
		t.Fatalf("after a restart: %+v, %v", health, err)
	}
	v.Unseal(t)
	if text, err := v.Client(t, v.RootToken).Sys().GetPolicyWithContext(ctx, "kept"); err != nil || text == "" {
		t.Fatalf("a policy was lost: %q, %v", text, err)
	}
}
