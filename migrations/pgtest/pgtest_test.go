package pgtest

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	if _, err := a.Owner(t).Exec(t.Context(), `CREATE TABLE only_here ()`); err != nil {
		t.Fatal(err)
	}
	var seen bool
	const q = `SELECT to_regclass('only_here') IS NOT NULL`
	if err := b.Owner(t).QueryRow(t.Context(), q).Scan(&seen); err != nil || seen {
		t.Fatalf("table of the other test seen: %v, error %v", seen, err)
	}
}

// R62: what the service logs in as is bound by row-level security.
func TestTheServiceLogsInWithoutPrivileges(t *testing.T) {
	t.Parallel()
	db := New(t)
	const q = `
		SELECT current_user, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb, pg_has_role('countersign_app', 'USAGE')
		  FROM pg_roles WHERE rolname = current_user`
	var user string
	var privileged, member bool
	if err := db.App(t).QueryRow(t.Context(), q).Scan(&user, &privileged, &member); err != nil {
		t.Fatal(err)
	}
	if user != loginRole || privileged || !member {
		t.Errorf("user %s, privileged %v, member of countersign_app %v", user, privileged, member)
	}
	_, err := db.App(t).Exec(t.Context(), `CREATE TABLE mine ()`)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
		t.Errorf("the service could make a table: %v", err)
	}
}

func TestTheMigrationsAreApplied(t *testing.T) {
	t.Parallel()
	var n int
	const q = `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`
	if err := New(t).Owner(t).QueryRow(t.Context(), q).Scan(&n); err != nil || n < 2 {
		t.Fatalf("%d tables, error %v", n, err)
	}
}

func TestTheDatabaseIsGoneAfterTheTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		db := New(t)
		// Held open on purpose: a failing test leaves connections behind.
		conn, err := db.App(t).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
		name = conn.Conn().Config().Database
	})
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	var exists bool
	const q = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := s.admin.QueryRow(t.Context(), q, name).Scan(&exists); err != nil || exists {
		t.Fatalf("%s still there: %v, error %v", name, exists, err)
	}
}

// Two processes share a server when COUNTERSIGN_TEST_DATABASE_URL is set; opening it
// many times at once is what they do to each other.
func TestManyProcessesShareOneTemplate(t *testing.T) {
	t.Parallel()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		template string
		err      error
	}
	results := make(chan result)
	for range 6 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), setup)
			defer cancel()
			other, err := open(ctx, s.url, false)
			if err != nil {
				results <- result{err: err}
				return
			}
			defer other.admin.Close()
			name, err := other.clone(ctx)
			if err == nil {
				err = other.drop(ctx, name)
			}
			results <- result{other.template, err}
		}()
	}
	for range 6 {
		if r := <-results; r.err != nil || r.template != s.template {
			t.Errorf("template %q, want %q, error %v", r.template, s.template, r.err)
		}
	}
}

func TestTheTemplateIsNamedAfterTheMigrations(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	sets := []fstest.MapFS{
		{"1.sql": file("a"), "2.sql": file("b")},
		{"1.sql": file("a"), "2.sql": file("c")},
		{"1.sql": file("ab")},
		{"1.sql": file("a"), "3.sql": file("b")},
	}
	seen := map[string]int{}
	for i, set := range sets {
		key, err := migrationsKey(set)
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := seen[key]; ok {
			t.Errorf("sets %d and %d have one key", j, i)
		}
		seen[key] = i
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(b)
	}
}
