package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldest is the oldest PostgreSQL that still gets security fixes and that the
// migrations run on.
const oldest = 14

// binaries is a folder with postgres and initdb of one version.
type binaries struct {
	dir   string
	major int
}

// fetcher brings a PostgreSQL to a machine that has none.
type fetcher func(context.Context, *account) (binaries, error)

// binaries picks the PostgreSQL for this folder: the version that made it or, for a
// new one, the newest at hand; one is fetched only where nothing is found.
func (f *folder) binaries(ctx context.Context, places []string, fetch fetcher) (binaries, error) {
	want, exists, err := f.major()
	if err != nil {
		return binaries{}, err
	}
	found := installed(ctx, places, f.as)
	fits := func(b binaries) bool { return !exists || b.major == want }
	if i := slices.IndexFunc(found, fits); i >= 0 {
		return found[i], nil
	}
	if len(found) > 0 {
		return binaries{}, fmt.Errorf(
			"%w: %s was made by PostgreSQL %d, but only %d is installed; install that version (apt-get install postgresql-%d) or name another folder",
			ErrOtherVersion, f.path, want, found[0].major, want)
	}
	fetched, err := fetch(ctx, f.as)
	if err != nil {
		return binaries{}, fmt.Errorf("%w; install one, for example with: apt-get install postgresql\n(%w)", ErrNoBinaries, err)
	}
	if !fits(fetched) {
		return binaries{}, fmt.Errorf("%w: %s was made by PostgreSQL %d; install that version (apt-get install postgresql-%d) or name another folder",
			ErrOtherVersion, f.path, want, want)
	}
	return fetched, nil
}

// places lists where a PostgreSQL can be, PATH first so that of two installations of
// one version the chosen one wins.
func places() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                               // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                        // Red Hat and its kin
		"/opt/homebrew/opt/postgresql@*/bin",                      // macOS
		"/usr/local/opt/postgresql@*/bin",                         // macOS on Intel
		"/Applications/Postgres.app/Contents/Versions/[0-9]*/bin", // macOS
		filepath.Join(cacheDir(), "postgresql-*", "bin"),          // fetched earlier
	} {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		dirs = append(dirs, matches...)
	}
	return dirs
}

// installed asks each place for its version, as the user that will run it, and
// returns the usable ones, newest first.
func installed(ctx context.Context, dirs []string, as *account) []binaries {
	var found []binaries
	for _, dir := range dirs {
		major, err := version(ctx, dir, as)
		if err == nil && major >= oldest {
			found = append(found, binaries{dir: dir, major: major})
		}
	}
	slices.SortStableFunc(found, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	return found
}

func version(ctx context.Context, dir string, as *account) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, err // a client-only installation
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", cleanEnv(), as.attr()
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	return parseVersion(string(out))
}

// parseVersion reads the major version from lines such as
// "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" or "… 18beta1".
func parseVersion(line string) (int, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, errors.New("unknown version")
	}
	digits := fields[2]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	return strconv.Atoi(digits)
}
