package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Superuser is the name of the one role a fresh server has.
const Superuser = "postgres"

// startTimeout bounds crash recovery and start together; a folder that needs longer
// than this is not a development folder.
const startTimeout = 60 * time.Second

// Reasons a server cannot be started. Each comes wrapped in a message that names the
// remedy.
var (
	ErrNoBinaries   = errors.New("no usable PostgreSQL found")
	ErrInUse        = errors.New("the data folder is in use by a running server")
	ErrOtherVersion = errors.New("the data folder belongs to another version of PostgreSQL")
	ErrForeign      = errors.New("the data folder holds something else")
	ErrPortTaken    = errors.New("the port is taken")
)

// Config says where the server lives.
type Config struct {
	DataDir  string    // made if absent; holds everything, the password included
	Port     int       // on 127.0.0.1; 0 picks a free one
	Log      io.Writer // the server's own log; nil drops it
	FsyncOff bool      // tests only: a crash of the machine loses the data
}

// Server is a running PostgreSQL.
type Server struct {
	port     int
	password string
	process  *process
	tail     *tail
	lock     *os.File

	release sync.Once
}

// Start runs a server on the data folder, creating its contents the first time, and
// returns once it answers queries. ctx bounds the start only; Stop ends the server.
func Start(ctx context.Context, c Config) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	f, err := openFolder(ctx, c.DataDir, as)
	if err != nil {
		return nil, err
	}
	s, err := f.start(ctx, c)
	if err != nil {
		f.lock.Close()
		return nil, err
	}
	return s, nil
}

func (f *folder) start(ctx context.Context, c Config) (*Server, error) {
	bin, err := f.binaries(ctx, places(), source{cache: cacheDir()}.fetch)
	if err != nil {
		return nil, err
	}
	password, err := f.cluster(ctx, bin, c.FsyncOff)
	if err != nil {
		return nil, err
	}
	if err := f.clearStalePid(); err != nil {
		return nil, err
	}
	s := &Server{port: c.Port, password: password, lock: f.lock}
	if c.Port != 0 {
		return s, s.launch(ctx, f, bin, c)
	}
	// Between our look for a free port and the server's bind somebody else can take it.
	for range 5 {
		if s.port, err = freePort(ctx); err != nil {
			return nil, err
		}
		if err = s.launch(ctx, f, bin, c); !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	return s, err
}

func (s *Server) launch(ctx context.Context, f *folder, bin binaries, c Config) error {
	if err := portIsFree(ctx, s.port); err != nil {
		return err
	}
	s.tail = &tail{next: c.Log}
	p, err := spawn(command{
		path: filepath.Join(bin.dir, "postgres"), args: serverArgs(f.pgdata(), s.port, c.FsyncOff),
		output: s.tail, files: f.inherited(), as: f.as,
	})
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.process = p
	if err := s.ready(ctx); err != nil {
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		p.stop(stopped)
		if errors.Is(portIsFree(stopped, s.port), ErrPortTaken) {
			return fmt.Errorf("start postgres on port %d: %w", s.port, ErrPortTaken)
		}
		return fmt.Errorf("start postgres: %w\n%s", err, s.tail)
	}
	return nil
}

// ready asks until the server answers. A stranger who took the port cannot pass for
// ours: SCRAM proves that both sides know the password.
func (s *Server) ready(ctx context.Context) error {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		err := ping(ctx, s.URL("postgres"))
		if err == nil {
			return nil
		}
		select {
		case <-s.process.done:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-pause.C:
		}
	}
}

func ping(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL is the connection string of the superuser for a database. It carries the
// password: do not log it.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(Superuser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Done is closed when the server has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.process.done }

// Stop ends the server: open transactions are rolled back and the folder is left
// clean. When ctx ends first the server is stopped hard, which the next start
// recovers from.
func (s *Server) Stop(ctx context.Context) error {
	err := s.process.stop(ctx)
	s.release.Do(func() { s.lock.Close() })
	return err
}

func serverArgs(pgdata string, port int, fsyncOff bool) []string {
	args := []string{
		"-D", pgdata,
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(port),
		"-c", "unix_socket_directories=",
		"-c", "max_connections=200",
		"-c", "cluster_name=countersign",
		"-c", "logging_collector=off",
		"-c", "log_destination=stderr",
		// The text of a failed statement can hold what must not be in a log.
		"-c", "log_min_error_statement=panic",
	}
	if fsyncOff {
		args = append(
			args,
			"-c", "fsync=off", "-c", "full_page_writes=off",
			"-c", "wal_level=minimal", "-c", "max_wal_senders=0",
		)
	}
	return args
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func portIsFree(ctx context.Context, port int) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("%w: another program listens on 127.0.0.1:%d; stop it or choose another port", ErrPortTaken, port)
	}
	return l.Close()
}
