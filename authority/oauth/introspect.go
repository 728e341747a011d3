package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// introspection is RFC 7662 §2.2 with the grant beside it.
type introspection struct {
	Active    bool   `json:"active"`
	Scope     string `json:"scope"`
	ClientID  string `json:"client_id"`
	TokenType string `json:"token_type"`
	Expires   int64  `json:"exp"`
	IssuedAt  int64  `json:"iat"`
	Subject   string `json:"sub"`
	Audience  string `json:"aud"`
	Issuer    string `json:"iss"`
	ID        string `json:"jti"`
	GrantID   string `json:"grant_id"`
	// Details say more exactly what the scopes allow (RFC 9396 §9.2).
	Details []json.RawMessage `json:"authorization_details,omitempty"`
}

// inactive is all that is said about a token that is foreign, forged, over, or
// whose grant has ended: which of these it is would tell a prober something.
type inactive struct {
	Active bool `json:"active"`
}

// introspect is POST {issuer}/introspect (RFC 7662), for the Brand alone.
func (h *Handler) introspect(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	if err := readForm(w, r, brand, "", true); err != nil {
		h.fail(w, r, nil, err)
		return
	}
	token := r.PostForm.Get("token")
	if token == "" {
		h.fail(w, r, nil, invalidRequest("token is missing."))
		return
	}
	payload, err := h.keys.Verify(r.Context(), brand.ID, signing.TypToken, token)
	var s authority.Standing
	if err == nil {
		s, err = h.authority.Standing(r.Context(), brand, payload)
	}
	switch {
	case errors.Is(err, signing.ErrNotOurs), errors.Is(err, signing.ErrNoKey), errors.Is(err, authority.ErrEnded):
		writeJSON(w, http.StatusOK, inactive{})
	case err != nil:
		h.fail(w, r, nil, err)
	default:
		writeJSON(w, http.StatusOK, introspection{
			Active: true, Scope: strings.Join(s.Scopes, " "), ClientID: s.Agent, TokenType: "Bearer",
			Expires: s.Expires.Unix(), IssuedAt: s.Issued.Unix(), Subject: s.Subject,
			Audience: brand.InterfaceURL, Issuer: brand.Issuer, ID: s.ID, GrantID: s.GrantID.String(),
			Details: s.Details.Values(),
		})
	}
}
