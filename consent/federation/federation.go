package federation

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign.dev/tenants"
	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// patience is how long a person waits for their provider, whatever it does (R69).
const patience = 5 * time.Second

// skew is the clock error that is forgiven, either way (B86).
const skew = 30 * time.Second

// Connection is a Brand's settings for its provider.
type Connection struct {
	Issuer       string // as the provider writes it, to the byte
	ClientID     string
	ClientSecret string
	Key          *tenants.LoginKey // in place of the secret: private_key_jwt
	SubjectClaim string            // the claim that is the Brand's id of the person; empty is "sub"
	Scopes       []string          // beside openid

	Prompt string // what the provider is asked to show, where no fresh login is wanted
	MaxAge *int   // seconds; an older login does not count

	// AllowLoopbackHTTP lets a provider on this machine go without TLS: development.
	AllowLoopbackHTTP bool
}

// Config is what a Client needs.
type Config struct {
	// HTTP is the client for addresses that somebody else named. It has to refuse
	// those inside our own network; this package follows none of its redirects.
	HTTP *http.Client
	Now  func() time.Time

	// Context lives as long as the process: what one login fetches serves the next,
	// so the fetching must not end with the request that began it.
	Context context.Context

	// Patience replaces the five seconds, in tests.
	Patience time.Duration
}

// Client logs people in at any number of providers.
type Client struct {
	http     *http.Client
	now      func() time.Time
	life     context.Context
	patience time.Duration

	mu        sync.Mutex
	providers map[providerKey]*provider
	pages     map[pageKey]*pageKeys
}

// New makes a client. It fetches nothing: a dead provider must not keep the service
// from starting (B63).
func New(c Config) *Client {
	// A redirect of a token request would carry the client's secret to wherever the
	// answer points, and no endpoint here has reason to send one.
	h := *c.HTTP
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.Jar = nil
	client := &Client{
		http: &h, now: c.Now, life: c.Context, patience: c.Patience,
		providers: make(map[providerKey]*provider), pages: make(map[pageKey]*pageKeys),
	}
	if client.now == nil {
		client.now = time.Now
	}
	if client.life == nil {
		client.life = context.Background()
	}
	if client.patience == 0 {
		client.patience = patience
	}
	return client
}

// BeginParams are one login's own values. State, Nonce and Verifier must be fresh and
// not to be guessed; the caller keeps them for Finish.
type BeginParams struct {
	RedirectURI            string
	State, Nonce, Verifier string
	Fresh                  bool   // the person must log in now, whatever session there is
	UILocales              string // what the person reads, such as "de en"
}

// Begin returns the address to send the browser to.
func (c *Client) Begin(ctx context.Context, conn Connection, p BeginParams) (string, error) {
	if p.State == "" || p.Nonce == "" || p.Verifier == "" || p.RedirectURI == "" {
		return "", errors.New("begin login: state, nonce, verifier and redirect URI are needed")
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	m, err := c.provider(conn).metadata(ctx)
	if err == nil {
		err = conn.fits(m)
	}
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier)}
	if p.Fresh {
		// Two ways to say it, as each provider heeds another one. Finish believes
		// neither: it looks at auth_time.
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if !p.Fresh && conn.Prompt != "" {
		options = append(options, oauth2.SetAuthURLParam("prompt", conn.Prompt))
	}
	if !p.Fresh && conn.MaxAge != nil {
		options = append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(*conn.MaxAge)))
	}
	if p.UILocales != "" {
		options = append(options, oauth2.SetAuthURLParam("ui_locales", p.UILocales))
	}
	return conn.oauth2(m, p.RedirectURI).AuthCodeURL(p.State, options...), nil
}

// Check fetches the provider's description anew and tells what is wrong with the
// connection, for whoever sets it up. It cannot tell whether the secret is right.
func (c *Client) Check(ctx context.Context, conn Connection) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if conn.ClientID == "" || conn.ClientSecret == "" && conn.Key == nil {
		return misconfigured("the client id or the secret is missing")
	}
	if err := conn.subjectIsUsable(); err != nil {
		return err
	}
	m, err := c.discover(ctx, conn.key())
	if err != nil {
		return err
	}
	return conn.fits(m)
}

func (c Connection) oauth2(m metadata, redirectURI string) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID}
	for _, s := range c.Scopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	config := &oauth2.Config{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, RedirectURL: redirectURI, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: m.AuthorizationEndpoint, TokenURL: m.TokenEndpoint, AuthStyle: m.authStyle()},
	}
	if c.Key != nil {
		config.ClientSecret, config.Endpoint.AuthStyle = "", oauth2.AuthStyleInParams
	}
	return config
}

// subjectIsUsable refuses an e-mail address as the person's id: addresses are given
// to somebody else, and then the grants would be too (R68).
func (c Connection) subjectIsUsable() error {
	if strings.EqualFold(c.SubjectClaim, "email") {
		return misconfigured("an e-mail address cannot be the id of a person; name another claim")
	}
	return nil
}
