package demoidp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Paths that tests name in Hits and that faults apply to.
const (
	PathDiscovery = oidc.DiscoveryEndpoint
	PathAuthorize = "/authorize"
	PathToken     = "/oauth/token"
	PathJWKS      = "/keys"
)

// User is somebody who can sign in. Claims are added to the ID token as they are.
type User struct {
	Username, Password   string
	Subject, Name, Email string
	Claims               map[string]any
}

// Config describes the Brand's sign-in and its one client, which is us.
type Config struct {
	Name         string // as on the page: "Harbor Hotel"
	Colour       string // #rrggbb
	Hint         string // a line for visitors of a demo, for example who can sign in
	Users        []User
	ClientID     string
	ClientSecret string
	RedirectURIs []string // compared exactly
	Logger       *slog.Logger
	// Now is the time that ID tokens speak of, for clients whose clock a test turns;
	// nil: time.Now.
	Now func() time.Time
}

// Provider is an OpenID provider. All its methods may be called at any time.
type Provider struct {
	config Config
	issuer string
	cookie string
	store  *storage
	faults faulty
	states states

	oidc   *op.Provider
	server *http.Server
	closed context.CancelFunc
	served sync.WaitGroup
}

var hexColour = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// New checks the configuration and makes the signing key. Start opens the door.
func New(c Config) (*Provider, error) {
	var wrong []error
	if c.Name == "" || c.ClientID == "" || c.ClientSecret == "" {
		wrong = append(wrong, errors.New("a name, a client id and a client secret are needed"))
	}
	if c.Colour == "" {
		c.Colour = "#2f4858"
	}
	if !hexColour.MatchString(c.Colour) { // it goes into a stylesheet
		wrong = append(wrong, fmt.Errorf("colour %q is not of the form #1f3a5f", c.Colour))
	}
	for _, u := range c.Users {
		if u.Username == "" || u.Password == "" || u.Subject == "" {
			wrong = append(wrong, fmt.Errorf("user %q needs a name, a password and a subject", u.Username))
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("demo provider: %w", errors.Join(wrong...))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := newStorage(c)
	if err != nil {
		return nil, fmt.Errorf("demo provider: %w", err)
	}
	return &Provider{config: c, store: store}, nil
}

// Start serves on the listener, which must be a loopback one, until Close. The
// listener's address becomes the issuer.
func (p *Provider) Start(l net.Listener) error {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("demo provider: %s is not a loopback address", l.Addr())
	}
	p.issuer = "http://" + address.String()
	// Cookies do not know ports: without it, two providers of one machine would log
	// each other out.
	p.cookie = "signin_" + strconv.Itoa(address.Port)

	var key [32]byte
	rand.Read(key[:])
	provider, err := op.NewProvider(&op.Config{
		CryptoKey: key, CryptoKeyId: "1", CodeMethodS256: true, AuthMethodPost: true, AuthMethodPrivateKeyJWT: true,
		SupportedUILocales: locales, SupportedScopes: []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail},
	}, p.store, op.StaticIssuer(p.issuer), op.WithAllowInsecure(), op.WithCORSOptions(nil))
	if err != nil {
		return fmt.Errorf("demo provider: %w", err)
	}
	p.oidc = provider

	ctx, cancel := context.WithCancel(context.Background())
	p.closed = cancel
	p.server = &http.Server{
		Handler:           p.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(p.config.Logger.Handler(), slog.LevelWarn),
	}
	p.served.Go(func() {
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.config.Logger.Error("demo provider ended", "error", err)
		}
	})
	return nil
}

// Issuer is the provider's identifier, known once it has started.
func (p *Provider) Issuer() string { return p.issuer }

// Close ends the provider and what hangs in it.
func (p *Provider) Close() error {
	if p.server == nil {
		return nil
	}
	p.closed() // lets go of requests that a fault holds
	err := p.server.Close()
	p.served.Wait()
	return err
}

// SetRedirectURIs replaces the client's redirect URIs, for callers that learn their
// own address only after the provider has started.
func (p *Provider) SetRedirectURIs(uris ...string) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.client.redirectURIs = slices.Clone(uris)
}

// SetClientKey makes the client authenticate with this public key from now on, and
// no longer with its secret.
func (p *Provider) SetClientKey(key jose.JSONWebKey) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.client.key = &key
}

func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PathDiscovery, p.discovery)
	mux.Handle("GET "+PathAuthorize, p.hideState(p.finishRedirect(p.oidc)))
	mux.Handle("GET "+PathAuthorize+"/callback", p.finishRedirect(p.oidc))
	mux.HandleFunc("GET /login", p.showLogin)
	mux.HandleFunc("POST /login", p.login)
	mux.HandleFunc("GET /login/cancel", p.cancel)
	mux.HandleFunc("GET /style.css", p.style)
	mux.Handle("POST "+PathToken, p.alterToken(p.oidc))
	mux.Handle("GET "+PathJWKS, p.oidc)
	mux.Handle("GET /userinfo", p.oidc)
	mux.HandleFunc("GET /{$}", p.home)
	return p.headers(p.misbehave(http.NewCrossOriginProtection().Handler(mux)))
}

// discovery adds to zitadel/oidc's document what it does not know: RFC 9207.
func (p *Provider) discovery(w http.ResponseWriter, r *http.Request) {
	known := op.CreateDiscoveryConfig(op.ContextWithIssuer(r.Context(), p.issuer), p.oidc, p.store)
	document, err := asMap(known)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	document["authorization_response_iss_parameter_supported"] = true
	if edit := p.faults.get().EditDiscovery; edit != nil {
		edit(document)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(document)
}

func asMap(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	return m, json.Unmarshal(text, &m)
}

// answer sends the person back to the client with an error (RFC 6749, 4.1.2.1).
func (p *Provider) answer(w http.ResponseWriter, r *http.Request, request *authRequest, code, description string) {
	p.store.forget(request.id)
	target, err := url.Parse(request.asked.RedirectURI)
	if err != nil {
		p.problem(w, r, http.StatusBadRequest)
		return
	}
	q := target.Query()
	q.Set("error", code)
	if description != "" {
		q.Set("error_description", description)
	}
	q.Set("state", request.asked.State)
	target.RawQuery = q.Encode()
	http.Redirect(p.backToClient(w), r, target.String(), http.StatusSeeOther)
}
