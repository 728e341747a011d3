package oauth

import (
	"errors"
	"net/http"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/tenants"
)

// knownAgent is who an agent is to the Brand.
type knownAgent struct {
	Known   bool   `json:"known"` // it may call
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri,omitempty"`
	Name    string `json:"name,omitempty"`
}

// agent is GET {issuer}/agent?issuer=URL, for a Brand whose own program verifies
// pa-jwts (right verify): whether the agent may call it now (M2), and where its
// keys are. One that is disabled or denied is as unknown as a stranger. That is an
// answer and not a 404, which a proxy that does not forward would give too.
func (h *Handler) agent(w http.ResponseWriter, r *http.Request) {
	brand, ok := h.brand(w, r)
	if !ok || !available(w, r, brand, http.MethodGet) {
		return
	}
	if _, ok := h.credential(w, r, brand, tenants.RightVerify); !ok {
		return
	}
	// Not of the Brand's share of calls: strangers have its program ask, and would take
	// the agents' places. The program asks few things at once.
	asked := r.URL.Query()["issuer"]
	if len(asked) != 1 || asked[0] == "" {
		h.fail(w, r, nil, refusal(http.StatusBadRequest, "invalid_request", "Name one agent: ?issuer=URL."))
		return
	}
	out := knownAgent{Issuer: asked[0]}
	switch err := h.authority.Admit(r.Context(), brand, authority.Caller{Agent: out.Issuer}); {
	case errors.Is(err, authority.ErrAgentDisabled):
		writeJSON(w, http.StatusOK, out)
		return
	case err != nil:
		h.fail(w, r, nil, err)
		return
	}
	a, err := h.agents.Known(r.Context(), out.Issuer)
	if errors.Is(err, agent.ErrRefused) { // disabled meanwhile
		writeJSON(w, http.StatusOK, out)
		return
	}
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	out.Known, out.JWKSURI, out.Name = true, a.JWKSURI, a.Name
	writeJSON(w, http.StatusOK, out)
}
