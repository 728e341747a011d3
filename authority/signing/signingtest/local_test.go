package signingtest_test

import (
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/authority/signing/signingtest"
)

// The development keyring keeps the same promises as Vault.
func TestLocalKeyring(t *testing.T) {
	w := authoritytest.New(t)
	signingtest.Conformance(t, func(testing.TB) signing.Backend {
		return local.New(w.DB, w.Master, w.Clock.Now)
	})
}
