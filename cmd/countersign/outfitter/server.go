package outfitter

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/verify"
)

// Config is what the program is told at its start.
type Config struct {
	Service    string // origin of the service, such as https://countersign.example
	Brand      string // the Brand's id there
	Interface  string // the Brand's interface URL, which this program serves
	Audience   string // what agents name as aud: the Provider's
	Credential string // the Brand's API key, with the rights verify, stepup, receipts and events
	Log        *slog.Logger
}

// Shop is the program.
type Shop struct {
	Config
	door    *verify.Verifier
	pending *verify.Pending
	talks   *talks
	http    http.Handler
}

// New sets the program up. AllowLoopback stands in it because it is a demo: it is
// the one thing that a Brand's own would leave out.
func New(c Config) (*Shop, error) {
	at, err := url.Parse(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("interface URL: %w", err)
	}
	service, err := url.Parse(c.Service)
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	issuer := c.Interface + "/oauth"
	find, err := verify.Directory(verify.DirectoryConfig{Issuer: issuer, Credential: c.Credential, AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	agents, err := verify.NewAgents(verify.AgentsConfig{Audience: c.Audience, Find: find, AllowLoopback: true, Log: c.Log})
	if err != nil {
		return nil, err
	}
	s := &Shop{Config: c, talks: newTalks(time.Now)}
	s.door, err = verify.New(verify.Config{
		Issuer: issuer, Interface: c.Interface, Agents: agents, Credential: c.Credential,
		AllowLoopback: true, Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	// What was done is known in memory alone, and so is what waits for its receipt: a
	// Brand's own program gives a Keeper, over the table in which it has the rest.
	s.pending, err = verify.NewPending(verify.PendingConfig{Door: s.door, Done: s.settled})
	if err != nil {
		return nil, err
	}
	front := &proxy{service: service, path: at.Path, brand: "/a2a/" + c.Brand}
	front.agent = surface.Serve(at.Path, s.door.Protect, s.send, func(r *http.Request, err error) {
		c.Log.ErrorContext(r.Context(), "a turn failed", "error", err)
	})
	front.forward = &httputil.ReverseProxy{Rewrite: front.rewrite, FlushInterval: -1, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn)}
	s.http = front
	return s, nil
}

// ServeHTTP serves the interface, and in front of the service what is its.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.ServeHTTP(w, r) }

// Follow hears of what people end, a second after they did, and offers again what waits
// for its receipt, until ctx ends.
func (s *Shop) Follow(ctx context.Context) {
	var offering sync.WaitGroup
	defer offering.Wait()
	offering.Go(func() { s.pending.Run(ctx) })
	if err := s.door.Follow(ctx); ctx.Err() == nil {
		s.Log.ErrorContext(ctx, "what people end is known from the status list alone", "error", err)
	}
}

// proxy is the Brand's small proxy: the three paths of deploy/proxy are forwarded
// and no other.
type proxy struct {
	service        *url.URL
	path, brand    string // of the interface: here, and at the service
	agent, forward http.Handler
}

const wellKnown = "/.well-known/oauth-authorization-server"

// there is the path at the service; empty: it is not the service's.
func (p *proxy) there(at string) string {
	switch {
	case strings.HasPrefix(at, p.path+"/oauth/"):
		return p.brand + strings.TrimPrefix(at, p.path)
	case at == wellKnown+p.path+"/oauth":
		return wellKnown + p.brand + "/oauth"
	case at == p.path+"/.well-known/agent-card.json":
		return p.brand + "/.well-known/agent-card.json"
	}
	return ""
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Of an escaped path, or one with dots, two programs may make two different ones:
	// it would lead out of what is forwarded.
	if r.URL.RawPath == "" && path.Clean(r.URL.Path) == r.URL.Path && p.there(r.URL.Path) != "" {
		if strings.HasSuffix(r.URL.Path, "/events") {
			// A stream has no end; one on which nobody writes is ended by the service.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		}
		p.forward.ServeHTTP(w, r)
		return
	}
	p.agent.ServeHTTP(w, r)
}

// passed are the headers that the service is to see, as in
// deploy/proxy/countersign-headers.conf. Whatever calls itself Countersign-… is not
// among them, nor any cookie.
var passed = []string{"Accept", "Authorization", "Content-Type", "If-None-Match", "Last-Event-Id"}

func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path = p.service.Scheme, p.service.Host, p.there(r.In.URL.Path)
	r.Out.Host = ""
	r.Out.Header = http.Header{}
	for _, name := range passed {
		if values, there := r.In.Header[name]; there {
			r.Out.Header[name] = values
		}
	}
}
