package api

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// Config is what a Handler needs.
type Config struct {
	Brands      *tenants.Directory
	Credentials *tenants.Credentials
	Keys        *signing.Keys
	// Policy is how the Brand's keys are meant to be.
	Policy func(*tenants.Brand) signing.Policy
	Log    *slog.Logger
}

// Handler serves the admin API.
type Handler struct{ Config }

// New returns a Handler.
func New(c Config) *Handler { return &Handler{c} }

// Routes registers every route of this package.
func (h *Handler) Routes(mux *http.ServeMux) {
	const brand = "/api/v1/brands/{brand}/"
	mux.Handle("GET "+brand+"keys", h.admin(h.listKeys))
	mux.Handle("POST "+brand+"keys", h.admin(h.rotateKey))
	mux.Handle("POST "+brand+"keys/{kid}/retire", h.admin(h.retireKey))
	mux.Handle("POST "+brand+"keys/{kid}/revoke", h.admin(h.revokeKey))
}

// admin checks the Brand credential. An unknown Brand and a wrong key are told
// alike: the API tells strangers nothing about who is here.
func (h *Handler) admin(serve func(http.ResponseWriter, *http.Request, *tenants.Brand) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		brand, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
		if err == nil {
			err = h.Credentials.Check(r.Context(), brand.ID, bearer(r), tenants.RightAdmin)
		}
		if err == nil {
			err = serve(w, r, brand)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	})
}

func bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// problem is RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p problem) Error() string { return p.Title }

// fail is the one place where an error becomes a problem document.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem{Title: "Something went wrong on our side", Status: http.StatusInternalServerError}
	switch {
	case errors.As(err, &p):
	case errors.Is(err, tenants.ErrNoBrand), errors.Is(err, tenants.ErrBadKey):
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="invalid_token"`)
		p = problem{Title: "Unknown or revoked API key", Status: http.StatusUnauthorized}
	case errors.Is(err, tenants.ErrNoRight):
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="insufficient_scope"`)
		p = problem{Title: "The API key lacks the right admin", Status: http.StatusForbidden}
	case errors.Is(err, signing.ErrNextExists):
		p = problem{
			Title: "A next key is already published", Status: http.StatusConflict,
			Detail: "It takes its turn by itself. To make another, retire it first.",
		}
	case errors.Is(err, signing.ErrInUse):
		p = problem{Title: "The key signs now", Status: http.StatusConflict, Detail: "Publish a next key, or revoke this one."}
	case errors.Is(err, signing.ErrNoKey):
		p = problem{Title: "The Brand has no such key", Status: http.StatusNotFound}
	case errors.Is(err, signing.ErrUnavailable), tenants.Unavailable(err):
		w.Header().Set("Retry-After", "5")
		p = problem{Title: "Try again in a moment", Status: http.StatusServiceUnavailable, Detail: "Nothing has changed."}
	}
	if p.Status >= http.StatusInternalServerError {
		h.Log.ErrorContext(r.Context(), "admin call failed", "route", r.Pattern, "error", err)
	}
	p.Type = "about:blank"
	write(w, p.Status, "application/problem+json", p)
}

func write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// read decodes a small JSON body strictly: a misspelt member is a mistake to be
// told, not to be passed over.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	const largest = 16 << 10
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return problem{Title: "Send JSON", Status: http.StatusUnsupportedMediaType}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, largest))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return problem{Title: "The body is not what is expected here", Status: http.StatusBadRequest}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem{Title: "The body goes on after its end", Status: http.StatusBadRequest}
	}
	return nil
}
