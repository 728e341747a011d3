package verify

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// P37, R57: the authority publishes its next key before it signs with it; a kit
// that holds the former key set finds the new one, and tokens of both verify while
// both are published.
func TestKeysOfTheAuthorityRotateWithoutAFalseRefusal(t *testing.T) {
	s := newScene(t)
	old := s.token(nil)
	if _, err := s.call(old); err != nil {
		t.Fatal(err)
	}
	next := newSigner(t)
	s.authority.text("/oauth/jwks.json", `{"keys":[`+s.brand.jwk(`,"kid":"k1"`)+`,`+next.jwk(`,"kid":"k2"`)+`]}`)
	claims := delegationClaims()
	claims["iss"], claims["client_id"], claims["status"] = s.issuer(), s.agent.URL, at(0, s.issuer()+"/status/0")
	fresh := next.sign(t, `{"alg":"ES256","kid":"k2","typ":"at+jwt"}`, marshal(t, claims))
	for _, token := range []string{fresh, old} {
		if _, err := s.call(token); err != nil {
			t.Errorf("%v", err)
		}
	}
	if n := s.authority.times("/oauth/jwks.json"); n != 2 {
		t.Errorf("%d fetches", n)
	}
}

// A key that is taken back is known to be within five minutes, without anybody
// asking for it.
func TestAKeyThatIsTakenBackIsRefused(t *testing.T) {
	s := newScene(t)
	if _, err := s.call(s.token(nil)); err != nil {
		t.Fatal(err)
	}
	s.publish("k2", newSigner(t))
	s.advance(5*time.Minute + time.Second)
	if _, err := s.call(s.token(nil)); !errors.Is(err, ErrToken) {
		t.Errorf("%v", err)
	}
}

// An agent that withdraws all its keys, or publishes none that is good for
// signatures, is nobody within five minutes: what it had yesterday serves only
// where nothing can be fetched. A key that is spoiled takes no other with it.
func TestAnAgentWithdrawsItsKeys(t *testing.T) {
	s := newScene(t)
	other := newSigner(t).jwk(`,"kid":"p2"`)
	for what, published := range map[string]string{
		"none":                 `{"keys":[]}`,
		"one for encryption":   `{"keys":[` + s.pa.jwk(`,"kid":"p1","use":"enc"`) + `]}`,
		"one to derive with":   `{"keys":[` + s.pa.jwk(`,"kid":"p1","key_ops":["deriveKey"]`) + `]}`,
		"one that is revoked":  `{"keys":[` + s.pa.jwk(`,"kid":"p1","revoked":{}`) + `]}`,
		"one with its secret":  `{"keys":[` + s.pa.jwk(`,"kid":"p1","d":"AAAA"`) + `,` + other + `]}`,
		"something that is no": `{"keys":[7]}`,
	} {
		s.publishPA("p1", s.pa)
		s.advance(6 * time.Minute)
		if _, err := s.call(""); err != nil {
			t.Fatalf("before %s: %v", what, err)
		}
		s.agent.text("/jwks.json", published)
		s.advance(6 * time.Minute)
		if _, err := s.call(""); !errors.Is(err, ErrCaller) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.agent.text("/jwks.json", `{"keys":[`+newSigner(t).jwk(`,"kid":"p0","d":"AAAA"`)+`,7,`+s.pa.jwk(`,"kid":"p1","use":"sig","key_ops":["verify"]`)+`]}`)
	s.advance(6 * time.Minute)
	if _, err := s.call(""); err != nil {
		t.Errorf("a good key beside bad ones: %v", err)
	}
}

// Tokens that name keys nobody has make us ask once per cooldown, not once each;
// and of one agent, not of all (M1).
func TestUnknownKeysAreAskedForOncePerCooldown(t *testing.T) {
	s := newScene(t)
	if _, err := s.call(s.token(nil)); err != nil {
		t.Fatal(err)
	}
	flood := func() {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				header := fmt.Sprintf(`{"alg":"ES256","kid":"made-up-%d","typ":"at+jwt"}`, i)
				claims := delegationClaims()
				claims["iss"], claims["client_id"] = s.issuer(), s.agent.URL
				if _, err := s.call(s.brand.sign(t, header, marshal(t, claims))); !errors.Is(err, ErrUnknownKey) {
					t.Errorf("%v", err)
				}
				proof := s.pa.sign(t, fmt.Sprintf(`{"alg":"ES256","kid":"made-up-%d"}`, i), marshal(t, map[string]any{
					"iss": s.agent.URL, "aud": provider, "sub": "alex", "iat": noon.Unix(), "exp": noon.Unix() + 300,
				}))
				if _, err := s.door.Call(t.Context(), shown(proof, "")); !errors.Is(err, ErrUnknownKey) {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
	}
	for round := range 3 {
		flood()
		if a, b := s.authority.times("/oauth/jwks.json"), s.agent.times("/jwks.json"); a != 2+round || b != 2+round {
			t.Errorf("round %d: %d and %d fetches", round, a, b)
		}
		flood() // within the cooldown
		s.advance(10 * time.Second)
	}
}

// A failed fetch keeps the old keys, for 24 hours and no longer; the agent is then
// nobody, and of the authority's tokens nobody can tell.
func TestOldKeysServeWhileAFetchFails(t *testing.T) {
	s := newScene(t)
	if _, err := s.call(s.token(nil)); err != nil {
		t.Fatal(err)
	}
	s.agent.fails("/jwks.json")
	s.authority.fails("/oauth/jwks.json")
	for range 3 {
		s.advance(7 * time.Hour)
		if _, err := s.call(s.token(nil)); err != nil {
			t.Fatalf("after %s: %v", s.now().Sub(noon), err)
		}
	}
	s.advance(3*time.Hour + time.Second)
	if _, err := s.call(""); !errors.Is(err, ErrCaller) {
		t.Errorf("the agent's keys are too old: %v", err)
	}
	s.publishPA("p1", s.pa)
	s.advance(10 * time.Second)
	if _, err := s.call(s.token(nil)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the authority's keys are too old: %v", err)
	}
	s.publish("k1", s.brand)
	s.advance(10 * time.Second)
	if _, err := s.call(s.token(nil)); err != nil {
		t.Errorf("all is well again: %v", err)
	}
}

// What is published is read within bounds, and from where it was asked for.
func TestKeySetsAreReadWithinBounds(t *testing.T) {
	elsewhere := newSite(t)
	for what, page := range map[string]func(*scene) http.HandlerFunc{
		"a redirect": func(s *scene) http.HandlerFunc {
			elsewhere.text("/", `{"keys":[`+s.pa.jwk(`,"kid":"p1"`)+`,`+s.pa.jwk(`,"kid":"k1"`)+`]}`)
			return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }
		},
		"too large": func(s *scene) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, strings.Repeat(" ", maxKeySet), s.jwks("p1", s.pa))
			}
		},
		"private keys": func(s *scene) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, `{"keys":[`+s.pa.jwk(`,"kid":"p1","d":"AAAA"`)+`]}`)
			}
		},
	} {
		s := newScene(t)
		s.agent.serve("/jwks.json", page(s))
		if _, err := s.call(""); !errors.Is(err, ErrCaller) {
			t.Errorf("%s: %v", what, err)
		}
		// The authority's, which another client fetches, likewise.
		s = newScene(t)
		token := s.token(nil)
		s.pa, s.brand = s.brand, s.pa
		s.authority.serve("/oauth/jwks.json", renamed(page(s)))
		s.pa, s.brand = s.brand, s.pa
		want := ErrUnavailable
		if what == "private keys" { // a set as good as any, without that key
			want = ErrToken
		}
		if _, err := s.call(token); !errors.Is(err, want) {
			t.Errorf("%s, of the authority: %v", what, err)
		}
	}
	if elsewhere.times("/") != 0 {
		t.Error("a redirect was followed")
	}
}

// renamed has the page of an agent's keys be one of the authority's.
func renamed(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		page(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		fmt.Fprint(w, strings.ReplaceAll(rec.Body.String(), `"p1"`, `"k1"`))
	}
}

// A key set that has not changed is not sent again.
func TestUnchangedKeysCostNothing(t *testing.T) {
	s := newScene(t)
	sent := 0
	s.authority.serve("/oauth/jwks.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		fmt.Fprint(w, s.jwks("k1", s.brand))
	})
	for range 3 {
		if _, err := s.call(s.token(nil)); err != nil {
			t.Fatal(err)
		}
		s.advance(6 * time.Minute)
	}
	if n := s.authority.times("/oauth/jwks.json"); n != 3 || sent != 1 {
		t.Errorf("%d fetches, %d sent", n, sent)
	}
}

// One agent's slow server is nobody else's trouble.
func TestOneAgentsTroubleIsItsOwn(t *testing.T) {
	slow := newSite(t)
	asked, hold := make(chan struct{}), make(chan struct{})
	slow.serve("/jwks.json", func(http.ResponseWriter, *http.Request) { close(asked); <-hold })
	s := newScene(t, func(_ *Config, of *AgentsConfig) {
		of.Known = append(of.Known, KnownAgent{slow.URL, slow.URL + "/jwks.json"})
	})
	stuck := make(chan error)
	go func() {
		_, err := s.door.Call(t.Context(), shown(s.proof(map[string]any{"iss": slow.URL}), ""))
		stuck <- err
	}()
	<-asked
	began := time.Now()
	if _, err := s.call(s.token(nil)); err != nil || time.Since(began) > time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	close(hold)
	if err := <-stuck; !errors.Is(err, ErrCaller) {
		t.Errorf("%v", err)
	}
}
