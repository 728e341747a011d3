//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// How PostgreSQL is told to stop.
const (
	fastShutdown      = syscall.SIGINT
	immediateShutdown = syscall.SIGQUIT
)

func flock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
