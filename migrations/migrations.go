package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// FS holds the numbered migrations, oldest first by name.
//
//go:embed *.sql
var FS embed.FS

// lockWait bounds how long one migrator waits for another. It is generous:
// replicas that start during a long migration must wait, not crash-loop.
const lockWait = 30 * time.Minute

// Up brings the database at ownerURL up to the newest migration. ownerURL must
// log in as a role that may create tables and roles. Several processes may
// call Up at once: a session lock lets one through and the others then find
// nothing to do.
func Up(ctx context.Context, ownerURL string) error {
	db, err := sql.Open("pgx", ownerURL)
	if err != nil {
		return fmt.Errorf("open database for migration: %w", err)
	}
	defer db.Close()
	const probe = 5 * time.Second
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockTimeout(uint64(probe/time.Second), uint64(lockWait/probe)),
	)
	if err != nil {
		return fmt.Errorf("prepare migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, FS, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("apply migrations: %w", err)
	}
	return upRiver(ctx, ownerURL)
}
