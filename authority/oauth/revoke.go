package oauth

import (
	"context"
	"net/http"

	"github.com/ory/fosite"
)

// revoke is POST {issuer}/revoke (RFC 7009). Refresh, access, unknown and other
// agents' tokens are all answered 200, the last two without effect.
func (h *Handler) revoke(w http.ResponseWriter, r *http.Request, c call) {
	if r.PostForm.Get("token") == "" {
		h.fail(w, r, nil, invalidRequest("token is missing."))
		return
	}
	provider := c.provider()
	if err := provider.NewRevocationRequest(r.Context(), r); err != nil {
		h.fail(w, r, provider, err)
		return
	}
	provider.WriteRevocationResponse(r.Context(), w, nil)
}

type revocation bound

// RevokeToken implements fosite.RevocationHandler. The hint is not needed: both
// kinds are looked for.
func (v revocation) RevokeToken(ctx context.Context, token string, _ fosite.TokenType, _ fosite.Client) error {
	return v.call.h.authority.EndByToken(ctx, v.call.brand.ID, v.call.who, token)
}
