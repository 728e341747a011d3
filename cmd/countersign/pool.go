package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// lost is how long the network may swallow what we send to the database before a
// connection counts as broken. A server that was killed says so; one that was cut
// off does not, and each of its connections would hold a caller for minutes.
const lost = 2 * time.Second

// openPool opens the service's pool. Every statement is bounded, so that a lock
// or a slow disk costs a caller seconds and not the instance; a connection that
// the server killed, or that leads nowhere any more, is noticed and replaced.
func openPool(ctx context.Context, databaseURL string, size int32) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL is not one: %w", redact(err))
	}
	c.MaxConns = size
	c.HealthCheckPeriod = 5 * time.Second
	c.ConnConfig.ConnectTimeout = 3 * time.Second
	// Of one that was idle, before it is given to a caller: without it a line that
	// something in between still acknowledges costs the caller his whole patience.
	c.PingTimeout = time.Second
	for name, value := range map[string]string{
		"application_name":                    "countersign",
		"timezone":                            "UTC",
		"statement_timeout":                   "5000",
		"lock_timeout":                        "3000",
		"idle_in_transaction_session_timeout": "10000",
		"tcp_user_timeout":                    "5000", // the server's side of the line; ours is in dial
	} {
		c.ConnConfig.RuntimeParams[name] = value
	}
	c.ConnConfig.DialFunc = dialer(c.ConnConfig.ConnectTimeout).DialContext
	return pgxpool.NewWithConfig(ctx, c)
}

// dialer makes connections that break soon after the other side stopped answering:
// of what was sent by the time-out, of what is waited for by the probes.
func dialer(patience time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         patience,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: int(lost / time.Second)},
		Control:         giveUpAfter(lost),
	}
}

// redact drops the text of an error that quotes a URL with a password in it.
func redact(error) error { return errNotAURL }

var errNotAURL = &url.Error{Op: "parse", URL: "[hidden]", Err: fmt.Errorf("expected postgres://user:password@host/database")}
