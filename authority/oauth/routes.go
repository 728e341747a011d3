package oauth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/events"
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
	feed      *events.Feed
	pages     string
	shares    *shares
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
	// Feed wakes the streams of events; nil: there are none.
	Feed *events.Feed
	// PublicURL is our own origin, where the browser pages live; never taken
	// from a request.
	PublicURL string
	// MostAtOnce is how many calls of one Brand may be under way at once, of agents
	// and of its own servers; 0: 10.
	MostAtOnce int
	Log        *slog.Logger
}

// New returns a Handler.
func New(c Config) *Handler {
	const usual = 10
	return &Handler{
		brands: c.Brands, agents: c.Agents, authority: c.Authority, keys: c.Keys, creds: c.Credentials,
		feed: c.Feed, pages: strings.TrimSuffix(c.PublicURL, "/") + "/b/", shares: newShares(cmp.Or(c.MostAtOnce, usual)), log: c.Log,
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
		issuer + "/grants/{grant}":                         h.authenticated(methods{http.MethodGet: h.queryGrant, http.MethodDelete: h.endGrant}),
		issuer + "/introspect":                             h.branded(tenants.RightIntrospect, h.introspect),
		issuer + "/events":                                 http.HandlerFunc(h.events),
		issuer + "/stepup":                                 h.branded(tenants.RightStepUp, h.stepUp),
		issuer + "/receipts":                               h.branded(tenants.RightReceipts, h.receipt),
		issuer + "/receipts/batch":                         h.branded(tenants.RightReceipts, h.receipts),
		issuer + "/receipts/task":                          h.branded(tenants.RightReceipts, h.taskReceipt),
		issuer + "/log/checkpoint":                         h.published(readable(h.checkpoint)),
		issuer + "/log/inclusion":                          h.published(readable(h.inclusion)),
		issuer + "/log/consistency":                        h.published(readable(h.consistency)),
		issuer + "/log/entries/{seq}":                      http.HandlerFunc(h.logEntry),
		issuer + "/agent":                                  http.HandlerFunc(h.agent),
		issuer + "/verify":                                 http.HandlerFunc(h.verify),
		issuer + "/verify/{uri...}":                        http.HandlerFunc(h.verify), // Envoy puts the path behind
		issuer + "/jwks.json":                              h.published(readable(h.jwks)),
		issuer + "/jwks-archive.json":                      h.published(readable(h.archive)),
		issuer + "/status":                                 h.published(readable(h.statusLists)),
		issuer + "/status/{list}":                          h.published(readable(h.statusList)),
		issuer + "/.well-known/oauth-authorization-server": h.published(delegating(h.metadata)),
		"/.well-known/oauth-authorization-server" + issuer: h.published(delegating(h.metadata)),
	} {
		// A panic becomes the JSON that OAuth clients understand.
		mux.Handle(path, web.Chain(route, web.Recover(h.log, func(w http.ResponseWriter, _ *http.Request) { writeServerError(w) })))
	}
}

// called is a route to which a personal agent posts a form.
func (h *Handler) called(serve func(http.ResponseWriter, *http.Request, call)) http.Handler {
	return h.authenticated(methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request, c call) {
		// RFC 7009 lets an agent that has proved itself leave client_id out.
		optional := strings.HasSuffix(r.URL.Path, "/revoke")
		if err := readForm(w, r, c.brand, c.who.Agent, optional); err != nil {
			h.fail(w, r, nil, err)
			return
		}
		serve(w, r, c)
	}})
}

// methods are what a route answers, by method.
type methods map[string]func(http.ResponseWriter, *http.Request, call)

// authenticated is a route that a personal agent calls: the Brand, then the
// method, then the pa-jwt (M7), and only then what was sent.
func (h *Handler) authenticated(serve methods) http.Handler {
	allowed := slices.Sorted(maps.Keys(serve))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		brand, ok := h.brand(w, r)
		if !ok || !available(w, r, brand, allowed...) {
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
		leave, ok := h.share(w, r, brand)
		if !ok {
			return
		}
		defer leave()
		serve[r.Method](w, r, call{brand: brand, who: who, h: h})
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
		if _, ok := h.credential(w, r, brand, right); !ok {
			return
		}
		leave, ok := h.share(w, r, brand)
		if !ok {
			return
		}
		defer leave()
		serve(w, r, brand)
	})
}

// credential returns the API key that the Brand's server came with, if it lives
// and has the right; otherwise it has answered.
func (h *Handler) credential(w http.ResponseWriter, r *http.Request, brand *tenants.Brand, right tenants.Right) (string, bool) {
	key, err := h.keyIn(r, "Authorization", brand, right)
	switch {
	case errors.Is(err, tenants.ErrBadKey):
		refuseKey(w, http.StatusUnauthorized, "invalid_token")
	case errors.Is(err, tenants.ErrNoRight):
		refuseKey(w, http.StatusForbidden, "insufficient_scope")
	case err != nil:
		h.fail(w, r, nil, err)
	}
	return key, err == nil
}

// keyIn returns the API key in the header, if it lives and has the right. Otherwise it
// is tenants.ErrBadKey, also where there is none, or tenants.ErrNoRight.
func (h *Handler) keyIn(r *http.Request, header string, brand *tenants.Brand, right tenants.Right) (string, error) {
	key, err := agent.Bearer(r.Header.Values(header))
	if err != nil {
		return "", fmt.Errorf("%w: %w", tenants.ErrBadKey, err)
	}
	_, err = h.creds.Check(r.Context(), brand.ID, key, right)
	return key, err
}

func refuseKey(w http.ResponseWriter, status int, code string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="`+code+`"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// postable is available for an endpoint that takes only POST.
func postable(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) bool {
	return available(w, r, brand, http.MethodPost)
}

// available answers for a Brand or method that the endpoint does not exist for.
func available(w http.ResponseWriter, r *http.Request, brand *tenants.Brand, allowed ...string) bool {
	// Without delegation the endpoints do not exist, with or without a token.
	if !brand.Delegation || !brand.Exists() {
		http.NotFound(w, r)
		return false
	}
	if !slices.Contains(allowed, r.Method) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
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
		if !brand.Delegation || !brand.Exists() {
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
	case errors.Is(err, tenants.ErrNoBrand), err == nil && brand.State == tenants.Pending:
		http.NotFound(w, r)
		return nil, false
	case err != nil:
		h.fail(w, r, nil, err)
		return nil, false
	}
	return brand, true
}
