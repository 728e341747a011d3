package localpg

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Config{DataDir: dir, FsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func exec1(t *testing.T, s *Server, sql string) {
	t.Helper()
	if _, err := connect(t, s.URL("postgres")).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// dead waits until nobody, child processes included, holds the folder any more.
func dead(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		lock, err := takeLock(ctx, filepath.Join(dir, lockName))
		if err == nil {
			lock.Close()
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("still held: %v", err)
		}
	}
}

func TestDataIsKeptFromStartToStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	first := start(t, dir)
	exec1(t, first, `CREATE TABLE kept AS SELECT 1 AS n`)
	stop(t, first)
	if _, err := os.Stat(filepath.Join(dir, clusterName, "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("not stopped cleanly: %v", err)
	}
	exec1(t, start(t, dir), `SELECT n FROM kept`)
}

// The machine's other users reach the same loopback address.
func TestOnlyThePasswordOpensTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)

	info, err := os.Stat(filepath.Join(dir, passwordName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v, error %v", info.Mode(), err)
	}
	for _, login := range []string{"postgres", "postgres:", "postgres:guess", "root:" + s.password} {
		wrong := strings.Replace(s.URL("postgres"), "postgres:"+s.password, login, 1)
		conn, err := pgx.Connect(t.Context(), wrong)
		if err == nil {
			conn.Close(t.Context())
			t.Errorf("logged in as %q", login)
		}
	}
	for setting, want := range map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "password_encryption": "scram-sha-256",
	} {
		var got string
		err := connect(t, s.URL("postgres")).QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got)
		if err != nil || got != want {
			t.Errorf("%s = %q, want %q, error %v", setting, got, want, err)
		}
	}
	var ways []string
	const q = `SELECT array_agg(DISTINCT auth_method) FROM pg_hba_file_rules`
	if err := connect(t, s.URL("postgres")).QueryRow(t.Context(), q).Scan(&ways); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ways, " "); got != "reject scram-sha-256" {
		t.Errorf("ways in: %s", got)
	}
}

func TestACrashedServersFolderOpensAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crashed := start(t, dir)
	exec1(t, crashed, `CREATE TABLE kept AS SELECT 1 AS n`)
	crash := func(s *Server) {
		if err := s.process.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		stop(t, s) // gives our own hold on the folder back
		if _, ok := readPid(dir); !ok {
			t.Fatal("the crash left no postmaster.pid: nothing is tested here")
		}
	}
	crash(crashed)
	second := start(t, dir)
	exec1(t, second, `SELECT n FROM kept`)

	// Its number now belongs to another program, namely this one.
	crash(second)
	mark := filepath.Join(dir, clusterName, "postmaster.pid")
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(mark, []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	exec1(t, start(t, dir), `SELECT n FROM kept`)
}

func TestAFolderIsNeverServedTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Start(soon, Config{DataDir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("second start: %v", err)
	}
	exec1(t, s, `SELECT 1`)

	// A server that somebody started by hand holds no lock of ours.
	other := t.TempDir()
	stop(t, start(t, other))
	mark := filepath.Join(other, clusterName, "postmaster.pid")
	if err := os.WriteFile(mark, []byte(strconv.Itoa(s.process.cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Config{DataDir: other}); !errors.Is(err, ErrInUse) {
		t.Errorf("start beside a server without the lock: %v", err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the living server's mark was removed: %v", err)
	}
}

func TestAnUnknownFolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file, text string
		want             error
		remedy           string
	}{
		{"somebody's files", "thesis.tex", "years of work", ErrForeign, "empty folder"},
		{"a plain cluster", "PG_VERSION", "15\n", ErrForeign, "empty folder"},
		{"half a cluster", "pgdata/base/1", "", ErrForeign, "new folder"},
		{"an older cluster", "pgdata/PG_VERSION", "9\n", ErrOtherVersion, "apt-get install postgresql-9"},
		{"a newer cluster", "pgdata/PG_VERSION", "99\n", ErrOtherVersion, "apt-get install postgresql-99"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, tt.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Start(t.Context(), Config{DataDir: dir})
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.remedy) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.remedy)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != tt.text {
				t.Errorf("%s is now %q, error %v", tt.file, text, err)
			}
		})
	}
}

func TestAnInterruptedFirstStartIsRepeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, unfinished, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, passwordName), []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exec1(t, start(t, dir), `SELECT 1`)
}

// A home folder such as /root is closed to the user that a server of root's runs as.
func TestTheFolderMayLieBehindAClosedOne(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data")
	s := start(t, dir)
	exec1(t, s, `CREATE TABLE kept AS SELECT 1 AS n`)
	exec1(t, s, `SELECT pg_reload_conf()`)
	stop(t, s)
	exec1(t, start(t, dir), `SELECT n FROM kept`)
}

func TestATakenPortIsNamed(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	_, err = Start(t.Context(), Config{DataDir: dir, Port: l.Addr().(*net.TCPAddr).Port, FsyncOff: true})
	if !errors.Is(err, ErrPortTaken) {
		t.Fatalf("error %v", err)
	}
	start(t, dir) // and the failed start has let go of the folder
}

func TestWithoutPostgreSQLTheRemedyIsNamed(t *testing.T) {
	t.Parallel()
	f := &folder{path: t.TempDir()}
	offline := errors.New("no network")
	_, err := f.binaries(t.Context(), []string{t.TempDir()}, func(context.Context, *account) (binaries, error) {
		return binaries{}, offline
	})
	if !errors.Is(err, ErrNoBinaries) || !errors.Is(err, offline) || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("error %v", err)
	}
}

func TestTheVersionIsReadFromEveryKindOfBuild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want int
	}{
		{"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", 15},
		{"postgres (PostgreSQL) 18.3", 18},
		{"postgres (PostgreSQL) 19beta2", 19},
		{"postgres (PostgreSQL) 20devel", 20},
		{"postgres", 0},
		{"postgres (PostgreSQL) unknown", 0},
	} {
		got, err := parseVersion(tt.line)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%q is %d, error %v", tt.line, got, err)
		}
	}
}

func TestALoginIsMadeOnceAndItsPasswordChanged(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	exec1(t, s, `CREATE ROLE countersign_app NOLOGIN`)
	exec1(t, s, `CREATE ROLE "odd ""name" SUPERUSER`)
	logIn := func(role, password string) error {
		c, err := pgx.ParseConfig(s.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		c.User, c.Password = role, password
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		const q = `
			SELECT rolsuper OR rolbypassrls OR NOT pg_has_role('countersign_app', 'USAGE')
			  FROM pg_roles WHERE rolname = current_user`
		var wrong bool
		if err := conn.QueryRow(t.Context(), q).Scan(&wrong); err != nil || wrong {
			t.Errorf("%s has wrong rights: %v, error %v", role, wrong, err)
		}
		return nil
	}
	for _, role := range []string{"service", `odd "name`} {
		for _, password := range []string{"first", "second"} {
			if err := EnsureLogin(t.Context(), s.URL("postgres"), role, password); err != nil {
				t.Fatal(err)
			}
			if err := logIn(role, password); err != nil {
				t.Errorf("%s with the %s password: %v", role, password, err)
			}
		}
		err := logIn(role, "first")
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "28P01" {
			t.Errorf("%s with the old password: %v", role, err)
		}
	}
}

// parentVariable turns this test binary into the parent that is killed below.
const parentVariable = "LOCALPG_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		s, err := Start(context.Background(), Config{DataDir: dir, FsyncOff: true})
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("ready\n")
		<-s.Done()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestTheServerDiesWithAKilledParent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("parent says %q", line)
	}
	pid, ok := readPid(dir)
	if !ok {
		t.Fatal("no server")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	t.Cleanup(func() {
		if t.Failed() {
			syscall.Kill(pid, syscall.SIGQUIT) // nobody else would end it
		}
	})
	dead(t, dir)
	if _, ok := readPid(dir); ok {
		t.Error("it did not shut down cleanly")
	}
	start(t, dir)
}
