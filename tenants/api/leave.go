package api

import (
	"context"
	"net/http"

	"countersign.dev/authority/export"
	"countersign.dev/tenants"
)

// export is GET export: the Brand as one archive. A closed one too, as long as
// there is something of it.
func (h *Handler) export(w http.ResponseWriter, r *http.Request, c caller) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	archive := export.Archive{Authority: h.Authority, DB: h.DB, Keys: h.Keys, Now: h.Now}
	// It waits for nobody: call by call this key reads all of it anyway. Every owner
	// hears of it.
	noted := func(ctx context.Context) error {
		return c.edit(ctx, c.ID, func(e *tenants.Edit) error {
			e.Note(tenants.EventExported, nil)
			return nil
		})
	}
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

type closeBody struct {
	// ID is the Brand's own, once more.
	ID string `json:"id"`
}

// close asks an owner: a stolen key must not end a Brand. Taking the change back
// is DELETE changes/{id}; what an owner has closed stays closed.
func (h *Handler) close(w http.ResponseWriter, r *http.Request, c caller) error {
	var b closeBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	p, err := h.Asks.AskClose(r.Context(), c.edit, c.ID, b.ID, c.key, "api")
	return h.asked(w, p, err)
}

// createBrand asks an owner for another Brand, which is the owner's: no key makes
// something that has no owner.
func (h *Handler) createBrand(w http.ResponseWriter, r *http.Request, c caller) error {
	var d tenants.BrandDraft
	if err := read(w, r, &d); err != nil {
		return err
	}
	p, err := h.Asks.AskBrand(r.Context(), c.edit, c.ID, d, c.key, "api")
	return h.asked(w, p, err)
}
