package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Middleware wraps a handler.
type Middleware func(http.Handler) http.Handler

// Chain wraps h so that the first middleware sees the request first.
func Chain(h http.Handler, ms ...Middleware) http.Handler {
	for i := len(ms) - 1; i >= 0; i-- {
		h = ms[i](h)
	}
	return h
}

type requestIDKey struct{}

// RequestID returns the id under which this request stands in the log.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Record gives every request an id and writes one log record about it: the
// route's pattern, never its path or query, because those carry codes, states
// and links (R40). The router notes the pattern on the very request it is given,
// so no middleware between the two may replace the request.
func Record(log *slog.Logger, now func() time.Time) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := now()
			id := strings.ToLower(rand.Text()[:12])
			r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
			w.Header().Set("X-Request-Id", id)
			seen := &statusWriter{ResponseWriter: w}
			defer func() {
				log.InfoContext(r.Context(), "request", "id", id, "method", knownMethod(r.Method),
					"route", r.Pattern, "status", seen.status(), "bytes", seen.bytes,
					"ms", float64(now().Sub(began).Microseconds())/1000)
			}()
			next.ServeHTTP(seen, r)
		})
	}
}

// knownMethod keeps words of a stranger's choosing out of the log.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

type statusWriter struct {
	http.ResponseWriter
	code  int
	bytes int
}

func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}

// Recover turns a panic into the page that failed writes. What was thrown is
// logged by its type only: its text may hold what the request held.
func Recover(log *slog.Logger, failed http.HandlerFunc) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if p == http.ErrAbortHandler { //nolint:errorlint // net/http's own sentinel, compared as it does
					panic(p)
				}
				log.ErrorContext(r.Context(), "panic", "id", RequestID(r.Context()), "route", r.Pattern, "kind", fmt.Sprintf("%T", p))
				failed(w, r)
			}()
			next.ServeHTTP(w, r)
		})
	}
}
