//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filelock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// lock is the existence of a file, where there is no flock. One that was left
// behind by a crash counts as given up after a minute, which is longer than a
// refresh can take.
func lock(ctx context.Context, path string) (release func(), err error) {
	for {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			file.Close()
			return func() { os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Minute {
			os.Remove(path)
			continue
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}
