package a2a

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/web"
	"github.com/google/uuid"
)

// Interface serves the A2A interface of every hosted Brand.
type Interface struct {
	brands      *tenants.Directory
	agents      *agent.Verifier
	rules       *authority.Authority
	keys        *signing.Keys
	caller      *Caller
	countersign Countersign
	bind        Bind
	pages       string
	now         func() time.Time
	log         *slog.Logger
	count       counters
	busy        busy
}

// Countersign makes the receipt of a turn.
type Countersign func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error)

// Bind makes the receipt of a conversation at its end.
type Bind func(ctx context.Context, brand *tenants.Brand, grant uuid.UUID, contextID string) (authority.TaskReceipt, error)

// Config is what an Interface needs.
type Config struct {
	Brands      *tenants.Directory
	Agents      *agent.Verifier
	Authority   *authority.Authority
	Keys        *signing.Keys
	Caller      *Caller
	Countersign Countersign
	Bind        Bind
	// PublicURL is our own origin, where the browser pages live; never taken
	// from a request.
	PublicURL string
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   Metrics
}

// NewInterface returns an Interface.
func NewInterface(c Config) *Interface {
	return &Interface{
		brands: c.Brands, agents: c.Agents, rules: c.Authority, keys: c.Keys, caller: c.Caller,
		countersign: c.Countersign, bind: c.Bind, pages: strings.TrimSuffix(c.PublicURL, "/") + "/b/",
		now: c.Now, log: c.Log, count: newCounters(c.Metrics),
	}
}

// Routes registers the interface at {public}/a2a/{brand}, beside whatever else
// stands there.
func (h *Interface) Routes(mux *http.ServeMux) {
	mux.Handle("/a2a/{brand}/{operation...}", web.Chain(http.HandlerFunc(h.serve),
		web.Recover(h.log, func(w http.ResponseWriter, _ *http.Request) { surface.WriteProblem(w, surface.ErrInternal, 0) })))
	// Or the mux would send callers on to the path with a slash.
	mux.Handle("/a2a/{brand}", http.NotFoundHandler())
}

// call is who calls, for whom, at which Brand.
type call struct {
	brand *tenants.Brand
	who   authority.Caller
	// payload of the delegation token, its signature verified.
	payload []byte
	// standing is what the token is worth; nil: none came.
	standing *authority.Standing
}

// serve keeps the order of checks: path, method, pa-jwt, token, and only then
// what was sent.
func (h *Interface) serve(w http.ResponseWriter, r *http.Request) {
	brand, err := h.brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
	if errors.Is(err, tenants.ErrNoBrand) || err == nil && (!brand.Exists() || brand.Mode != tenants.Hosted) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	do, ok := surface.Find(w, r, r.PathValue("operation"))
	if !ok {
		return
	}
	c, err := h.identify(r, brand)
	if err == nil {
		err = do(w, r, func(w http.ResponseWriter, r *http.Request) error { return h.send(w, r, c) })
	}
	if err != nil {
		h.fail(w, r, brand, err)
	}
}

// delegation is the header that carries the delegation token (PACT §5.5).
const delegation = "X-A2A-User-Delegation"

// identify proves who calls: the pa-jwt (M7), then whether the Brand works and
// lets the agent in, then the delegation token (M21), which must be this agent's
// for this person (M18).
func (h *Interface) identify(r *http.Request, brand *tenants.Brand) (call, error) {
	jwt, err := agent.Bearer(r.Header.Values("Authorization"))
	if err != nil {
		return call{}, err
	}
	claims, err := h.agents.At(r.Context(), brand, jwt)
	if err != nil {
		return call{}, err
	}
	c := call{brand: brand, who: authority.Caller{Agent: claims.Issuer, Sub: claims.Subject}}
	if err := h.rules.Admit(r.Context(), brand, c.who); err != nil {
		return call{}, err
	}
	headers := r.Header.Values(delegation)
	if len(headers) == 0 {
		return c, nil
	}
	token, err := agent.Bearer(headers)
	if err != nil {
		return call{}, authority.ErrToken
	}
	c.payload, err = h.keys.Verify(r.Context(), brand.ID, signing.TypToken, token)
	if errors.Is(err, signing.ErrNotOurs) || errors.Is(err, signing.ErrNoKey) {
		return call{}, authority.ErrToken
	}
	if err != nil {
		return call{}, err
	}
	s, err := h.rules.Standing(r.Context(), brand, c.payload)
	switch {
	case errors.Is(err, authority.ErrEnded), err == nil && (s.Agent != c.who.Agent || s.AgentSub != c.who.Sub):
		return call{}, authority.ErrToken
	case err != nil:
		return call{}, err
	}
	c.standing = &s
	return c, nil
}
