package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// ErrBehind says that the database lacks migrations of this version: the service
// cannot work with it yet. One that is ahead is no error, since a version's tables
// are still there for the version before.
var ErrBehind = errors.New("the database is not at this version yet; countersign migrate brings it there")

// Check returns ErrBehind, with what is missing first, if the database has not
// had all migrations of this version. The service's own login is enough.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	applied, err := numbers(ctx, pool, `SELECT version_id FROM goose_db_version WHERE is_applied`)
	if err != nil {
		return err
	}
	sources, err := FS.ReadDir(".")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	for _, file := range sources {
		n, err := goose.NumericComponent(file.Name())
		if err != nil {
			return fmt.Errorf("read migrations: %w", err)
		}
		if !applied[n] {
			return fmt.Errorf("%w (missing: %s)", ErrBehind, file.Name())
		}
	}
	m, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return fmt.Errorf("read the job queue's migrations: %w", err)
	}
	if applied, err = numbers(ctx, pool, `SELECT version FROM river_migration`); err != nil {
		return err
	}
	for _, v := range m.AllVersions() {
		if !applied[int64(v.Version)] {
			return fmt.Errorf("%w (missing: the job queue's %d)", ErrBehind, v.Version)
		}
	}
	return nil
}

// numbers reads a record of versions. One that is not there, or that we may not
// read yet, is of a database before the first version that could be asked.
func numbers(ctx context.Context, pool *pgxpool.Pool, q string) (map[int64]bool, error) {
	rows, err := pool.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("ask the database for its version: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	const undefinedTable, insufficientPrivilege = "42P01", "42501"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == undefinedTable || e.Code == insufficientPrivilege) {
		return nil, ErrBehind
	}
	if err != nil {
		return nil, fmt.Errorf("ask the database for its version: %w", err)
	}
	applied := make(map[int64]bool, len(list))
	for _, n := range list {
		applied[n] = true
	}
	return applied, nil
}
