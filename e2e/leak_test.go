package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// secrets are what passed through people's browsers and agents' hands in all
// tests so far. None may stand in a log (P48, R40).
type secrets struct {
	mu   sync.Mutex
	kept map[string]string // the text: what it is

	callback string // where the Brand's sign-in last sent a browser
}

func (s *secrets) keep(what string, texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = make(map[string]string)
	}
	for _, t := range texts {
		if t != "" {
			s.kept[t] = what
		}
	}
}

// keepFromURL keeps what the Brand's sign-in sends back through the browser.
func (s *secrets) keepFromURL(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	q := u.Query()
	if u.Path == "/console/link" {
		s.keep("one-time link", q.Get("t"))
	}
	if !strings.HasSuffix(u.Path, "/callback") {
		return
	}
	s.keep("sign-in code", q.Get("code"))
	s.keep("sign-in state", q.Get("state"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callback = address
}

// shapes are secrets by their looks, for those that nobody kept.
var shapes = map[string]*regexp.Regexp{
	"device code":   regexp.MustCompile(`\bdc_`),
	"refresh token": regexp.MustCompile(`\brt_`),
	"JWT":           regexp.MustCompile(`eyJ`),
	"link":          regexp.MustCompile(`user_code=`),
	"e-mail":        regexp.MustCompile(`[\w.+-]+@[\w-]+\.\w+`),
	"password":      regexp.MustCompile(`postgres(ql)?://`),
}

// found looks for secrets in a text. It says which and in which line, and does
// not repeat them.
func (s *secrets) found(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for n, line := range strings.Split(text, "\n") {
		for what, shape := range shapes {
			if shape.MatchString(line) {
				errs = append(errs, fmt.Errorf("line %d looks as if it held a %s", n+1, what))
			}
		}
		for secret, what := range s.kept {
			if strings.Contains(line, secret) {
				errs = append(errs, fmt.Errorf("line %d holds a %s", n+1, what))
			}
		}
	}
	return errors.Join(errs...)
}

// leaks reads the product's log so far.
func (p *product) leaks() (found, err error) {
	raw, err := os.ReadFile(p.stderr)
	if err != nil {
		return nil, err
	}
	if err := p.secrets.found(string(raw)); err != nil {
		return fmt.Errorf("%s:\n%w", p.stderr, err), nil
	}
	return nil, nil
}

// P48, R40: a log at its most talkative holds no secret. TestMain reads it again
// when everything is over.
func TestLogsHoldNoSecrets(t *testing.T) {
	p := theProduct(t)
	// A journey with everything in it, in case this test runs alone.
	alex, r := question(t, p, "bookings:read")
	alex.allow()
	if a := r.poll(); a.AccessToken == "" {
		t.Fatal("no token came out of it")
	}
	r.poll()
	alex.open(p.page(p.hotel(t), "device?user_code=BCDF-GHJK"))
	alex.open(p.PublicURL + "/b/harbor-hotel/callback?state=planted&code=planted")

	found, err := p.leaks()
	if err != nil {
		t.Fatal(err)
	}
	if found != nil {
		t.Error(found)
	}
	raw, err := os.ReadFile(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range []string{"/b/{brand}/callback", "/b/{brand}/consent/decision", "/oauth/token"} {
		if !strings.Contains(string(raw), route) {
			t.Errorf("the log does not tell of %s, so it proves nothing", route)
		}
	}
	if len(p.secrets.kept) < 5 {
		t.Errorf("only %d secrets were kept on the way, so this proves little", len(p.secrets.kept))
	}
}

// The search itself finds what it looks for.
func TestSecretsAreRecognised(t *testing.T) {
	var s secrets
	s.keep("user code", "WDJB-MJHT")
	s.keepFromURL("http://localhost/b/x/callback?code=c0de5ecret&state=5tate5ecret")
	for _, line := range []string{
		`code=WDJB-MJHT`, `q=c0de5ecret`, `q=5tate5ecret`, `x=dc_abc`, `x=rt_abc`, `Bearer eyJhbGciOi`,
		`/device?user_code=AAAA`, `account=alex@example.com`, `postgres://a:b@c/d`,
	} {
		if s.found("fine\n"+line) == nil {
			t.Errorf("passed over: %s", line)
		}
	}
	if err := s.found(`level=INFO msg=request id=abc route="GET /b/{brand}/device" status=200`); err != nil {
		t.Error(err)
	}
}
