package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
)

const hotel = "harbor-hotel"

// stranger is an agent that nobody has registered and that can be discovered.
func (w *world) stranger(t testing.TB) *agenttest.PA {
	t.Helper()
	pa := agenttest.New(t)
	pa.Now = w.clock.Now
	pa.Describe(nil)
	return pa
}

func (w *world) meets(t testing.TB, token string) {
	t.Helper()
	if _, err := w.verifier.Meet(t.Context(), hotel, token, audience); err != nil {
		t.Errorf("not met: %v", err)
	}
}

func (w *world) shuns(t testing.TB, token string, why error) {
	t.Helper()
	caller, err := w.verifier.Meet(t.Context(), hotel, token, audience)
	refusedFor(t, caller, err, why)
}

// M2, the open policy: who proves with the keys found at its issuer who it is, is
// known from then on, under its host and nothing better; Verify discovers nobody.
func TestMeetFindsWhoeverPublishesItsKeys(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	w.refuses(t, pa.Token(t, agenttest.Claims{}), agent.ErrIssuer)
	if pa.Looks() != 0 {
		t.Error("Verify looked it up")
	}
	for range 3 {
		w.meets(t, pa.Token(t, agenttest.Claims{}))
	}
	if pa.Looks() != 1 || pa.Fetches() != 1 {
		t.Errorf("%d looks and %d fetches, want one each", pa.Looks(), pa.Fetches())
	}
	a, err := w.registry.Find(t.Context(), pa.Issuer)
	if err != nil || !a.Discovered || a.Test || !a.Enabled || "http://"+a.Name != pa.Issuer || a.JWKSURI != pa.JWKSURI {
		t.Errorf("%+v, %v", a, err)
	}
	// It is an agent like any other now, also for M1 to M6.
	w.accepts(t, pa.Token(t, agenttest.Claims{}))
	w.shuns(t, pa.Token(t, agenttest.Claims{Aud: "https://other.example"}), agent.ErrAudience)
	if err := w.registry.SetEnabled(t.Context(), pa.Issuer, false); err != nil {
		t.Fatal(err)
	}
	w.shuns(t, pa.Token(t, agenttest.Claims{}), agent.ErrDisabled)
	if got := w.counted(t, "countersign_agent_discoveries_total", "ok"); got != 1 {
		t.Errorf("counted %v discoveries", got)
	}
}

// R23, M3 to M7: nothing is fetched for a token that anything else is wrong with.
func TestMeetReachesOutLast(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	now := w.clock.Now()
	for name, tt := range map[string]struct {
		token string
		why   error
	}{
		"another audience": {pa.Token(t, agenttest.Claims{Aud: "https://other.example"}), agent.ErrAudience},
		"over":             {pa.Token(t, agenttest.Claims{IssuedAt: now.Add(-time.Hour)}), agent.ErrExpired},
		"early":            {pa.Token(t, agenttest.Claims{IssuedAt: now.Add(time.Hour)}), agent.ErrEarly},
		"long-lived":       {pa.Token(t, agenttest.Claims{Expires: now.Add(time.Hour)}), agent.ErrLifetime},
		"no sub":           {pa.Token(t, agenttest.Claims{Without: []string{"sub"}}), agent.ErrSubject},
		"alg none":         {agenttest.Forge(t, members{"alg": "none"}, pa.Members(agenttest.Claims{}), agenttest.Fixed(nil)), agent.ErrAlgorithm},
		"jku":              {agenttest.Forge(t, members{"alg": "ES256", "jku": pa.JWKSURI}, pa.Members(agenttest.Claims{}), pa.ES256(t)), agent.ErrHeader},
		"nonsense":         {"x.y", agent.ErrMalformed},
		"iss with a query": {pa.Token(t, agenttest.Claims{Extra: members{"iss": pa.Issuer + "?x"}}), agent.ErrIssuer},
		"iss with a user":  {pa.Token(t, agenttest.Claims{Extra: members{"iss": "https://u@agent.example"}}), agent.ErrIssuer},
	} {
		t.Run(name, func(t *testing.T) { w.shuns(t, tt.token, tt.why) })
	}
	if pa.Looks() != 0 || pa.Fetches() != 0 {
		t.Errorf("%d looks, %d fetches", pa.Looks(), pa.Fetches())
	}
}

// M2: the document is the issuer's own, byte for byte, and its keys are where we
// may fetch from (B103: no redirects, nothing inside our network).
func TestConfigurationsThatDoNotCount(t *testing.T) {
	w := newWorld(t)
	other := w.stranger(t)
	for name, change := range map[string]members{
		"another issuer":       {"issuer": other.Issuer},
		"a slash more":         {"issuer": "SLASH"},
		"no issuer":            {"issuer": nil},
		"issuer under Issuer":  {"issuer": nil, "Issuer": "SELF"},
		"no keys":              {"jwks_uri": nil},
		"keys inside":          {"jwks_uri": "https://10.0.0.1/jwks.json"},
		"keys without TLS":     {"jwks_uri": "http://agent.example/jwks.json"},
		"keys with a fragment": {"jwks_uri": other.JWKSURI + "#x"},
		"keys of no kind":      {"jwks_uri": 7},
	} {
		t.Run(name, func(t *testing.T) {
			pa := w.stranger(t)
			for k, v := range change {
				switch v {
				case "SLASH":
					change[k] = pa.Issuer + "/"
				case "SELF":
					change[k] = pa.Issuer
				}
			}
			pa.Describe(change)
			w.shuns(t, pa.Token(t, agenttest.Claims{}), agent.ErrUndiscovered)
			if _, err := w.registry.Find(t.Context(), pa.Issuer); !errors.Is(err, agent.ErrNotRegistered) {
				t.Errorf("it is known: %v", err)
			}
		})
	}
	if other.Fetches() != 0 {
		t.Error("keys were fetched elsewhere")
	}
	redirect := httptest.NewServer(http.RedirectHandler(other.Issuer+"/.well-known/openid-configuration", http.StatusFound))
	defer redirect.Close()
	w.shuns(t, other.Token(t, agenttest.Claims{Extra: members{"iss": redirect.URL}}), agent.ErrUndiscovered)
	if other.Looks() != 0 {
		t.Error("a redirect was followed")
	}
}

// What fails is not tried again for a minute, and then it is.
func TestFailedDiscoveryStandsForAMinute(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	pa.Break()
	for range 3 {
		w.shuns(t, pa.Token(t, agenttest.Claims{}), agent.ErrUndiscovered)
	}
	pa.Publish(pa.PublicJWK())
	w.clock.Advance(59 * time.Second)
	w.shuns(t, pa.Token(t, agenttest.Claims{}), agent.ErrUndiscovered)
	if pa.Looks() != 1 || pa.Fetches() != 1 {
		t.Errorf("%d looks, %d fetches", pa.Looks(), pa.Fetches())
	}
	w.clock.Advance(time.Second)
	w.meets(t, pa.Token(t, agenttest.Claims{}))
}

// A stranger who names somebody else's issuer gets nothing by it, and keeps nobody
// out: each token proves itself with what was found.
func TestForgedIntroductionsKeepNobodyOut(t *testing.T) {
	w := newWorld(t)
	pa, mallory := w.stranger(t), agenttest.New(t)
	mallory.Now = w.clock.Now
	w.shuns(t, mallory.Token(t, agenttest.Claims{Extra: members{"iss": pa.Issuer}}), agent.ErrUnknownKey)
	if _, err := w.registry.Find(t.Context(), pa.Issuer); !errors.Is(err, agent.ErrNotRegistered) {
		t.Errorf("a forgery made it known: %v", err)
	}
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	if pa.Looks() != 1 {
		t.Errorf("%d looks", pa.Looks())
	}
}

// B95: one site is not knocked at for each address that somebody makes up there.
func TestStrangersCannotHaveUsHammerASite(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	for i := range 40 {
		_, _ = w.verifier.Meet(t.Context(), hotel, pa.Token(t, agenttest.Claims{Extra: members{"iss": fmt.Sprintf("%s/%d", pa.Issuer, i)}}), audience)
	}
	if n := pa.Looks() + pa.Fetches(); n > 6 {
		t.Errorf("asked %d times in a minute", n)
	}
	// Nor through keys that strangers say are there.
	victim := w.stranger(t)
	for range 20 {
		liar := w.stranger(t)
		liar.Describe(members{"jwks_uri": victim.JWKSURI})
		if _, err := w.verifier.Meet(t.Context(), hotel, liar.Token(t, agenttest.Claims{}), audience); !errors.Is(err, agent.ErrRefused) {
			t.Errorf("with another's keys: %v", err)
		}
	}
	if n := victim.Fetches(); n > 6 {
		t.Errorf("keys fetched %d times in a minute", n)
	}
}

// However many strangers come, so many discoveries begin in a minute and no more;
// those whom we know are let in as before.
func TestDiscoveriesAreBounded(t *testing.T) {
	w := newWorld(t)
	known := w.pa(t)
	looks := 0
	for range 70 {
		pa := w.stranger(t)
		_, _ = w.verifier.Meet(t.Context(), hotel, pa.Token(t, agenttest.Claims{}), audience)
		looks += pa.Looks()
	}
	if looks != 60 {
		t.Errorf("%d discoveries in a minute, want 60", looks)
	}
	w.meets(t, known.Token(t, agenttest.Claims{}))
	w.clock.Advance(time.Minute)
	w.meets(t, w.stranger(t).Token(t, agenttest.Claims{}))
}

// B63 for agents: strangers whose servers hang hold up a few searches of
// strangers, and nobody else.
func TestHangingStrangersSlowNobody(t *testing.T) {
	w := newWorld(t)
	known := w.pa(t)
	w.meets(t, known.Token(t, agenttest.Claims{}))
	hang := make(chan struct{})
	arrived := make(chan struct{}, 20)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 8 {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-hang }))
		defer s.Close()
		token := known.Token(t, agenttest.Claims{Extra: members{"iss": s.URL}})
		all.Go(func() { _, _ = w.verifier.Meet(ctx, hotel, token, audience) })
	}
	for range 8 {
		<-arrived
	}
	begun := time.Now()
	w.meets(t, known.Token(t, agenttest.Claims{}))
	late := w.stranger(t)
	w.shuns(t, late.Token(t, agenttest.Claims{}), agent.ErrUndiscovered)
	if took := time.Since(begun); took > 2*time.Second || late.Looks() != 0 {
		t.Errorf("waited %v, %d looks", took, late.Looks())
	}
	cancel()
	close(hang)
	all.Wait()
}

// Many tokens of one stranger at once are one discovery.
func TestOneDiscoveryForAll(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	var all sync.WaitGroup
	for range 10 {
		token := pa.Token(t, agenttest.Claims{})
		all.Go(func() { w.meets(t, token) })
	}
	all.Wait()
	if pa.Looks() != 1 {
		t.Errorf("%d looks", pa.Looks())
	}
}

// A discovered agent that moved its keys is looked up anew; a registered one is
// where the operator said.
func TestDiscoveredAgentsMayMove(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	w.clock.Advance(2 * time.Minute)
	pa.Rotate(t)
	pa.JWKSURI += "?2"
	pa.Describe(nil)
	pa.Serve(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "2" {
			http.NotFound(rw, r)
			return
		}
		fmt.Fprintf(rw, `{"keys":[%s]}`, mustJSON(t, pa.PublicJWK()))
	})
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	if a, err := w.registry.Find(t.Context(), pa.Issuer); err != nil || a.JWKSURI != pa.JWKSURI {
		t.Errorf("%+v, %v", a, err)
	}
	firm := w.pa(t)
	w.meets(t, firm.Token(t, agenttest.Claims{}))
	firm.Describe(members{"jwks_uri": pa.JWKSURI})
	firm.Use(agenttest.NewKey(t), "new")
	w.shuns(t, firm.Token(t, agenttest.Claims{}), agent.ErrUnknownKey)
	if firm.Looks() != 0 {
		t.Error("a registered agent was looked up")
	}
}

// The operator's word stands above: whom he refused is not let in by discovery, and
// whom he registers is registered, in the same row.
func TestTheOperatorsWordStandsAboveDiscovery(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	apply := func(pa *agenttest.PA) error {
		return w.registry.Apply(t.Context(), devFetch(), application(pa), pa.Token(t, agenttest.Claims{Aud: applyAudience}), applyAudience)
	}
	if err := errors.Join(apply(pa), w.registry.Reject(t.Context(), pa.Issuer)); err != nil {
		t.Fatal(err)
	}
	w.shuns(t, pa.Token(t, agenttest.Claims{}), agent.ErrIssuer)

	good := w.stranger(t)
	w.meets(t, good.Token(t, agenttest.Claims{}))
	before, err := w.registry.Find(t.Context(), good.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Second)
	if err := apply(good); err != nil {
		t.Fatal(err)
	}
	if err := w.registry.Approve(t.Context(), good.Issuer, digest(t, w.registry, good.Issuer)); err != nil {
		t.Fatal(err)
	}
	after, err := w.registry.Find(t.Context(), good.Issuer)
	if err != nil || after.Discovered || after.Name != "Aria" || !after.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("%+v, %v", after, err)
	}
	third := w.stranger(t)
	w.meets(t, third.Token(t, agenttest.Claims{}))
	w.register(t, third)
	if a, err := w.registry.Find(t.Context(), third.Issuer); err != nil || a.Discovered || a.Name != third.Name {
		t.Errorf("%+v, %v", a, err)
	}
}
