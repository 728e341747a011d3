package federation

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
)

// FinishParams are what came back at the redirect URI, and what was kept since Begin.
type FinishParams struct {
	Query                  url.Values
	State, Nonce, Verifier string
	RedirectURI            string
	Fresh                  bool
	StartedAt              time.Time // of Begin; needed when Fresh
}

// Identity is a person, as their Brand's provider vouches for them.
type Identity struct {
	Subject  string    // the Brand's id of the person
	Account  string    // what to show the person, so that they see who they are here
	AuthTime time.Time // when they last proved it; zero when the provider does not say
	Issuer   string    // who says so
}

// longestCode is far above what providers send.
const longestCode = 8 << 10

// Finish turns the provider's answer into an Identity. It may succeed once for each
// Begin: the caller sees to it that a state is used up, and the provider that a code is.
func (c *Client) Finish(ctx context.Context, conn Connection, p FinishParams) (Identity, error) {
	id, _, err := c.finish(ctx, conn, p)
	return id, err
}

// Try is Finish for whoever sets a connection up: it also returns all that the
// provider said of the person, even where the subject claim is not among it. The
// claims are that person's own data: to be shown to them and not kept.
func (c *Client) Try(ctx context.Context, conn Connection, p FinishParams) (Identity, map[string]any, error) {
	return c.finish(ctx, conn, p)
}

// finish returns the verified claims with an error that is only about which of them
// is the person's id.
func (c *Client) finish(ctx context.Context, conn Connection, p FinishParams) (Identity, claims, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if err := conn.subjectIsUsable(); err != nil {
		return Identity{}, nil, err
	}
	if p.Nonce == "" || p.Verifier == "" || p.Fresh && p.StartedAt.IsZero() {
		return Identity{}, nil, errors.New("finish login: nonce, verifier and, for a fresh one, the start are needed")
	}
	if err := conn.checkAnswer(p); err != nil {
		return Identity{}, nil, err
	}
	provider := c.provider(conn)
	m, err := provider.metadata(ctx)
	if err == nil {
		err = conn.fits(m)
	}
	if err != nil {
		return Identity{}, nil, err
	}
	if m.SendsIssuer && !p.Query.Has("iss") {
		// It always says who it is, so this answer is another provider's (RFC 9207, 2.4).
		return Identity{}, nil, invalid("the answer does not say whose it is")
	}
	token, err := provider.redeem(ctx, conn, m, p)
	if err != nil {
		return Identity{}, nil, err
	}
	claims, err := provider.identify(ctx, conn, m, p, token)
	if err != nil {
		return Identity{}, nil, err
	}
	id, err := claims.person(conn)
	return id, claims, err
}

// checkAnswer looks at what the browser brought, before anything is fetched for it.
func (c Connection) checkAnswer(p FinishParams) error {
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(p.Query[name]) > 1 {
			return invalid(name + " comes twice")
		}
	}
	state := p.Query.Get("state")
	if p.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(p.State)) != 1 {
		return invalid("the state is not this login's")
	}
	if p.Query.Has("iss") && p.Query.Get("iss") != c.Issuer {
		return invalid("the answer is another provider's")
	}
	if p.Query.Has("error") {
		return &Refusal{Code: mapped(p.Query.Get("error"))}
	}
	code := p.Query.Get("code")
	if code == "" || len(code) > longestCode {
		return invalid("there is no code")
	}
	return nil
}

// redeem exchanges the code. The token's type is not looked at: whether a provider
// writes bearer or BEARER, its access token is never used (B60).
func (p *provider) redeem(ctx context.Context, conn Connection, m metadata, f FinishParams) (*oauth2.Token, error) {
	release, err := p.call(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.client.http)
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(f.Verifier)}
	if conn.Key != nil {
		assertion, err := conn.assertion(p.client.now())
		if err != nil {
			return nil, err
		}
		options = append(options, oauth2.SetAuthURLParam("client_assertion_type", assertionType), oauth2.SetAuthURLParam("client_assertion", assertion))
	}
	token, err := conn.oauth2(m, f.RedirectURI).Exchange(ctx, f.Query.Get("code"), options...)
	if err == nil {
		return token, nil
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if ok {
		// Not wrapped: its text quotes the answer.
		return nil, redeemRefused(refused)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return nil, unreachable("redeem the code", sent)
	}
	if ctx.Err() != nil {
		return nil, unreachable("redeem the code", ctx.Err())
	}
	return nil, misconfigured("the token endpoint's answer is not what it should be")
}

func redeemRefused(e *oauth2.RetrieveError) error {
	switch e.ErrorCode {
	case "":
		if err := statusError("the token endpoint", e.Response.StatusCode); err != nil {
			return err
		}
		return misconfigured("the token endpoint's answer is not what it should be")
	case "invalid_client", "unauthorized_client":
		return misconfigured("the provider does not accept the client id and secret")
	case "server_error", "temporarily_unavailable":
		return statusError("the token endpoint", http.StatusServiceUnavailable)
	default:
		return &Refusal{Code: mapped(e.ErrorCode)}
	}
}
