package consent

import (
	"encoding/json"
	"errors"
	"net/http"

	"countersign.dev/tenants"
)

// logo is the picture that was made of the Brand's own. Its address names its
// hash, so it may be kept for as long as anybody likes.
func (h *Handler) logo(w http.ResponseWriter, r *http.Request) {
	brand, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
	if err != nil || brand.Logo == "" {
		h.unpublished(w, r, err)
		return
	}
	picture, hash, err := tenants.Logo(r.Context(), h.DB, brand.ID)
	if err != nil {
		h.unpublished(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(picture)
}

// agentLogo is the picture of a registered agent, by its hash, which may be kept for
// as long as anybody likes: what only applies for itself is not served.
func (h *Handler) agentLogo(w http.ResponseWriter, r *http.Request) {
	if _, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand"))); err != nil {
		h.unpublished(w, r, err)
		return
	}
	picture, err := tenants.AgentLogo(r.Context(), h.DB, r.URL.Query().Get("v"))
	if err != nil {
		h.unpublished(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(picture)
}

// loginKeys are the public keys with which we authenticate at the Brand's
// identity provider, for it to fetch.
func (h *Handler) loginKeys(w http.ResponseWriter, r *http.Request) {
	brand, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
	if err != nil {
		h.unpublished(w, r, err)
		return
	}
	keys, err := tenants.LoginKeys(r.Context(), h.DB, brand.ID)
	if err != nil {
		h.unpublished(w, r, err)
		return
	}
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		h.unpublished(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(body)
}

// unpublished answers for a document that is not there, or cannot be had now.
func (h *Handler) unpublished(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil || errors.Is(err, tenants.ErrNoBrand) || errors.Is(err, tenants.ErrNoLogo) {
		http.NotFound(w, r)
		return
	}
	h.Log.ErrorContext(r.Context(), "document not served", "route", r.Pattern, "error", err)
	w.Header().Set("Retry-After", "5")
	http.Error(w, "try again in a moment", http.StatusServiceUnavailable)
}
