package e2e

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/verify"
)

// door is the kit as the Brand's engineer sets it up, over the real service.
func (p *product) door(t *testing.T, b brand, audience string, change ...func(*verify.Config)) *verify.Verifier {
	t.Helper()
	agents, err := verify.NewAgents(verify.AgentsConfig{
		Audience: audience, AllowLoopback: true,
		Known: []verify.KnownAgent{{Issuer: p.Agent.Issuer, JWKSURI: p.Agent.JWKSURI}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := verify.Config{Issuer: b.Issuer, Interface: b.InterfaceURL, Agents: agents, AllowLoopback: true, Credential: b.APIKey}
	for _, one := range change {
		one(&c)
	}
	v, err := verify.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// deaf gets no status list, so what it knows of ends it has from the stream.
func deaf(c *verify.Config) {
	c.FailOpen, c.HTTP = true, &http.Client{Transport: withoutLists{http.DefaultTransport}}
}

type withoutLists struct{ next http.RoundTripper }

func (w withoutLists) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/status") {
		return nil, errors.New("no status list here")
	}
	return w.next.RoundTrip(r)
}

// M7, M17, M18, M21, M22, P46, R54: the kit lets in whom the real service gave a
// token, and nobody else; it asks for more in the agent's name; what the person
// ends, it knows within a second from the stream, and within five from the list.
func TestTheKitKnowsWhoCalls(t *testing.T) {
	p := theProduct(t)
	hotel, shop := p.hotel(t), p.outfitter(t)
	alex, asked := question(t, p, "bookings:read")
	alex.allow()
	alex.mustSee(allowedHeading)
	got := asked.poll()
	audience := p.audience(t, hotel)
	door, listening, elsewhere := p.door(t, hotel, audience), p.door(t, hotel, audience, deaf), p.door(t, shop, audience)
	ctx, stop := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- listening.Follow(ctx) }()
	head := func(token string) http.Header {
		h := http.Header{"Authorization": {"Bearer " + asked.proof()}}
		if token != "" {
			h.Set("X-A2A-User-Delegation", "Bearer "+token)
		}
		return h
	}
	for _, v := range []*verify.Verifier{door, listening} {
		c, err := v.Call(t.Context(), head(got.AccessToken))
		if err != nil {
			t.Fatal(err)
		}
		d := c.Delegation
		if c.Agent.Issuer != p.Agent.Issuer || c.Agent.Subject != asked.user || d.User != hotel.Users[0].Subject ||
			!slices.Equal(d.Scopes, []string{"bookings:read"}) || d.Grant == "" {
			t.Errorf("%+v, %+v", c.Agent, d)
		}
	}
	if c, err := door.Call(t.Context(), head("")); err != nil || c.Delegation != nil {
		t.Errorf("without a token: %+v, %v", c, err)
	}
	if _, err := elsewhere.Call(t.Context(), head(got.AccessToken)); !errors.Is(err, verify.ErrToken) {
		t.Errorf("at the other Brand: %v", err)
	}
	if _, err := p.door(t, hotel, "https://other.example").Call(t.Context(), head(got.AccessToken)); !errors.Is(err, verify.ErrCaller) {
		t.Errorf("another Provider's: %v", err)
	}
	// Through the middleware, with the exact answers.
	served := httptest.NewServer(door.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := verify.CallFrom(r.Context())
		up, err := door.StepUp(r.Context(), c, "to move your arrival", c.Missing("bookings:read", "bookings:change")...)
		if err != nil || len(up.Metadata()) != 2 || !slices.Equal(up.Missing, []string{"bookings:change"}) || !strings.Contains(up.Link, "/b/harbor-hotel/device?user_code=") {
			t.Errorf("step-up: %+v, %v", up, err)
		}
		if _, code, ok := strings.Cut(up.Link, "user_code="); ok {
			p.secrets.keep("user code", code, strings.ReplaceAll(code, "-", ""))
		}
		// M24, P43, P45: what it did is countersigned, once.
		turn := verify.Turn{ContextID: "c1", MessageID: "m1", ScopesUsed: []string{"bookings:read"}, Acts: []verify.Act{{Tool: "bookings.list", Args: map[string]any{"from": "2026-12-24"}}}}
		first, err := door.Countersign(r.Context(), c, turn)
		again, errAgain := door.Countersign(r.Context(), c, turn)
		if err != nil || errAgain != nil || first.JWS == "" || again.JWS != first.JWS {
			t.Errorf("receipt: %v, %v", err, errAgain)
		}
		turn.Acts = nil
		if _, err := door.Countersign(r.Context(), c, turn); !errors.Is(err, verify.ErrConflict) {
			t.Errorf("another turn under the same ids: %v", err)
		}
		// Many at once, each as if alone, and then the whole conversation.
		other := turn
		other.MessageID = "m2"
		many := door.CountersignMany(r.Context(), []verify.Served{{Call: c, Turn: turn}, {Call: c, Turn: other}})
		if !errors.Is(many[0].Err, verify.ErrConflict) || many[1].Err != nil {
			t.Errorf("many: %v, %v", many[0].Err, many[1].Err)
		}
		whole, err := door.CountersignTask(r.Context(), c, "c1")
		if err != nil {
			t.Errorf("task receipt: %v", err)
		}
		bound, _, err := verify.TaskReceipt(keysOf(t, hotel), whole.JWS, []string{first.JWS, many[1].Receipt.JWS}, verify.ReceiptOptions{Brand: hotel.InterfaceURL})
		if err != nil || bound.Count != 2 || bound.ContextID != "c1" {
			t.Errorf("it binds %+v, %v", bound, err)
		}
		if _, err := door.CountersignTask(r.Context(), c, "c2"); !errors.Is(err, verify.ErrNoReceipts) {
			t.Errorf("a conversation without receipts: %v", err)
		}
		w.WriteHeader(http.StatusTeapot)
	})))
	defer served.Close()
	for _, tt := range []struct {
		head      http.Header
		status    int
		challenge string
	}{
		{head(got.AccessToken), http.StatusTeapot, ""},
		{head(got.AccessToken + "x"), http.StatusUnauthorized, `Bearer realm="a2a", error="invalid_token"`},
		{http.Header{}, http.StatusUnauthorized, `Bearer realm="a2a"`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, served.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = tt.head
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != tt.status || answer.Header.Get("WWW-Authenticate") != tt.challenge {
			t.Errorf("%d %q, want %d", answer.StatusCode, answer.Header.Get("WWW-Authenticate"), tt.status)
		}
	}

	if status := asked.post("/revoke", url.Values{"token": {got.RefreshToken}}, &struct{}{}); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	ended := time.Now()
	heads := head(got.AccessToken)
	for name, v := range map[string]*verify.Verifier{"stream": listening, "list": door} {
		for ; ; time.Sleep(20 * time.Millisecond) {
			_, err := v.Call(t.Context(), heads)
			if errors.Is(err, verify.ErrRevoked) && errors.Is(err, verify.ErrToken) {
				break
			}
			if err != nil || time.Since(ended) > 20*time.Second {
				t.Fatalf("%s, after %s: %v", name, time.Since(ended), err)
			}
		}
		t.Logf("by the %s after %s", name, time.Since(ended))
	}
	stop()
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// audience is what agents name as aud for the Brand.
func (p *product) audience(t *testing.T, b brand) (audience string) {
	t.Helper()
	const q = `SELECT p.audience FROM brands b JOIN providers p ON p.id = b.provider_id WHERE b.id = $1`
	if err := p.connect(t).QueryRow(t.Context(), q, b.ID).Scan(&audience); err != nil {
		t.Fatal(err)
	}
	return audience
}
