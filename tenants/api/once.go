package api

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"

	"countersign.dev/tenants"
)

const (
	idempotencyKey        = "Idempotency-Key"
	longestIdempotencyKey = 200
)

// once does a call that bears an Idempotency-Key one time: whoever lost the
// answer asks again and gets it, and nothing is done twice.
func (h *Handler) once(next serve) serve {
	return func(w http.ResponseWriter, r *http.Request, c caller) error {
		key := r.Header.Get(idempotencyKey)
		if key == "" || r.Method == http.MethodGet {
			return next(w, r, c)
		}
		if len(key) > longestIdempotencyKey || len(r.Header.Values(idempotencyKey)) > 1 {
			return problem{Title: "Send one Idempotency-Key of up to 200 bytes", Status: http.StatusBadRequest}
		}
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, tenants.LargestLogo+1))
		if err != nil {
			return problem{Title: "The body breaks off, or is too large", Status: http.StatusBadRequest}
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		call := tenants.Call{Key: c.key, Idempotency: key, Request: digest(r, raw)}
		before, err := tenants.BeginCall(r.Context(), h.DB, c.ID, call, h.Now())
		if err != nil {
			return again(err)
		}
		if before != nil {
			w.Header().Set("Idempotent-Replayed", "true")
			w.Header().Set("Content-Type", before.ContentType)
			w.WriteHeader(before.Status)
			_, _ = w.Write(before.Body)
			return nil
		}
		kept := &keeper{ResponseWriter: w, status: http.StatusOK}
		if err := next(kept, r, c); err != nil {
			h.fail(kept, r, err)
		}
		reply := tenants.Reply{Status: kept.status, ContentType: w.Header().Get("Content-Type"), Body: kept.body.Bytes()}
		if err := tenants.EndCall(r.Context(), h.DB, c.ID, call, reply, !passing(kept.status)); err != nil {
			h.Log.ErrorContext(r.Context(), "answer not kept", "brand", string(c.ID), "error", err)
		}
		return nil
	}
}

// passing tells an answer about this moment: a budget that is used up, how things
// stand, a failure of ours. Nothing was done, and the same call may be answered
// otherwise in a minute, so the answer is not kept.
func passing(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusConflict || status >= http.StatusInternalServerError
}

// digest is what must be the same for a call to be the same.
func digest(r *http.Request, body []byte) []byte {
	sum := sha256.New()
	for _, part := range []string{r.Method, "\x00", r.URL.RequestURI(), "\x00", r.Header.Get("Content-Type"), "\x00"} {
		sum.Write([]byte(part))
	}
	sum.Write(body)
	return sum.Sum(nil)
}

// keeper writes an answer and keeps it.
type keeper struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (k *keeper) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *keeper) Write(p []byte) (int, error) {
	k.body.Write(p)
	return k.ResponseWriter.Write(p)
}

// again says why a call is not done a second time.
func again(err error) error {
	switch {
	case errors.Is(err, tenants.ErrCallDiffers):
		return problem{Title: "This Idempotency-Key belongs to another call", Status: http.StatusUnprocessableEntity, Detail: "Use a fresh one for each call."}
	case errors.Is(err, tenants.ErrCallRuns):
		return problem{Title: "The same call is under way", Status: http.StatusConflict, Detail: "Ask again in a moment."}
	}
	return err
}
