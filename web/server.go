package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// patience bounds one request: waiting for a connection, a lock or a signature
// ends in an answer, not in a visitor who hangs.
const patience = 10 * time.Second

type lastingKey struct{}

// Deadline gives every request an end, which the database and the signer see.
func Deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lasting := context.WithValue(r.Context(), lastingKey{}, r.Context())
		ctx, cancel := context.WithTimeout(lasting, patience)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Lasting is the request's context without the end that Deadline gave it, for an
// answer that goes on for as long as the caller listens. Whoever writes it sets
// the connection's deadline anew for each write.
func Lasting(r *http.Request) context.Context {
	if ctx, ok := r.Context().Value(lastingKey{}).(context.Context); ok {
		return ctx
	}
	return r.Context()
}

// maxHeader bounds request headers; a pa-jwt is 8 KiB at most.
const maxHeader = 32 << 10

// drain is how long a stopping server waits for calls that are under way.
const drain = 10 * time.Second

// Serve answers on l until ctx ends, then lets the calls under way finish. All
// four time-outs are set: one slow visitor costs one connection for a while,
// not for ever.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(quiet{log.Handler()}, slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := s.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("stop: calls still under way after %s", drain), s.Close())
	}
	return err
}

// quiet drops net/http's own complaints, which quote what strangers sent.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Message = "http server complained about a connection"
	return q.Handler.Handle(ctx, r)
}
