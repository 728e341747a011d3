//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// claimed keeps the descriptors, and with them the locks, until the process ends.
var claimed []*os.File

// claim takes a folder for the life of this process.
func claim(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("claim test server: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errTaken
		}
		return fmt.Errorf("claim test server: %w", err)
	}
	claimed = append(claimed, file)
	return nil
}

func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
