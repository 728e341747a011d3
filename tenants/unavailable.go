package tenants

import (
	"context"
	"errors"
	"net"

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
		switch pg.Code[:2] {
		case "08", // connection exception
			"40", // serialization failure, deadlock: nothing happened
			"53", // out of connections, disk or memory
			"57", // shutdown, cancelled
			"58": // system error
			return true
		}
		return pg.Code == "25006" // a standby that has just lost its primary
	}
	if netErr := net.Error(nil); errors.As(err, &netErr) {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, puddle.ErrClosedPool) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}
