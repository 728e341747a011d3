package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// ports remembers which ports the other servers of dev had, so that issuers,
// and with them what was granted, stay the same from run to run.
type ports struct {
	file string
	had  map[string]int
}

func openPorts(file string) (*ports, error) {
	p := &ports{file: file, had: make(map[string]int)}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &p.had)
	}
	if err != nil {
		return nil, fmt.Errorf("read remembered ports (delete %s to choose new ones): %w", file, err)
	}
	return p, nil
}

// listen takes the port that name had before, or a free one.
func (p *ports) listen(name string) (net.Listener, error) {
	l, err := listenIPv4(p.had[name])
	if err != nil {
		l, err = listenIPv4(0)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	p.had[name] = l.Addr().(*net.TCPAddr).Port
	return l, nil
}

func (p *ports) save() error {
	raw, err := json.Marshal(p.had)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file, raw, 0o600); err != nil {
		return fmt.Errorf("remember ports: %w", err)
	}
	return nil
}

func listenIPv4(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// listenLoopback takes the port on both of this machine's own addresses:
// browsers look for localhost on either, and somebody else's server must not
// answer on the other.
func listenLoopback(port int) ([]net.Listener, error) {
	four, err := listenIPv4(port)
	if err != nil {
		return nil, err
	}
	six, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp6", net.JoinHostPort("::1", portOf(four)))
	switch {
	case err == nil:
		return []net.Listener{four, six}, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.Join(err, four.Close())
	}
	return []net.Listener{four}, nil // a machine without IPv6
}

func closeAll(ls []net.Listener) {
	for _, l := range ls {
		_ = l.Close()
	}
}

func portOf(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// ensureDatabase creates the database on the first start.
func ensureDatabase(ctx context.Context, serverURL, name string) error {
	conn, err := pgx.Connect(ctx, serverURL)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was left undone
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// withLogin returns the database URL with another login.
func withLogin(databaseURL, user, password string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", errNotAURL
	}
	u.User = url.UserPassword(user, password)
	return u.String(), nil
}
