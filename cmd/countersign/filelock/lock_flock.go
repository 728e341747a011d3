//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// lock takes an advisory lock. The kernel gives it up when the process ends,
// however it ends, so that no crash leaves a lock behind. The file itself stays:
// removing it would let two processes lock two different files of one name.
func lock(ctx context.Context, path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, err
		}
		if err := pause(ctx); err != nil {
			file.Close()
			return nil, err
		}
	}
}
