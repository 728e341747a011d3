package pgtest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign.dev/migrations/localpg"
)

// Names on the server. Test databases carry the time of their making after the prefix.
const (
	loginRole      = "countersign_test"
	templatePrefix = "countersign_template_"
	testPrefix     = "countersign_test_"
)

// abandoned is the age at which a test database on a shared server has no test any
// more: far beyond any go test timeout in use.
const abandoned = 6 * time.Hour

// server is where the databases are made.
type server struct {
	url      string // a superuser's
	private  bool   // ours alone, so nothing on it is worth a flush to disk
	login    *url.Userinfo
	template string
	admin    *pgxpool.Pool // on the maintenance database
}

// shared is the process's one server, made at the first call. It has no end of its
// own: a private one goes down with the process.
var shared = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	if given := os.Getenv(ServerVariable); given != "" {
		return open(ctx, given, false)
	}
	private, err := startPrivate(ctx)
	if err != nil {
		return nil, err
	}
	return open(ctx, private, true)
})

func open(ctx context.Context, dsn string, private bool) (*server, error) {
	u, err := url.Parse(dsn)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, fmt.Errorf("%s is not a postgres:// URL", ServerVariable)
	}
	s := &server{url: dsn, private: private}
	s.login = url.UserPassword(loginRole, sharedSecret(u.User))
	if s.admin, err = openPool(ctx, onDatabase(dsn, "postgres", nil), 4); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.admin.Close()
		return nil, err
	}
	return s, nil
}

// sharedSecret is a password that every test process which can log in as the
// superuser knows, and nobody else: so they need not tell each other.
func sharedSecret(superuser *url.Userinfo) string {
	password, _ := superuser.Password()
	h := hmac.New(sha256.New, []byte(password))
	h.Write([]byte("countersign test login"))
	return hex.EncodeToString(h.Sum(nil))
}

// prepare makes the template and the login, once for all processes.
func (s *server) prepare(ctx context.Context) error {
	conn, err := s.admin.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("reach the test server: %w", err)
	}
	defer conn.Release()
	// A session's lock, since databases are not made in transactions. All processes
	// take it in the same database; locks of different databases do not meet.
	const lock = `SELECT pg_advisory_lock(hashtext('countersign pgtest'))`
	if _, err := conn.Exec(ctx, lock); err != nil {
		return fmt.Errorf("wait for the other test processes: %w", err)
	}
	defer func() {
		const unlock = `SELECT pg_advisory_unlock(hashtext('countersign pgtest'))`
		if _, err := conn.Exec(context.WithoutCancel(ctx), unlock); err != nil {
			conn.Conn().Close(context.WithoutCancel(ctx)) // ends the session, and so the lock
		}
	}()
	if err := s.makeTemplate(ctx, conn.Conn()); err != nil {
		return err
	}
	if err := s.sweep(ctx, conn.Conn()); err != nil {
		return err
	}
	password, _ := s.login.Password()
	return localpg.EnsureLogin(ctx, onDatabase(s.url, "postgres", nil), loginRole, password)
}

// clone makes a database like the template.
func (s *server) clone(ctx context.Context) (string, error) {
	name := testPrefix + stamp(time.Now()) + "_" + strings.ToLower(rand.Text()[:12])
	if err := create(ctx, s.admin, name, s.template, s.private); err != nil {
		return "", fmt.Errorf("make database: %w", err)
	}
	return name, nil
}

func (s *server) drop(ctx context.Context, name string) error {
	// FORCE, since a test that failed may have left a connection open.
	_, err := s.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`)
	if err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// sweep drops what earlier processes left: on a private server everything that is not
// in use now, on a shared one only what is too old to be in use.
func (s *server) sweep(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database`)
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	limit := stamp(time.Now().Add(-abandoned))
	for _, name := range names {
		made, isTest := strings.CutPrefix(name, testPrefix)
		made, _, _ = strings.Cut(made, "_")
		dead := isTest && (s.private || len(made) == len(limit) && made < limit)
		outdated := s.private && strings.HasPrefix(name, templatePrefix) && name != s.template
		switch {
		case outdated:
			if err := dropTemplate(ctx, conn, name); err != nil {
				return err
			}
		case dead:
			if err := s.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) ownerURL(database string) string { return onDatabase(s.url, database, nil) }
func (s *server) appURL(database string) string   { return onDatabase(s.url, database, s.login) }
