package localpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cluster makes sure that the folder holds a database cluster, and returns its
// superuser's password.
func (f *folder) cluster(ctx context.Context, bin binaries, fsyncOff bool) (string, error) {
	_, found, err := f.major()
	if err != nil {
		return "", err
	}
	if found {
		return f.readPassword()
	}
	return f.create(ctx, bin, fsyncOff)
}

// major is the version that the folder's cluster was made with.
func (f *folder) major() (version int, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(f.path, clusterName, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(filepath.Join(f.path, clusterName)); err == nil {
			return 0, false, fmt.Errorf("%w: %s has no PG_VERSION; name a new folder",
				ErrForeign, filepath.Join(f.path, clusterName))
		}
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read data folder's version: %w", err)
	}
	version, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, false, fmt.Errorf("read data folder's version: %w", err)
	}
	return version, true, nil
}

func (f *folder) readPassword() (string, error) {
	path := filepath.Join(f.path, passwordName)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the database password (without it the data in %s cannot be opened; move the folder away to start afresh): %w",
			f.path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// create runs initdb beside the place and moves the finished cluster in, so that an
// interrupted first start leaves nothing that looks like a database.
func (f *folder) create(ctx context.Context, bin binaries, fsyncOff bool) (string, error) {
	making := filepath.Join(f.path, unfinished)
	if err := os.RemoveAll(making); err != nil {
		return "", fmt.Errorf("clear unfinished cluster: %w", err)
	}
	if err := os.Mkdir(making, 0o700); err != nil {
		return "", fmt.Errorf("make cluster: %w", err)
	}
	password := rand.Text()
	passwordPath := filepath.Join(f.path, passwordName)
	if err := os.Remove(passwordPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("clear password: %w", err)
	}
	if err := os.WriteFile(passwordPath, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write password: %w", err)
	}
	if err := errors.Join(f.as.own(making), f.as.own(passwordPath)); err != nil {
		return "", fmt.Errorf("hand over cluster: %w", err)
	}
	args := []string{
		"-D", f.seen(unfinished),
		"--username=" + Superuser, "--pwfile=" + f.seen(passwordName),
		"--auth-host=scram-sha-256", "--auth-local=reject",
		// The same order and letters on every machine.
		"--encoding=UTF8", "--locale=C",
	}
	if fsyncOff {
		args = append(args, "--no-sync")
	}
	if err := f.run(ctx, filepath.Join(bin.dir, "initdb"), args); err != nil {
		return "", fmt.Errorf("create database cluster: %w", err)
	}
	if err := os.Rename(making, filepath.Join(f.path, clusterName)); err != nil {
		return "", fmt.Errorf("finish cluster: %w", err)
	}
	return password, nil
}

// run waits for a short program of PostgreSQL's, as the user the server will be.
func (f *folder) run(ctx context.Context, path string, args []string) error {
	output := new(tail)
	p, err := spawn(command{path: path, args: args, output: output, files: f.inherited(), as: f.as})
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		p.stop(stopped)
		return ctx.Err()
	}
	if p.err != nil {
		return fmt.Errorf("%w\n%s", p.err, output)
	}
	return nil
}
