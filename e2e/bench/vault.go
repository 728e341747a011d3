package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// withoutVault is said loudly: a table that merely lacks rows looks complete.
const withoutVault = "NO VAULT, so the rows and goals of signing through Vault are MISSING from this table. " +
	"Build the server once, which takes about ten minutes:\n" +
	"    go test -run TestVaultStarts -timeout 60m ./authority/signing/signingtest"

// vaultVariable names the server for the package signingtest, which only tests
// may import.
const vaultVariable = "VAULT_BIN"

// vault finds a server in the order in which the package signingtest looks for
// one, but never builds it: that takes longer than everything else here. Of those
// built before it is the newest; the header tells its version.
func vault() (string, error) {
	if path := os.Getenv(vaultVariable); path != "" {
		return exec.LookPath(path)
	}
	if path, err := exec.LookPath("vault"); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(cache, "countersign", "vault-*"))
	if err != nil {
		return "", err
	}
	var newest os.FileInfo
	var found string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || strings.Contains(filepath.Base(file), ".") { // a lock, or half a server
			continue
		}
		if newest == nil || info.ModTime().After(newest.ModTime()) {
			newest, found = info, file
		}
	}
	if newest == nil {
		return "", errors.New("none was built")
	}
	return found, nil
}
