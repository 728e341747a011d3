package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
)

// FS holds the numbered migrations, oldest first by name.
//
//go:embed *.sql
var FS embed.FS

// Up brings the database at ownerURL up to the newest migration. ownerURL must
// log in as a role that may create tables and roles. Several processes may
// call Up at once: a session lock lets one through and the others then find
// nothing to do. They wait for as long as ctx lasts, and say once that they do.
// One that was killed leaves nothing behind that would stop the next: its lock
// ends with its connection, and each step is a transaction or can be done again.
func Up(ctx context.Context, ownerURL string, log *slog.Logger) error {
	if err := up(ctx, ownerURL, FS, log); err != nil {
		return err
	}
	return upRiver(ctx, ownerURL, log)
}

func up(ctx context.Context, ownerURL string, files fs.FS, log *slog.Logger) error {
	p, err := provider(ownerURL, files, log)
	if err != nil {
		return err
	}
	defer p.Close()
	// Who waits for a table keeps everybody waiting behind itself, so a step waits
	// for no more than its lock_timeout, lets them by, and tries again.
	const pause, tries = 5 * time.Second, 60
	for try := 1; ; try++ {
		_, err := p.Up(ctx)
		if err == nil {
			return nil
		}
		if !busy(err) || try == tries {
			return fmt.Errorf("apply migrations: %w", err)
		}
		log.WarnContext(ctx, "a table is in use by a long statement; the migration lets the others by and tries again", "error", err, "try", try)
		select {
		case <-ctx.Done():
			return fmt.Errorf("apply migrations: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// busy is whether a step gave up because somebody else held a table.
func busy(err error) bool {
	const lockNotAvailable = "55P03"
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == lockNotAvailable
}

func provider(ownerURL string, files fs.FS, log *slog.Logger) (*goose.Provider, error) {
	c, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return nil, errors.New("open database for migration: its URL is not one") // and may hold a password
	}
	bound(c.RuntimeParams)
	p, err := goose.NewProvider(goose.DialectPostgres, stdlib.OpenDB(*c), files, goose.WithSessionLocker(turns{log}))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// bound sets what holds for a migrator's connections: no statement waits for a
// table for long, even if its file forgot to say so, and the server notices within
// a minute that a migrator's machine is gone, whose lock would stop the next one.
func bound(params map[string]string) {
	for name, value := range map[string]string{
		"application_name":                 "countersign migrate",
		"lock_timeout":                     "2s",
		"tcp_keepalives_idle":              "20",
		"tcp_keepalives_interval":          "10",
		"tcp_keepalives_count":             "3",
		"tcp_user_timeout":                 "60000",
		"client_connection_check_interval": "10s",
	} {
		params[name] = value
	}
}

// turns lets one migrator work at a time. It asks again and again instead of
// waiting in the database: a statement that waits holds a snapshot, for which the
// one at work would wait in its turn where it makes an index beside the traffic.
type turns struct{ log *slog.Logger }

// turn is the lock's number, goose's own, so that older versions wait for us too.
const turn = 4097083626

// SessionLock waits for the turn.
func (w turns) SessionLock(ctx context.Context, conn *sql.Conn) error {
	const pause = time.Second
	for said := false; ; said = true {
		var mine bool
		if err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, int64(turn)).Scan(&mine); err != nil {
			return fmt.Errorf("ask whether another migrator is at work: %w", err)
		}
		if mine {
			return nil
		}
		if !said {
			w.log.InfoContext(ctx, "another migrator is at work: waiting until it is done")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another migrator: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// SessionUnlock gives the turn to the next.
func (turns) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, int64(turn)); err != nil {
		return fmt.Errorf("let the next migrator work: %w", err)
	}
	return nil
}
