package api

import (
	"context"
	"net/http"

	"countersign.dev/authority/export"
)

// export is GET export: the Brand as one archive. A closed one too, as long as
// there is something of it.
func (h *Handler) export(w http.ResponseWriter, r *http.Request, c caller) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	archive := export.Archive{Authority: h.Authority, DB: h.DB, Keys: h.Keys, Now: h.Now}
	noted := func(ctx context.Context) error { return h.Authority.NoteExport(ctx, c.ID, c.by()) }
	return archive.Serve(w, r, c.ID, noted, func(err error) {
		h.Log.ErrorContext(r.Context(), "an export was broken off", "brand", string(c.ID), "error", err)
	})
}

// eraseUser is POST users/{subject}/erase. Erased twice is erased. The answer does
// not name the person: it may be kept for whoever asks again.
func (h *Handler) eraseUser(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := nothing(w, r); err != nil {
		return err
	}
	// Whatever has begun goes on when the caller goes away: half an erasure is worth
	// little to anybody.
	e, err := h.Authority.Erase(context.WithoutCancel(r.Context()), c.ID, c.by(), r.PathValue("subject"))
	if err != nil && e.Grants > 0 {
		h.Log.ErrorContext(r.Context(), "an erasure was broken off", "brand", string(c.ID), "error", err)
		w.Header().Set("Retry-After", "5")
		return problem{
			Title: "Not all could be erased", Status: http.StatusServiceUnavailable,
			Detail: "Their grants have ended. Send it again for the rest.",
		}
	}
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", e)
	return nil
}
