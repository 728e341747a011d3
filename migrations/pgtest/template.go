package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign.dev/migrations"
)

// makeTemplate sets s.template, making that database if no process has yet. The
// caller holds the lock.
func (s *server) makeTemplate(ctx context.Context, conn *pgx.Conn) error {
	key, err := migrationsKey(migrations.FS)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	queue, err := migrations.RiverKey()
	if err != nil {
		return err
	}
	s.template = templatePrefix + key + "_" + queue
	var exists bool
	const known = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := conn.QueryRow(ctx, known, s.template).Scan(&exists); err != nil {
		return fmt.Errorf("look for template: %w", err)
	}
	if exists {
		return nil
	}
	// Made under another name: a template that bears its own is complete.
	making := s.template + "_making"
	if err := dropTemplate(ctx, conn, making); err != nil {
		return err
	}
	if err := create(ctx, conn, making, "template0", s.private); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	if err := migrations.Up(ctx, onDatabase(s.url, making, nil), slog.New(slog.DiscardHandler)); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	from, to := pgx.Identifier{making}.Sanitize(), pgx.Identifier{s.template}.Sanitize()
	for _, step := range []string{
		// One stray connection to the template would make every clone fail.
		`ALTER DATABASE ` + from + ` WITH ALLOW_CONNECTIONS false`,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '` + making + `'`,
		`ALTER DATABASE ` + from + ` RENAME TO ` + to,
	} {
		if _, err := conn.Exec(ctx, step); err != nil {
			return fmt.Errorf("finish template: %w", err)
		}
	}
	return nil
}

func dropTemplate(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`)
	if err != nil {
		return fmt.Errorf("drop template %s: %w", name, err)
	}
	return nil
}

type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// create copies a database. File by file is the faster way where nothing is flushed to
// disk; on a server that does flush, it would cost every other test two checkpoints.
func create(ctx context.Context, db executor, name, template string, unflushed bool) error {
	statement := `CREATE DATABASE ` + pgx.Identifier{name}.Sanitize() + ` TEMPLATE ` + pgx.Identifier{template}.Sanitize()
	if unflushed {
		var version int
		if err := db.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
			return err
		}
		if version >= 15_00_00 { // before, it was the only way and had no name
			statement += ` STRATEGY FILE_COPY`
		}
	}
	_, err := db.Exec(ctx, statement)
	return err
}

// migrationsKey names a state of the migration files.
func migrationsKey(files fs.FS) (string, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		// The lengths keep "ab"+"c" apart from "a"+"bc".
		fmt.Fprintf(h, "%d %s %d ", len(name), name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
