package oauth

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/web"
)

// Handler serves every Brand's OAuth endpoints.
type Handler struct {
	brands    *tenants.Directory
	agents    *agent.Verifier
	authority *authority.Authority
	keys      *signing.Keys
	creds     *tenants.Credentials
	pages     string
	log       *slog.Logger
}

// Config is what a Handler needs.
type Config struct {
	Brands    *tenants.Directory
	Agents    *agent.Verifier
	Authority *authority.Authority
	Keys      *signing.Keys
	// Credentials checks what Brands' own servers come with.
	Credentials *tenants.Credentials
	// PublicURL is our own origin, where the browser pages live; never taken
	// from a request.
	PublicURL string
	Log       *slog.Logger
}

// New returns a Handler.
func New(c Config) *Handler {
	return &Handler{
		brands: c.Brands, agents: c.Agents, authority: c.Authority, keys: c.Keys, creds: c.Credentials,
		pages: strings.TrimSuffix(c.PublicURL, "/") + "/b/", log: c.Log,
	}
}

// Routes registers every route of this package. A Brand's issuer is served
// under {public}/a2a/{brand}/oauth whatever its public URL is: a fronted
// Brand's proxy forwards here.
func (h *Handler) Routes(mux *http.ServeMux) {
	const issuer = "/a2a/{brand}/oauth"
	for path, route := range map[string]http.Handler{
		issuer + "/device_authorization":                   h.called(h.deviceAuthorization),
		issuer + "/token":                                  h.called(h.token),
		issuer + "/revoke":                                 h.called(h.revoke),
		issuer + "/introspect":                             h.branded(tenants.RightIntrospect, h.introspect),
		issuer + "/jwks.json":                              h.published(readable(h.jwks)),
		issuer + "/jwks-archive.json":                      h.published(readable(h.archive)),
		issuer + "/.well-known/oauth-authorization-server": h.published(delegating(h.metadata)),
		"/.well-known/oauth-authorization-server" + issuer: h.published(delegating(h.metadata)),
	} {
		// A panic becomes the JSON that OAuth clients understand.
		mux.Handle(path, web.Chain(route, web.Recover(h.log, func(w http.ResponseWriter, _ *http.Request) { writeServerError(w) })))
	}
}

// called is a route that a personal agent calls: the Brand, then the method,
// then the pa-jwt (M7), and only then the body.
func (h *Handler) called(serve func(http.ResponseWriter, *http.Request, call)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		brand, ok := h.brand(w, r)
		if !ok {
			return
		}
		if !postable(w, r, brand) {
			return
		}
		who, err := h.caller(r, brand)
		if errors.Is(err, agent.ErrRefused) {
			h.log.InfoContext(r.Context(), "pa-jwt refused", "brand", string(brand.ID), "reason", err)
			unauthorized(w)
			return
		}
		if err != nil {
			h.fail(w, r, nil, err)
			return
		}
		// RFC 7009 lets an agent that has proved itself leave client_id out.
		optional := strings.HasSuffix(r.URL.Path, "/revoke")
		if err := readForm(w, r, brand, who.Agent, optional); err != nil {
			h.fail(w, r, nil, err)
			return
		}
		serve(w, r, call{brand: brand, who: who, h: h})
	})
}

// branded is a route that a Brand's own server calls with an API key.
func (h *Handler) branded(right tenants.Right, serve func(http.ResponseWriter, *http.Request, *tenants.Brand)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		brand, ok := h.brand(w, r)
		if !ok {
			return
		}
		if !postable(w, r, brand) {
			return
		}
		key, err := agent.Bearer(r.Header.Values("Authorization"))
		if err == nil {
			err = h.creds.Check(r.Context(), brand.ID, key, right)
		}
		switch {
		case errors.Is(err, agent.ErrRefused), errors.Is(err, tenants.ErrBadKey):
			refuseKey(w, http.StatusUnauthorized, "invalid_token")
			return
		case errors.Is(err, tenants.ErrNoRight):
			refuseKey(w, http.StatusForbidden, "insufficient_scope")
			return
		case err != nil:
			h.fail(w, r, nil, err)
			return
		}
		serve(w, r, brand)
	})
}

func refuseKey(w http.ResponseWriter, status int, code string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="`+code+`"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// postable answers for a Brand or method that the endpoint does not exist for.
func postable(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) bool {
	// Without delegation the endpoints do not exist, with or without a token.
	if !brand.Delegation || brand.State == tenants.Closed {
		http.NotFound(w, r)
		return false
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return false
	}
	return true
}

// published is a public document of a Brand, readable from any origin.
func (h *Handler) published(serve document) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		brand, ok := h.brand(w, r)
		if !ok {
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
		serve(w, r, brand)
	})
}

// document serves a public document of a Brand.
type document func(http.ResponseWriter, *http.Request, *tenants.Brand)

// delegating is a document that only Brands with delegation have, by whatever
// method it is asked for.
func delegating(serve document) document {
	return func(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
		if !brand.Delegation || brand.State == tenants.Closed {
			http.NotFound(w, r)
			return
		}
		readable(serve)(w, r, brand)
	}
}

// readable answers what may be asked of a public document.
func readable(serve document) document {
	return func(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			serve(w, r, brand)
		case http.MethodOptions:
			w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD")
			w.Header().Set("Access-Control-Allow-Headers", "If-None-Match")
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		}
	}
}

func (h *Handler) brand(w http.ResponseWriter, r *http.Request) (*tenants.Brand, bool) {
	brand, err := h.brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
	switch {
	case errors.Is(err, tenants.ErrNoBrand):
		http.NotFound(w, r)
		return nil, false
	case err != nil:
		h.fail(w, r, nil, err)
		return nil, false
	}
	return brand, true
}
