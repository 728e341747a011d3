package pgtest

import (
	"context"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ServerVariable names the environment variable with the URL of a server to use
// instead of a private one.
const ServerVariable = "COUNTERSIGN_TEST_DATABASE_URL"

// poolSize is small because tests run in parallel against one server.
const poolSize = 8

// setup bounds the making of a server, a template or a database. It is generous:
// the first test of all pays for initdb, perhaps on a busy machine.
const setup = 2 * time.Minute

// DB is a database that belongs to one test.
type DB struct {
	OwnerURL string // a superuser, who owns the tables
	AppURL   string // a member of countersign_app: what the service logs in as
}

// New makes a database for the test and drops it when the test ends.
func New(t testing.TB) *DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setup)
	defer cancel()
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v\nInstall PostgreSQL (apt-get install postgresql) or set %s to a superuser's URL.", err, ServerVariable)
	}
	name, err := s.clone(ctx)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), setup)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return &DB{OwnerURL: s.ownerURL(name), AppURL: s.appURL(name)}
}

// App is a pool with the service's own rights, closed when the test ends.
func (d *DB) App(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pool(t, d.AppURL)
}

// Owner is a superuser's pool, which row-level security does not bind, closed when
// the test ends. Use it to look behind the service's back.
func (d *DB) Owner(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pool(t, d.OwnerURL)
}

func pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	p, err := openPool(t.Context(), dsn, poolSize)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

func openPool(ctx context.Context, dsn string, size int32) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c.MaxConns = size
	return pgxpool.NewWithConfig(ctx, c)
}

// onDatabase is the server's URL for another database and, if given, another user.
func onDatabase(server, database string, login *url.Userinfo) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // checked when the server was opened
	}
	u.Path = "/" + database
	if login != nil {
		u.User = login
	}
	return u.String()
}

// stamp is the time as it stands in a database's name, so that what a killed run left
// on a shared server can be told from what is in use.
func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 36) }
