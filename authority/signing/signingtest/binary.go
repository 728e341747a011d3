package signingtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// BinaryVariable names the environment variable with the Vault binary to use.
const BinaryVariable = "VAULT_BIN"

// binary returns the path of a Vault server, building it when there is none.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return exec.LookPath(path)
	}
	if path, err := exec.LookPath("vault"); err == nil {
		return path, nil
	}
	source, err := sourceFolder()
	if err != nil {
		return "", err
	}
	path, err := build(source)
	if err != nil {
		return "", fmt.Errorf("no Vault server: set %s, or put vault on PATH, or make this work: go build -C %s . : %w", BinaryVariable, source, err)
	}
	return path, nil
})

// sourceFolder finds e2e/vault from a test's working folder, which is its package's.
func sourceFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		candidate := filepath.Join(dir, "e2e", "vault")
		if _, err := os.Stat(filepath.Join(candidate, "go.mod")); err == nil {
			return candidate, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("folder e2e/vault is not above this test's")
		}
		dir = up
	}
}

// build makes the server unless it is there. Processes that come at the same
// time wait for one of them.
func build(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "countersign")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	name, err := nameOf(source)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	if exists(path) {
		return path, nil
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(path) {
		return path, nil
	}
	fmt.Fprintf(os.Stderr, "building a Vault server for tests from %s into %s: about ten minutes, once\n", source, path)
	// Built aside and then renamed: nobody ever starts half a file.
	partial := path + ".partial"
	defer os.Remove(partial)
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", partial, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLines(out))
	}
	return path, os.Rename(partial, path)
}

// nameOf derives the file's name from everything the server is made of.
func nameOf(source string) (string, error) {
	sum := sha256.New()
	for _, pattern := range []string{"go.mod", "go.sum", "*.go"} {
		files, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(content))
			sum.Write(content)
		}
	}
	return fmt.Sprintf("vault-%x", sum.Sum(nil)[:8]), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
