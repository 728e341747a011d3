package tenants

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Unavailable reports whether err means that the database cannot answer now,
// so that the caller should be told to come again rather than that he is wrong
// or we are.
func Unavailable(err error) bool {
	if connect := new(pgconn.ConnectError); errors.As(err, &connect) {
		return true
	}
	if pg := new(pgconn.PgError); errors.As(err, &pg) {
		for _, class := range []string{
			"08",    // connection exception
			"40",    // serialization failure, deadlock: nothing happened
			"53",    // out of connections, disk or memory
			"57",    // shutdown, cancelled, statement timeout
			"58",    // system error
			"25006", // a standby that has just lost its primary
			"25P03", // our own bounds on transactions
			"25P04",
			"55P03", // and on locks
		} {
			if strings.HasPrefix(pg.Code, class) {
				return true
			}
		}
		return false
	}
	// A connection that ends in mid-statement: failover, proxy, immediate stop.
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return true
	}
	if netErr := net.Error(nil); errors.As(err, &netErr) {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, puddle.ErrClosedPool) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}
