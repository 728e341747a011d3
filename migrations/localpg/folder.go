package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a data folder of ours holds.
const (
	clusterName  = "pgdata"     // PostgreSQL's own folder
	unfinished   = "pgdata.new" // a cluster being made; of no worth after a crash
	passwordName = "password"   // the superuser's, mode 0600
	lockName     = "lock"       // held by the server for as long as it lives
)

// lockPatience is how long Start waits for a server that is just going down, as it is
// when its parent was killed a moment ago.
const lockPatience = 5 * time.Second

// folder is a data folder that this process, and no other, holds.
type folder struct {
	path string
	as   *account // whom the server runs as; nil for ourselves
	lock *os.File
	dir  *os.File // only with as: see pgdata
}

// openFolder makes or checks the folder and takes its lock.
func openFolder(ctx context.Context, path string, as *account) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if err := onlyOurs(path); err != nil {
		return nil, err
	}
	// Only now, when nothing of anybody else's is inside, may the owner change.
	if err := as.own(path); err != nil {
		return nil, fmt.Errorf("hand over data folder: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, fmt.Errorf("close data folder: %w", err)
	}
	f := &folder{path: path, as: as}
	if f.lock, err = takeLock(ctx, filepath.Join(path, lockName)); err != nil {
		return nil, err
	}
	if as != nil {
		if f.dir, err = os.Open(path); err != nil {
			f.lock.Close()
			return nil, fmt.Errorf("open data folder: %w", err)
		}
	}
	return f, nil
}

func onlyOurs(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("read data folder: %w", err)
	}
	known := []string{clusterName, unfinished, passwordName, lockName}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			return fmt.Errorf("%w: %s is not from here; name a new or an empty folder",
				ErrForeign, filepath.Join(path, e.Name()))
		}
	}
	return nil
}

// takeLock holds the folder. The server inherits the descriptor, and a lock of this
// kind lasts until the last holder is gone: so it tells a living server from a
// crashed one without guessing from process numbers, which are used again.
func takeLock(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		if err := flock(file); err == nil {
			return file, nil
		} else if !errors.Is(err, errLocked) {
			file.Close()
			return nil, fmt.Errorf("lock data folder: %w", err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, inUse(filepath.Dir(path))
		case <-pause.C:
		}
	}
}

func inUse(path string) error {
	who := ""
	if pid, ok := readPid(path); ok {
		who = fmt.Sprintf(" (process %d)", pid)
	}
	return fmt.Errorf("%w: stop the other one%s, or name another folder than %s", ErrInUse, who, path)
}

// pgdata is the path of the cluster as the server must say it. Another user's server
// may be unable to walk to the folder (/root is closed, say), so it is handed the
// open folder instead: cheaper than a capability that would let the database read
// every file of the machine.
func (f *folder) pgdata() string { return f.seen(clusterName) }

func (f *folder) seen(name string) string {
	if f.dir == nil {
		return filepath.Join(f.path, name)
	}
	return filepath.Join("/proc/self/fd/4", name)
}

// inherited are the files that a server gets as descriptors 3 and 4.
func (f *folder) inherited() []*os.File {
	if f.dir == nil {
		return []*os.File{f.lock}
	}
	return []*os.File{f.lock, f.dir}
}

// clearStalePid removes what a crash left behind. PostgreSQL does this itself unless
// the number has been given to another program since – which after a reboot, or in a
// container where numbers are small, is likely, and would block the folder for ever.
func (f *folder) clearStalePid() error {
	pid, ok := readPid(f.path)
	if !ok || !alive(pid) {
		return nil
	}
	if isPostgres(pid) {
		// Started by hand, without our lock: two servers on one folder destroy it.
		return inUse(f.path)
	}
	if err := os.Remove(filepath.Join(f.path, clusterName, "postmaster.pid")); err != nil {
		return fmt.Errorf("remove the crashed server's mark: %w", err)
	}
	return nil
}

func readPid(path string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(path, clusterName, "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	return pid, err == nil && pid > 0
}
