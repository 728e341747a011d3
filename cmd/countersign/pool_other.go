//go:build !linux

package main

import (
	"syscall"
	"time"
)

// giveUpAfter sets nothing: only Linux bounds how long data may wait to be
// acknowledged. The probes and the callers' own patience remain.
func giveUpAfter(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
