package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// transmission is one push as it came (RFC 8935).
type transmission struct {
	header http.Header
	body   string
}

// ssf is a receiver of the Shared Signals Framework.
type ssf struct {
	url    string
	mu     sync.Mutex
	came   []transmission
	status int
}

func newSSF(t *testing.T) *ssf {
	t.Helper()
	s := &ssf{status: http.StatusAccepted}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.came = append(s.came, transmission{r.Header, string(body)})
		}
		w.WriteHeader(s.status)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/signals"
	return s
}

func (s *ssf) all() []transmission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.came)
}

// sets registers the receiver at the Hotel.
func (h *house) sets(t *testing.T, s *ssf) string {
	t.Helper()
	w, _, err := tenants.CreateWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Master, tenants.Site{AllowLoopback: true}, h.Hotel.ID,
		tenants.WebhookDraft{URL: s.url, Format: tenants.FormatSET})
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

// read is what a receiver reads, once the published keys verify it.
func (h *house) read(t *testing.T, tr transmission) map[string]any {
	t.Helper()
	raw, err := h.NewKeys().Verify(t.Context(), h.Hotel.ID, signing.TypSecurityEvent, tr.body)
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// R52: every change is told as a Security Event Token of CAEP where an endpoint wants
// it so: typed, signed with the Brand's key, meant for that address, with no claim that
// would let it pass for an access token, and with all that the JSON says.
func TestEveryChangeIsToldAsASecurityEvent(t *testing.T) {
	h := newHouse(t)
	hotel := newSSF(t)
	id := h.sets(t, hotel)
	grant := h.allow(t, "guest-7", "bookings:read", "account:read")
	if err := h.rules.EndScopeByUser(t.Context(), h.Hotel.ID, "guest-7", grant, "account:read"); err != nil {
		t.Fatal(err)
	}
	h.revoke(t, "guest-7", grant)
	h.drain(t, id)

	const caep = "https://schemas.openid.net/secevent/caep/event-type/"
	at := float64(h.Clock.Now().Unix())
	want := map[string]map[string]any{
		"grant.created":  {caep + "session-established": map[string]any{"event_timestamp": at}},
		"grant.narrowed": {caep + "token-claims-change": map[string]any{"event_timestamp": at, "claims": map[string]any{"scope": "bookings:read"}}},
		"grant.revoked": {caep + "session-revoked": map[string]any{
			"event_timestamp": at, "initiating_entity": "user", "reason_admin": map[string]any{"en": "revoked_by_user"},
		}},
	}
	came := hotel.all()
	if len(came) != len(want) {
		t.Fatalf("%d came", len(came))
	}
	ids := make(map[any]bool)
	for _, tr := range came {
		c := h.read(t, tr)
		message, _ := c["https://countersign.dev/event"].(map[string]any)
		kind, _ := message["type"].(string)
		if tr.header.Get("Content-Type") != "application/secevent+jwt" || tr.header.Get("Accept") != "application/json" || tr.header.Get("webhook-id") != c["jti"] {
			t.Errorf("%s: %v", kind, tr.header)
		}
		subject := map[string]any{
			"format":      "complex",
			"session":     map[string]any{"format": "opaque", "id": grant.String()},
			"user":        map[string]any{"format": "iss_sub", "iss": h.Hotel.Issuer, "sub": "guest-7"},
			"application": map[string]any{"format": "uri", "uri": authoritytest.Agent},
		}
		data, _ := message["data"].(map[string]any)
		if data["grant_id"] != grant.String() || data["seq"] == nil {
			t.Errorf("%s says %v", kind, message)
		}
		ids[c["jti"]] = true
		delete(c, "https://countersign.dev/event")
		delete(c, "jti")
		if diff := cmp.Diff(map[string]any{
			"iss": h.Hotel.Issuer, "aud": hotel.url, "iat": at, "toe": at, "sub_id": subject, "events": want[kind],
		}, c); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	if len(ids) != len(want) {
		t.Errorf("%d ids", len(ids))
	}
	// It passes for nothing else that we sign.
	for _, typ := range []string{signing.TypToken, signing.TypReceipt, signing.TypStatusList} {
		if _, err := h.NewKeys().Verify(t.Context(), h.Hotel.ID, typ, came[0].body); !errors.Is(err, signing.ErrNotOurs) {
			t.Errorf("as %s: %v", typ, err)
		}
	}
}

// R52: who brought an end about is told in CAEP's words.
func TestWhoEndedItIsTold(t *testing.T) {
	for reason, want := range map[string]string{
		"revoked_by_user": "user", "all_unticked": "user", "revoked_by_agent": "user", "expired": "policy", "idle": "policy",
		"reuse_detected": "policy", "revoked_by_admin": "admin", "revoked_by_operator": "admin", "interface_changed": "admin", "revoked_by_system": "system",
	} {
		e := authority.Event{Type: "grant.revoked", Data: json.RawMessage(`{"reason":"` + reason + `"}`)}
		raw, err := events.SecurityEvent(tenants.Receiver{}, [16]byte{1}, e, []byte(`{}`), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var set struct {
			Events map[string]struct {
				Initiator string `json:"initiating_entity"`
			}
		}
		if err := json.Unmarshal(raw, &set); err != nil {
			t.Fatal(err)
		}
		for _, claims := range set.Events {
			if claims.Initiator != want {
				t.Errorf("%s: %q, not %q", reason, claims.Initiator, want)
			}
		}
	}
}

// A test is a verification event of the Shared Signals Framework, about the endpoint.
func TestATestIsAVerificationEvent(t *testing.T) {
	e := authority.Event{Type: authority.EventTest, Data: json.RawMessage(`{"endpoint":"abc"}`)}
	raw, err := events.SecurityEvent(tenants.Receiver{ID: "abc"}, [16]byte{1}, e, []byte(`{}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var set map[string]any
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"sub_id": map[string]any{"format": "opaque", "id": "abc"},
		"events": map[string]any{"https://schemas.openid.net/secevent/ssf/event-type/verification": map[string]any{}},
	}
	if diff := cmp.Diff(want, map[string]any{"sub_id": set["sub_id"], "events": set["events"]}); diff != "" {
		t.Error(diff)
	}
}

// sealable signs as the World does until it is sealed.
type sealable struct {
	authority.Signer
	sealed bool
}

func (s *sealable) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	if s.sealed {
		return "", errors.New("sealed")
	}
	return s.Signer.Sign(ctx, brand, typ, payload)
}

// R52, R83: while nothing can be signed an event waits, the endpoint is not blamed and
// no attempt is spent, however long it lasts; and a retry has the id of the first.
func TestASecurityEventWaitsForTheSigner(t *testing.T) {
	h := newHouse(t)
	signer := &sealable{Signer: h.NewKeys(), sealed: true}
	var err error
	h.courier, err = events.NewCourier(events.Config{
		DB: h.DB, Sealer: h.Master, Signer: signer, Now: h.Clock.Now, AllowLoopback: true, Log: discard,
		Edit: h.Authority(nil).Editor(authority.ByUpkeep()),
	})
	if err != nil {
		t.Fatal(err)
	}
	hotel := newSSF(t)
	id := h.sets(t, hotel)
	grant := h.allow(t, "guest-7", "bookings:read")
	for range 15 { // more than a delivery has attempts
		if _, err := h.courier.Drain(t.Context(), h.Hotel.ID, id); err == nil {
			t.Fatal("what could not be signed is no trouble")
		}
	}
	if d := h.deliveries(t, id); len(d) != 1 || d[0].State != "pending" || len(hotel.all()) != 0 {
		t.Fatalf("%+v, %d came", d, len(hotel.all()))
	}
	if n := h.Count(t, `SELECT count(*) FROM webhook_lines WHERE failures > 0`) + h.Count(t, `SELECT tries FROM webhook_deliveries`); n != 0 {
		t.Error("the endpoint is blamed, or an attempt is spent")
	}
	signer.sealed = false
	hotel.status = http.StatusServiceUnavailable
	h.drain(t, id)
	hotel.mu.Lock()
	hotel.status = http.StatusAccepted
	hotel.mu.Unlock()
	h.Clock.Advance(time.Minute)
	h.drain(t, id)
	came := hotel.all()
	if len(came) != 2 {
		t.Fatalf("%d came", len(came))
	}
	first, second := h.read(t, came[0]), h.read(t, came[1])
	if first["jti"] != second["jti"] || first["iat"] == second["iat"] || first["toe"] != second["toe"] {
		t.Errorf("%v, then %v", first, second)
	}
	h.revoke(t, "guest-7", grant)
	h.drain(t, id)
	if last := h.read(t, hotel.all()[2]); last["jti"] == first["jti"] {
		t.Error("another event has the same id")
	}
}
