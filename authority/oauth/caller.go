package oauth

import (
	"net/http"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/tenants"
)

// call is one authenticated call of a personal agent at a Brand.
type call struct {
	brand *tenants.Brand
	who   authority.Caller
	h     *Handler
}

// caller verifies the pa-jwt, the only client authentication there is. It must
// be made for the audience of the Brand's own Provider (M3): one made for
// another Provider could have been taken from there.
func (h *Handler) caller(r *http.Request, brand *tenants.Brand) (authority.Caller, error) {
	token, err := agent.Bearer(r.Header.Values("Authorization"))
	if err != nil {
		return authority.Caller{}, err
	}
	c, err := h.agents.At(r.Context(), brand, token)
	if err != nil {
		return authority.Caller{}, err
	}
	return authority.Caller{Agent: c.Issuer, Sub: c.Subject}, nil
}

// unauthorized is the one answer to every failure of the pa-jwt (M7): no body,
// no reason, so that a forger learns nothing.
func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="a2a"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusUnauthorized)
}
