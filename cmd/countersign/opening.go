package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"countersign.dev/migrations"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// opening is the door of an instance from the first moment to the last: it lives
// before it can work, and says that it will be gone before it is.
type opening struct {
	inside  atomic.Pointer[http.Handler] // nil: not open yet
	leaving atomic.Bool
}

// open lets everybody in.
func (o *opening) open(h http.Handler) { o.inside.Store(&h) }

// leave has /readyz say no, so that nobody is sent here any more; whoever comes
// is still served.
func (o *opening) leave() { o.leaving.Store(true) }

// ServeHTTP implements http.Handler.
func (o *opening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := o.inside.Load()
	switch {
	case r.URL.Path == "/healthz" || r.URL.Path == "/livez":
		w.WriteHeader(http.StatusOK)
	case h == nil:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "not ready: this instance waits for the database to be migrated", http.StatusServiceUnavailable)
	case r.URL.Path == "/readyz" && o.leaving.Load():
		http.Error(w, "this instance is stopping", http.StatusServiceUnavailable)
	default:
		(*h).ServeHTTP(w, r)
	}
}

// awaitSchema waits until the database has had the migrations of this version,
// however long that takes: an instance that ended instead would be started again
// and again, and would be none the sooner ready.
func awaitSchema(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	const pause = time.Second
	for said := false; ; {
		err := migrations.Check(ctx, pool)
		switch {
		case err == nil && said:
			log.InfoContext(ctx, "the database is migrated")
			return nil
		case err == nil:
			return nil
		case errors.Is(err, migrations.ErrBehind) && !said:
			log.WarnContext(ctx, "waiting, unready, until the database is migrated", "error", err)
			said = true
		case errors.Is(err, migrations.ErrBehind), said && tenants.Unavailable(err):
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the database to be migrated: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
