//go:build !linux

package signingtest

import (
	"errors"
	"os/exec"
)

func lock(string) (func(), error) { return func() {}, nil }

func run(*exec.Cmd) (<-chan struct{}, error) {
	return nil, errors.New("tests with a real Vault run on Linux only")
}

func stopped(int) bool { return true }
