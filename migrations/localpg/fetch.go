package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const fetchedVersion = embeddedpostgres.V18

// cacheDir is where a fetched PostgreSQL is kept. Root's own cache is closed to the
// user that the server runs as, so root uses the machine's.
func cacheDir() string {
	if os.Geteuid() == 0 {
		return "/var/cache/countersign"
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "countersign")
	}
	return filepath.Join(os.TempDir(), "countersign-cache")
}

// source is where a PostgreSQL is fetched from and where it is kept.
type source struct {
	repository string // URL; empty for the library's own
	cache      string
}

// fetch downloads a PostgreSQL for this machine.
//
// The library only brings the programs. Everything it would do itself happens in a
// throw-away folder: it empties data folders of other versions, knows nothing of
// root, and wants a fixed port.
func (s source) fetch(ctx context.Context, as *account) (binaries, error) {
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return binaries{}, fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	making, err := os.MkdirTemp(s.cache, "fetching-")
	if err != nil {
		return binaries{}, fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	defer os.RemoveAll(making)
	if err := os.Chmod(making, 0o755); err != nil {
		return binaries{}, fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	port, err := freePort(ctx)
	if err != nil {
		return binaries{}, err
	}
	unpacked := filepath.Join(making, "unpacked")
	config := embeddedpostgres.DefaultConfig()
	if s.repository != "" {
		config = config.BinaryRepositoryURL(s.repository)
	}
	library := embeddedpostgres.NewDatabase(config.
		Version(fetchedVersion).Port(uint32(port)).Logger(io.Discard).
		CachePath(filepath.Join(making, "archive")).
		BinariesPath(unpacked).
		RuntimePath(filepath.Join(making, "runtime")).
		DataPath(filepath.Join(making, "runtime", "data")))

	fetched := make(chan error, 1)
	go func() {
		err := library.Start()
		if err == nil {
			err = library.Stop()
		}
		fetched <- err
	}()
	select {
	case err = <-fetched:
	case <-ctx.Done():
		return binaries{}, fmt.Errorf("fetch PostgreSQL: %w", ctx.Err())
	}
	// As root its server cannot start, but by then the programs are there.
	if _, missing := os.Stat(filepath.Join(unpacked, "bin", "postgres")); missing != nil {
		return binaries{}, fmt.Errorf("fetch PostgreSQL: %w", errors.Join(err, missing))
	}
	home := filepath.Join(s.cache, "postgresql-"+string(fetchedVersion))
	// Losing this race is fine: the winner's folder is complete, since it was renamed.
	if err := os.Rename(unpacked, home); err != nil && !errors.Is(err, os.ErrExist) {
		return binaries{}, fmt.Errorf("keep PostgreSQL: %w", err)
	}
	dir := filepath.Join(home, "bin")
	major, err := version(ctx, dir, as)
	if err != nil {
		return binaries{}, fmt.Errorf("fetched PostgreSQL does not run: %w", err)
	}
	return binaries{dir: dir, major: major}, nil
}
