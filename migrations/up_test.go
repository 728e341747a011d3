package migrations_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"countersign.dev/migrations"
	"countersign.dev/migrations/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var quiet = slog.New(slog.DiscardHandler)

// next is all migrations and one more.
func next(t *testing.T, text string) fs.FS {
	t.Helper()
	return with(t, 9000, text)
}

// with is all migrations below a number, and one of that number.
func with(t *testing.T, number int, text string) fs.FS {
	t.Helper()
	files := fstest.MapFS{fmt.Sprintf("%04d_next.sql", number): {Data: []byte(text)}}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name < fmt.Sprintf("%04d", number) {
			data, err := migrations.FS.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: data}
		}
	}
	return files
}

// eventually waits until a question of the database is answered with true.
func eventually(t *testing.T, pool *pgxpool.Pool, q string) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var yes bool
		if err := pool.QueryRow(t.Context(), q).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("never: %s", q)
		}
	}
}

// B110: a migrator that is killed in the middle of a step – its connection, or the
// step by a mistake – leaves nothing that stops the next one.
func TestAKilledMigratorStopsNobody(t *testing.T) {
	for _, tt := range []struct{ name, mode string }{{"in a transaction", ""}, {"outside of one", "-- +goose NO TRANSACTION\n"}} {
		t.Run(tt.name, func(t *testing.T) {
			db := pgtest.New(t)
			owner := db.Owner(t)
			files := next(t, tt.mode+`-- +goose Up
				CREATE TABLE IF NOT EXISTS half_way (n int);
				SELECT pg_sleep(60) WHERE to_regclass('hurry') IS NULL;
				INSERT INTO half_way VALUES (1);`)
			ended := make(chan error, 1)
			go func() { ended <- migrations.UpWith(context.Background(), db.OwnerURL, files, quiet) }()
			eventually(t, owner, `SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()`)
			if err := <-ended; err == nil {
				t.Fatal("the killed one says that it is done")
			}
			if _, err := owner.Exec(t.Context(), `CREATE TABLE hurry ()`); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := migrations.UpWith(t.Context(), db.OwnerURL, files, quiet); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the next one took %v", took)
			}
			eventually(t, owner, `SELECT count(*) = 1 FROM half_way`)
		})
	}
}

// B110, R92: several migrators that start at once do each step once.
func TestEachStepIsDoneOnce(t *testing.T) {
	db := pgtest.New(t)
	files := next(t, "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE IF NOT EXISTS steps (n int);\nINSERT INTO steps VALUES (1);\nSELECT pg_sleep(0.5);")
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := migrations.UpWith(t.Context(), db.OwnerURL, files, quiet); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	eventually(t, db.Owner(t), `SELECT count(*) = 1 FROM steps`)
}

// B111: who waits for its turn waits for as long as it takes, and ends when told.
func TestAWaitingMigratorEndsWhenTold(t *testing.T) {
	db := pgtest.New(t)
	conn, err := db.Owner(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(4097083626)`); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	err = migrations.Up(ctx, db.OwnerURL, slog.New(slog.NewTextHandler(&log, nil)))
	if err == nil || ctx.Err() == nil {
		t.Errorf("it did not wait: %v", err)
	}
	if n := strings.Count(log.String(), "another migrator is at work"); n != 1 {
		t.Errorf("it said %d times that it waits", n)
	}
}

// B110: a migration that finds its table in use by a long statement does not keep
// the service waiting behind itself, and gets there when the statement is over.
func TestAMigrationLetsTheTrafficBy(t *testing.T) {
	db := pgtest.New(t)
	report, err := db.Owner(t).Begin(t.Context()) // somebody's long report
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Exec(t.Context(), `SELECT count(*) FROM grants`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- migrations.UpWith(t.Context(), db.OwnerURL, next(t, "-- +goose Up\nSET lock_timeout = '2s';\nALTER TABLE grants ADD COLUMN more int;"), quiet)
	}()
	config, err := pgxpool.ParseConfig(db.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["lock_timeout"] = "3000" // as the service has it
	service, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	waited := false
	for until := time.Now().Add(9 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) { // more than one try
		began := time.Now()
		if _, err := service.Exec(t.Context(), `SELECT FROM grants`); err != nil {
			t.Fatalf("the service, after %v: %v", time.Since(began), err)
		}
		waited = waited || time.Since(began) > 500*time.Millisecond
	}
	if !waited {
		t.Error("nobody met the migration: the test tests nothing")
	}
	if err := report.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	eventually(t, db.Owner(t), `SELECT count(*) = 1 FROM pg_attribute WHERE attrelid = 'grants'::regclass AND attname = 'more'`)
}

// B110: a file that is no transaction may end between any two of its statements;
// done again from the first it leads to the same schema.
func TestFilesOutsideATransactionCanBeDoneAgain(t *testing.T) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	grown := blank(t, db, "test_half", "template0") // up to the file before
	for _, name := range names {
		data, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "+goose NO TRANSACTION") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var number int
			if _, err := fmt.Sscanf(name, "%d_", &number); err != nil {
				t.Fatal(err)
			}
			if err := migrations.UpWith(t.Context(), grown, with(t, number, "-- +goose Up\nSELECT 1;"), quiet); err != nil {
				t.Fatal(err)
			}
			run(t, grown, fmt.Sprint(`DELETE FROM goose_db_version WHERE version_id = `, number))
			// One attempt is killed after the first statement, the next after the second…
			killed := blank(t, db, "test_killed", "test_half")
			parts := whole(string(data))
			for done := range parts {
				run(t, killed, parts[:done+1]...)
			}
			for _, dsn := range []string{grown, killed} {
				if err := migrations.UpWith(t.Context(), dsn, with(t, number, string(data)), quiet); err != nil {
					t.Fatal(err)
				}
			}
			if schema(t, grown) != schema(t, killed) {
				t.Error("another schema came about")
			}
		})
	}
}

// whole are the statements of a file, as they are.
func whole(text string) (list []string) {
	var s strings.Builder
	marked := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "-- +goose StatementBegin"):
			marked = true
		case strings.HasPrefix(line, "-- +goose StatementEnd"):
			marked = false
			list = append(list, s.String())
			s.Reset()
		}
		code, _, _ := strings.Cut(line, "--")
		if strings.TrimSpace(code) == "" {
			continue
		}
		s.WriteString(code + "\n")
		if !marked && strings.HasSuffix(strings.TrimSpace(code), ";") {
			list = append(list, s.String())
			s.Reset()
		}
	}
	return list
}

// blank makes a database like another, and returns its owner's URL.
func blank(t *testing.T, db *pgtest.DB, name, like string) string {
	t.Helper()
	run(t, db.OwnerURL, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
	run(t, db.OwnerURL, `CREATE DATABASE `+name+` TEMPLATE `+like+` STRATEGY FILE_COPY`)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), db.OwnerURL)
		if err == nil {
			_, err = conn.Exec(context.Background(), `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
			conn.Close(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// run runs statements, one by one.
func run(t *testing.T, dsn string, all ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, q := range all {
		if _, err := conn.Exec(t.Context(), q); err != nil {
			t.Fatalf("%v: %s", err, q)
		}
	}
}

// schema is what the tables, their keys, indexes and columns are.
func schema(t *testing.T, dsn string) (s string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const q = `
		SELECT string_agg(x, E'\n' ORDER BY x) FROM (
			SELECT pg_get_indexdef(indexrelid) || indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'public'::regnamespace
			UNION ALL SELECT conrelid::regclass || conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT attrelid::regclass || '.' || attname || format_type(atttypid, atttypmod) || attnotnull || coalesce(pg_get_expr(adbin, adrelid), '')
			            FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
			           WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND attnum > 0 AND NOT attisdropped
			UNION ALL SELECT tablename || policyname || coalesce(qual, '') || coalesce(with_check, '') FROM pg_policies
			UNION ALL SELECT proname || prosrc || prosecdef FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			UNION ALL SELECT relname || coalesce(relacl::text, '') || relrowsecurity || relforcerowsecurity FROM pg_class WHERE relnamespace = 'public'::regnamespace
		) AS all_of_it (x)`
	if err := conn.QueryRow(t.Context(), q).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}
