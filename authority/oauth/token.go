package oauth

import (
	"context"
	"net/http"

	"countersign.dev/authority"
	"github.com/ory/fosite"
)

// token is POST {issuer}/token (RFC 6749 §3.2, RFC 8628 §3.4).
func (h *Handler) token(w http.ResponseWriter, r *http.Request, c call) {
	provider := c.provider()
	request, err := provider.NewAccessRequest(r.Context(), r, session{})
	if err != nil {
		h.fail(w, r, provider, err)
		return
	}
	answer, err := provider.NewAccessResponse(r.Context(), request)
	if err != nil {
		h.fail(w, r, provider, err)
		return
	}
	provider.WriteAccessResponse(r.Context(), w, request, answer)
}

// deviceGrant pays out approved device codes.
type deviceGrant struct {
	call   call
	tokens *authority.Tokens
}

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (g *deviceGrant) CanHandleTokenEndpointRequest(_ context.Context, request fosite.AccessRequester) bool {
	return request.GetGrantTypes().ExactOne(grantDeviceCode)
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (g *deviceGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler. A scope
// parameter is tolerated and means nothing: some clients always send it.
func (g *deviceGrant) HandleTokenEndpointRequest(ctx context.Context, request fosite.AccessRequester) error {
	code := request.GetRequestForm().Get("device_code")
	if code == "" {
		return invalidRequest("device_code is missing.")
	}
	tokens, err := g.call.h.authority.Poll(ctx, g.call.brand, g.call.who, code)
	if err != nil {
		return err
	}
	g.tokens = &tokens
	return nil
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (g *deviceGrant) PopulateTokenEndpointResponse(_ context.Context, _ fosite.AccessRequester, answer fosite.AccessResponder) error {
	return populate(answer, g.tokens)
}

// refreshGrant rotates refresh tokens.
type refreshGrant struct {
	call   call
	tokens *authority.Tokens
}

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (g *refreshGrant) CanHandleTokenEndpointRequest(_ context.Context, request fosite.AccessRequester) bool {
	return request.GetGrantTypes().ExactOne(grantRefreshToken)
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (g *refreshGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (g *refreshGrant) HandleTokenEndpointRequest(ctx context.Context, request fosite.AccessRequester) error {
	token := request.GetRequestForm().Get("refresh_token")
	if token == "" {
		return invalidRequest("refresh_token is missing.")
	}
	tokens, err := g.call.h.authority.Refresh(ctx, g.call.brand, g.call.who, token, request.GetRequestedScopes())
	if err != nil {
		return err
	}
	g.tokens = &tokens
	return nil
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (g *refreshGrant) PopulateTokenEndpointResponse(_ context.Context, _ fosite.AccessRequester, answer fosite.AccessResponder) error {
	return populate(answer, g.tokens)
}

func populate(answer fosite.AccessResponder, tokens *authority.Tokens) error {
	if tokens == nil {
		return fosite.ErrUnknownRequest // another grant's turn
	}
	answer.SetAccessToken(tokens.JWS)
	answer.SetTokenType("Bearer")
	answer.SetExpiresIn(tokens.ExpiresIn)
	answer.SetScopes(tokens.Scopes)
	answer.SetExtra("refresh_token", tokens.Refresh)
	answer.SetExtra("grant_id", tokens.GrantID.String()) // for grant management
	if details := tokens.Details.Values(); details != nil {
		answer.SetExtra(detailsMember, details) // RFC 9396 §7
	}
	return nil
}

// otherGrant refuses every grant type that the ones before it did not take.
type otherGrant struct{}

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (otherGrant) CanHandleTokenEndpointRequest(_ context.Context, request fosite.AccessRequester) bool {
	types := request.GetGrantTypes()
	return !types.ExactOne(grantDeviceCode) && !types.ExactOne(grantRefreshToken)
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (otherGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (otherGrant) HandleTokenEndpointRequest(context.Context, fosite.AccessRequester) error {
	return refusal(http.StatusBadRequest, "unsupported_grant_type", "Use the device code or the refresh token grant.")
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (otherGrant) PopulateTokenEndpointResponse(context.Context, fosite.AccessRequester, fosite.AccessResponder) error {
	return fosite.ErrUnknownRequest
}
