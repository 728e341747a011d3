package oauth

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ory/fosite"
)

const (
	grantDeviceCode   = "urn:ietf:params:oauth:grant-type:device_code"
	grantRefreshToken = "refresh_token"
)

// settings are fosite's, the same for every call.
var settings = &fosite.Config{
	// Which scopes may be asked for is the card's to say (authority.Begin), and
	// the audience is never the request's.
	ScopeStrategy:            func([]string, string) bool { return true },
	AudienceMatchingStrategy: func([]string, []string) error { return nil },
}

// provider returns fosite for this one call. Its hooks are methods of the call,
// so that who calls, and at which Brand, are arguments and not ambient.
func (c call) provider() *fosite.Fosite {
	return &fosite.Fosite{Config: bound{settings, c, fosite.TokenEndpointHandlers{
		&deviceGrant{call: c}, &refreshGrant{call: c}, otherGrant{},
	}}}
}

type bound struct {
	*fosite.Config
	call call
	// grants are asked twice, to handle the request and to fill the answer, and
	// keep the tokens in between.
	grants fosite.TokenEndpointHandlers
}

// GetClientAuthenticationStrategy makes the pa-jwt, already verified, the only
// client authentication.
func (b bound) GetClientAuthenticationStrategy(context.Context) fosite.ClientAuthenticationStrategy {
	return b.call.client
}

// GetTokenEndpointHandlers lists the grants we know, and last the one that says
// so of all others.
func (b bound) GetTokenEndpointHandlers(context.Context) fosite.TokenEndpointHandlers {
	return b.grants
}

// GetDeviceEndpointHandlers starts device requests.
func (b bound) GetDeviceEndpointHandlers(context.Context) fosite.DeviceEndpointHandlers {
	return fosite.DeviceEndpointHandlers{deviceStart(b)}
}

// GetRevocationHandlers ends grants.
func (b bound) GetRevocationHandlers(context.Context) fosite.RevocationHandlers {
	return fosite.RevocationHandlers{revocation(b)}
}

// client is fosite's client-authentication hook. The client is whoever the
// pa-jwt proved, never whom the form names; readForm has compared the two (M9).
func (c call) client(context.Context, *http.Request, url.Values) (fosite.Client, error) {
	return &fosite.DefaultClient{
		ID: c.who.Agent, GrantTypes: fosite.Arguments{grantDeviceCode, grantRefreshToken},
	}, nil
}

// session satisfies fosite, which wants one; everything we know is in the
// database or in the call.
type session struct{}

func (session) SetExpiresAt(fosite.TokenType, time.Time) {}
func (session) GetExpiresAt(fosite.TokenType) time.Time  { return time.Time{} }
func (session) GetUsername() string                      { return "" }
func (session) GetSubject() string                       { return "" }
func (s session) Clone() fosite.Session                  { return s }
