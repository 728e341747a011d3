// Package signingtest holds what tests of signing backends share: one suite of
// claims that every Backend must meet, and a real Vault server.
//
//	v := signingtest.StartVault(t)
//	signingtest.Conformance(t, func(t *testing.T) signing.Backend { … })
//
// The server is the one in VAULT_BIN, or a vault on PATH, or else built from
// e2e/vault, once for each state of its sources, into the user's cache folder:
// some ten minutes on two cores the first time, so let that happen before other
// tests' time runs:
//
//	go test -run TestVaultStarts -timeout 60m -v ./authority/signing/signingtest
//
// Where none can be had tests fail and say why; they are never skipped. Only
// tests may import this package.
package signingtest
