package demoidp

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// zitadel/oidc writes a refused request's state to the process's default logger, and
// that cannot be turned off. So it never sees the state: it gets a stand-in, which is
// exchanged on the way back.

// states remembers what the stand-ins stand for.
type states struct {
	mu   sync.Mutex
	real map[string]state
}

type state struct {
	text string
	at   time.Time
}

func (s *states) put(text string) (standIn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.real == nil {
		s.real = make(map[string]state)
	}
	for key, old := range s.real {
		if time.Since(old.at) > requestLifetime {
			delete(s.real, key)
		}
	}
	standIn = rand.Text()
	s.real[standIn] = state{text: text, at: time.Now()}
	return standIn
}

func (s *states) take(standIn string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.real[standIn]
	delete(s.real, standIn)
	return known.text, ok
}

// hideState replaces the state of an authorization request by a stand-in.
func (p *Provider) hideState(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		q.Set("state", p.states.put(q.Get("state")))
		r = r.Clone(r.Context())
		r.URL.RawQuery = q.Encode()
		next.ServeHTTP(w, r)
	})
}

// finishRedirect completes the answers that zitadel/oidc sends to the client.
func (p *Provider) finishRedirect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(p.backToClient(w), r)
	})
}

func (p *Provider) backToClient(w http.ResponseWriter) http.ResponseWriter {
	return &clientRedirect{ResponseWriter: w, p: p}
}

// clientRedirect puts the real state and the issuer (RFC 9207) into a redirect that
// leaves the provider.
type clientRedirect struct {
	http.ResponseWriter
	p *Provider
}

func (c *clientRedirect) WriteHeader(status int) {
	if to := c.Header().Get("Location"); to != "" {
		c.Header().Set("Location", c.p.complete(to))
	}
	c.ResponseWriter.WriteHeader(status)
}

func (p *Provider) complete(location string) string {
	target, err := url.Parse(location)
	if err != nil || target.Host == "" || strings.HasPrefix(location, p.issuer+"/") {
		return location // to a page of ours
	}
	faults := p.faults.get()
	q := target.Query()
	text, known := p.states.take(q.Get("state"))
	q.Set("state", text)
	if !known || text == "" || faults.OmitState {
		q.Del("state")
	}
	q.Set("iss", p.issuer)
	if faults.ResponseIssuer != "" {
		q.Set("iss", faults.ResponseIssuer)
	}
	if faults.OmitIssuer {
		q.Del("iss")
	}
	target.RawQuery = q.Encode()
	return target.String()
}
