package migrations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// upRiver brings the tables of river, the job queue, to the version that is
// compiled in, and gives the service what it needs of them: rows, not tables.
// River keeps the steps in its own code, so they stand in no file of ours.
func upRiver(ctx context.Context, ownerURL string, log *slog.Logger) error {
	c, err := pgxpool.ParseConfig(ownerURL)
	if err != nil {
		return fmt.Errorf("open database for the job queue: %w", err)
	}
	c.MaxConns = 2 // one holds the lock, the other works
	bound(c.ConnConfig.RuntimeParams)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("open database for the job queue: %w", err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("read the job queue's migrations: %w", err)
	}
	// River brings no lock of its own. Each version is a transaction, since a
	// later one uses enum values that a former one adds; so the lock is a session's.
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open database for the job queue: %w", err)
	}
	defer conn.Close()
	one := turns{log}
	if err := one.SessionLock(ctx, conn); err != nil {
		return err
	}
	defer func() { _ = one.SessionUnlock(context.WithoutCancel(ctx), conn) }() // the session ends anyway
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("apply the job queue's migrations: %w", err)
	}
	if _, err := pool.Exec(ctx, riverGrants); err != nil {
		return fmt.Errorf("let the service use the job queue: %w", err)
	}
	return nil
}

// riverGrants are rights on all tables of river; its own record of versions may be
// read.
const riverGrants = `
	DO $$
	DECLARE t text;
	BEGIN
		FOR t IN SELECT relname FROM pg_class
		          WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
		            AND relname LIKE 'river\_%' AND relname <> 'river_migration' LOOP
			EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO countersign_app', t);
		END LOOP;
		FOR t IN SELECT relname FROM pg_class
		          WHERE relnamespace = current_schema()::regnamespace AND relkind = 'S' AND relname LIKE 'river\_%' LOOP
			EXECUTE format('GRANT USAGE ON SEQUENCE %I TO countersign_app', t);
		END LOOP;
		GRANT SELECT ON river_migration TO countersign_app;
	END
	$$`

// RiverKey names the state that upRiver leads to: another version of river, or
// other rights, make another key.
func RiverKey() (string, error) {
	m, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", fmt.Errorf("read the job queue's migrations: %w", err)
	}
	h := sha256.New()
	for _, v := range m.AllVersions() {
		fmt.Fprintf(h, "%d %s %d ", v.Version, v.Name, len(v.SQLUp))
		h.Write([]byte(v.SQLUp))
	}
	h.Write([]byte(riverGrants))
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
