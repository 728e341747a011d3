package storm

import (
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A line carries one instance's connections to PostgreSQL.
type line struct {
	url  string // as the service dials it
	near net.Listener
	far  string
}

// newLine opens a line to the database at dsn; carry serves each connection.
func newLine(t *testing.T, dsn string, carry func(near, far net.Conn)) *line {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	near, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	l := &line{near: near, far: u.Host}
	u.Host = near.Addr().String()
	l.url = u.String()
	go l.serve(carry)
	return l
}

func (l *line) serve(carry func(near, far net.Conn)) {
	for {
		near, err := l.near.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).Dial("tcp", l.far)
		if err != nil {
			near.Close()
			continue
		}
		go func() {
			defer far.Close()
			defer near.Close()
			carry(near, far)
		}()
	}
}

// overLine is what connections over a line are called.
const overLine = "storm"

// database is one instance's own pool over the line.
func (l *line) database(t *testing.T, size int32) *tenants.DB {
	t.Helper()
	c, err := pgxpool.ParseConfig(l.url)
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = size
	c.ConnConfig.RuntimeParams["application_name"] = overLine
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return tenants.NewDB(pool)
}

// slow lets every answer arrive so much later, however many are on their way.
func slow(delay time.Duration) func(near, far net.Conn) {
	return func(near, far net.Conn) {
		go func() {
			_, _ = io.Copy(far, near)
			far.Close()
		}()
		type piece struct {
			due  time.Time
			data []byte
		}
		const underway = 64
		queue := make(chan piece, underway)
		go func() {
			defer close(queue)
			for {
				data := make([]byte, 16<<10)
				n, err := far.Read(data)
				if err != nil {
					return
				}
				queue <- piece{time.Now().Add(delay), data[:n]}
			}
		}()
		for p := range queue {
			time.Sleep(time.Until(p.due))
			if _, err := near.Write(p.data); err != nil {
				far.Close() // so that the reader ends; what it still queues is dropped
			}
		}
	}
}
