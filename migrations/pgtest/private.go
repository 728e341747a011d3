package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"countersign.dev/migrations/localpg"
)

// startPrivate runs a server for this process and returns its superuser's URL.
//
// Folders are numbered and kept: the next process finds a cluster with the template
// in it and is ready in a fifth of a second instead of three. Two processes never
// share one, so there are as many as have ever run at once.
func startPrivate(ctx context.Context) (string, error) {
	home, err := clusters()
	if err != nil {
		return "", err
	}
	const most = 64
	for n := range most {
		dsn, err := startIn(ctx, filepath.Join(home, strconv.Itoa(n)))
		// A folder whose process was killed where servers do not follow it is passed over.
		if !errors.Is(err, errTaken) && !errors.Is(err, localpg.ErrInUse) {
			return dsn, err
		}
	}
	return "", fmt.Errorf("all %d folders in %s are in use", most, home)
}

var errTaken = errors.New("another test process uses this folder")

func startIn(ctx context.Context, path string) (string, error) {
	if err := claim(path + ".claim"); err != nil {
		return "", err
	}
	// Without fsync a crash of the machine, unlike one of a process, can leave a
	// cluster that looks whole and is not. So none is used across a boot.
	if mark, _ := os.ReadFile(path + ".boot"); string(mark) != bootID() {
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path+".boot", []byte(bootID()), 0o600)); err != nil {
			return "", fmt.Errorf("clear old test cluster: %w", err)
		}
	}
	c := localpg.Config{DataDir: path, FsyncOff: true}
	s, err := localpg.Start(ctx, c)
	if err != nil && !errors.Is(err, localpg.ErrNoBinaries) && !errors.Is(err, localpg.ErrInUse) {
		// Nothing in it is worth keeping: another version's, or damaged by a full disk.
		if err := os.RemoveAll(path); err != nil {
			return "", fmt.Errorf("clear old test cluster: %w", err)
		}
		s, err = localpg.Start(ctx, c)
	}
	if err != nil {
		return "", err
	}
	return s.URL("postgres"), nil
}

// clusters is the folder of the folders. Its name can be guessed and the parent is
// open to all, so it must be ours and closed: another user who made it first could
// read or replace what is inside.
func clusters() (string, error) {
	path := filepath.Join(os.TempDir(), "countersign-tests-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make folder for test servers: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("look at folder for test servers: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ownedByUs(info) {
		return "", fmt.Errorf("%s is not a closed folder of this user; remove it, or set TMPDIR", path)
	}
	return path, nil
}

// bootID changes with each start of the machine; empty where none is told, and then
// the temporary folder is trusted to be emptied.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}
