package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// register plays {issuer}/agent.
type register struct {
	s     *scene
	known atomic.Bool
	away  atomic.Bool
	asked atomic.Int32
	block chan struct{} // if not nil: answers about strangers wait for it
	find  func(context.Context, string) (string, error)
}

func (r *register) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.asked.Add(1)
	issuer := q.URL.Query().Get("issuer")
	switch {
	case r.away.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, `{"known":true,"issuer":%q,"jwks_uri":%q}`, issuer, issuer+"/jwks.json") // not to be believed
	case q.Header.Get("Authorization") != "Bearer cs_key_secret":
		w.WriteHeader(http.StatusUnauthorized)
	case issuer != r.s.agent.URL:
		if r.block != nil {
			<-r.block
		}
		_, _ = fmt.Fprintf(w, `{"known":false,"issuer":%q}`, issuer)
	case !r.known.Load():
		_, _ = fmt.Fprintf(w, `{"known":false,"issuer":%q}`, issuer)
	default:
		_, _ = fmt.Fprintf(w, `{"known":true,"issuer":%q,"jwks_uri":%q}`, issuer, issuer+"/jwks.json")
	}
}

func newRegister(t *testing.T) (*scene, *register) {
	t.Helper()
	r := &register{}
	r.s = newScene(t, func(c *Config, of *AgentsConfig) {
		find, err := Directory(DirectoryConfig{Issuer: c.Issuer, Credential: "cs_key_secret", AllowLoopback: true, Now: c.Now})
		if err != nil {
			t.Fatal(err)
		}
		of.Known, of.Find, r.find = nil, find, find
	})
	r.s.authority.serve("/oauth/agent", r.ServeHTTP)
	r.known.Store(true)
	return r.s, r
}

// M2, as the authority has it: whom it names may call; whom it takes out is out
// within five seconds, and in again as soon; where it does not answer, callers of
// late go on for a while and nobody new is judged.
func TestTheDirectorySaysWhichAgentsMayCall(t *testing.T) {
	s, r := newRegister(t)
	for range 20 {
		if _, err := s.call(""); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.asked.Load(); n != 1 {
		t.Errorf("asked %d times for one agent", n)
	}
	r.known.Store(false)
	s.advance(6 * time.Second)
	if _, err := s.call(""); !errors.Is(err, ErrCaller) || !errors.Is(err, ErrUnknownAgent) {
		t.Errorf("taken out: %v", err)
	}
	if uri, err := r.find(t.Context(), s.agent.URL); uri != "" || !errors.Is(err, ErrUnknownAgent) {
		t.Errorf("taken out, to a Brand's own code: %q, %v", uri, err)
	}
	r.known.Store(true)
	s.advance(6 * time.Second)
	if _, err := s.call(""); err != nil {
		t.Errorf("let in again: %v", err)
	}
	r.away.Store(true)
	s.advance(20 * time.Second)
	if _, err := s.call(""); err != nil {
		t.Errorf("away for a while: %v", err)
	}
	s.advance(20 * time.Second)
	if _, err := s.call(""); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCaller) {
		t.Errorf("away for long: %v", err)
	}
}

// An agent that nobody has heard of is not taken for one while the authority is
// away, nor where its answer is about another.
func TestTheDirectoryGuessesNothing(t *testing.T) {
	s, r := newRegister(t)
	r.away.Store(true)
	if _, err := s.call(""); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCaller) {
		t.Errorf("away: %v", err)
	}
	for what, body := range map[string]string{
		"another agent":      `{"known":true,"issuer":"https://aria.example","jwks_uri":"https://aria.example/jwks.json"}`,
		"known and no keys":  fmt.Sprintf(`{"known":true,"issuer":%q}`, s.agent.URL),
		"keys and not known": fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, s.agent.URL, s.agent.URL+"/jwks.json"),
		"a page":             `<html>`,
	} {
		s.authority.serve("/oauth/agent", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if _, err := s.call(""); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCaller) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, c := range map[string]DirectoryConfig{
		"no credential": {Issuer: "https://harbor.example/oauth"},
		"no TLS":        {Issuer: "http://harbor.example/oauth", Credential: "cs_key_secret"},
	} {
		if _, err := Directory(c); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// However many names strangers make up, a bounded number of questions is under
// way, and agents that are known wait for none of them.
func TestStrangersDoNotShutTheDirectory(t *testing.T) {
	s, r := newRegister(t)
	if _, err := s.call(""); err != nil {
		t.Fatal(err)
	}
	before := r.asked.Load()
	r.block = make(chan struct{})
	answers := make(chan error, 5*maxDiscovery)
	for i := range cap(answers) {
		made := s.proof(map[string]any{"iss": fmt.Sprintf("https://made-up-%d.example", i)})
		go func() {
			_, err := s.door.Call(t.Context(), shown(made, ""))
			answers <- err
		}()
	}
	// Who finds no place is told so, and waits behind nobody.
	for range cap(answers) - maxDiscovery {
		if err := <-answers; !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCaller) {
			t.Errorf("one too many: %v", err)
		}
	}
	if n := r.asked.Load() - before; n != maxDiscovery {
		t.Errorf("%d questions at once", n)
	}
	s.advance(6 * time.Second) // and is asked about anew
	if _, err := s.call(""); err != nil {
		t.Errorf("a known agent: %v", err)
	}
	close(r.block)
	for range maxDiscovery {
		if err := <-answers; !errors.Is(err, ErrUnknownAgent) {
			t.Errorf("a made-up agent: %v", err)
		}
	}
}
