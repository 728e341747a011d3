package outfitter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/canonical"
	"countersign.dev/authority/statuslist"
	"countersign.dev/authority/verify"
	"github.com/go-jose/go-jose/v4"
)

// behind is the service and an agent, as the shop's program sees them: real keys, and
// receipts only once it signs.
type behind struct {
	*httptest.Server
	t     *testing.T
	key   *ecdsa.PrivateKey
	mu    sync.Mutex
	signs bool
	asked []map[string]any // turns, as they came
}

func newBehind(t *testing.T) *behind {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &behind{t: t, key: key}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *behind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	say := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch strings.TrimPrefix(r.URL.Path, "/support/oauth") {
	case "/agent":
		say(map[string]any{"known": true, "issuer": b.URL, "jwks_uri": b.URL + "/support/oauth/jwks.json"})
	case "/jwks.json":
		say(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: b.key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"}}})
	case "/status/0":
		list, err := statuslist.New(64, statuslist.Valid).Encode()
		if err != nil {
			b.t.Error(err)
		}
		_, _ = io.WriteString(w, b.sign("statuslist+jwt", map[string]any{
			"sub": b.URL + "/support/oauth/status/0", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
			"status_list": map[string]any{"bits": 2, "lst": list},
		}))
	case "/receipts":
		b.asked = append(b.asked, body)
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/receipts/batch":
		var results []any
		for _, one := range body["turns"].([]any) {
			turn := one.(map[string]any)
			b.asked = append(b.asked, turn)
			results = append(results, map[string]any{"status": http.StatusOK, "receipt": b.receipt(turn)})
		}
		if !b.signs {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		say(map[string]any{"results": results})
	default:
		http.NotFound(w, r)
	}
}

func (b *behind) sign(typ string, claims any) string {
	options := &jose.SignerOptions{}
	if typ != "" {
		options = options.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: b.key, KeyID: "k1"}}, options)
	if err != nil {
		b.t.Error(err)
		return ""
	}
	form, err := canonical.Of(claims)
	if err != nil {
		b.t.Error(err)
		return ""
	}
	signed, err := signer.Sign(form)
	if err != nil {
		b.t.Error(err)
		return ""
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		b.t.Error(err)
	}
	return text
}

func (b *behind) receipt(turn map[string]any) map[string]any {
	claims := map[string]any{
		"grantId": "g1", "user": "ff-1", "pa": b.URL, "brand": b.URL + "/support", "scopesUsed": turn["scopesUsed"],
		"actions": turn["actions"], "ts": time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"),
	}
	return map[string]any{"jws": b.sign("pact-receipt+jws", claims), "claims": claims}
}

// call is the agent's, for somebody who allowed it to buy.
func (b *behind) call(door *verify.Verifier) verify.Call {
	b.t.Helper()
	now := time.Now()
	issuer := b.URL + "/support/oauth"
	proof := b.sign("", map[string]any{"iss": b.URL, "aud": "urn:x", "sub": "alex", "iat": now.Unix(), "exp": now.Unix() + 300})
	token := b.sign("at+jwt", map[string]any{
		"iss": issuer, "aud": b.URL + "/support", "sub": "ff-1", "client_id": b.URL, "scope": "orders:place", "grant_id": "g1", "jti": "t1",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "status": map[string]any{"status_list": map[string]any{"idx": 0, "uri": issuer + "/status/0"}},
	})
	c, err := door.Call(b.t.Context(), http.Header{"Authorization": {"Bearer " + proof}, "X-A2a-User-Delegation": {"Bearer " + token}})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// A turn whose receipt cannot be had is offered again by the shop itself, and its reply
// is there when the message comes again. What was said is hashed with salts that stay the
// same, however often it is sent.
func TestAReceiptComesLate(t *testing.T) {
	b := newBehind(t)
	s, err := New(Config{
		Service: b.URL, Brand: "fern-and-fell", Interface: b.URL + "/support",
		Audience: "urn:x", Credential: "cs_key_secret", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	buyer, m := b.call(s.door), surface.Message{ID: "m1", Text: "Buy a head torch"}
	id, one, err := s.talks.hear(buyer, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{m.Text, "Buy a kayak"} {
		if reply, err := s.answer(t.Context(), buyer, id, one, surface.Message{ID: "m1", Text: text}); !errors.Is(err, surface.ErrAway) {
			t.Errorf("%s, %v", reply, err)
		}
	}
	if left, err := s.pending.Offer(t.Context()); left != 1 || err != nil {
		t.Errorf("%d wait, %v", left, err)
	}
	b.mu.Lock()
	b.signs = true
	b.mu.Unlock()
	if left, err := s.pending.Offer(t.Context()); left != 0 || err != nil {
		t.Errorf("%d wait, %v", left, err)
	}
	done := s.talks.look(one)
	if done.state != replied || !strings.Contains(string(done.reply), "pact.receipt") || !strings.Contains(string(done.reply), done.does.says) {
		t.Errorf("the reply is %s", done.reply)
	}
	if reply, err := s.answer(t.Context(), buyer, id, one, m); err != nil || string(reply) != string(done.reply) {
		t.Errorf("the message again: %s, %v", reply, err)
	}
	if len(b.asked) != 4 {
		t.Fatalf("%d turns were sent", len(b.asked))
	}
	if len(done.heard.salt) < 16 || len(done.says.salt) < 16 || string(done.heard.salt) == string(done.says.salt) {
		t.Error("the salts are not two of 16 bytes")
	}
	for i, turn := range b.asked {
		if turn["messageHash"] != verify.SaltedHash(done.heard.salt, m.Text) || turn["replyHash"] != verify.SaltedHash(done.says.salt, done.does.says) {
			t.Errorf("time %d: what was said is %v and %v", i, turn["messageHash"], turn["replyHash"])
		}
	}
}

// Where no more turns may wait nothing is done, and the message is heard again.
func TestNothingIsDoneWhereNoReceiptCanWait(t *testing.T) {
	b := newBehind(t)
	s, err := New(Config{
		Service: b.URL, Brand: "fern-and-fell", Interface: b.URL + "/support",
		Audience: "urn:x", Credential: "cs_key_secret", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.pending, err = verify.NewPending(verify.PendingConfig{Door: s.door, Most: 1}); err != nil {
		t.Fatal(err)
	}
	buyer := b.call(s.door)
	for i, want := range []state{acted, waiting} {
		m := surface.Message{ID: "m" + string(rune('1'+i)), Text: "Buy a head torch"}
		id, one, err := s.talks.hear(buyer, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.answer(t.Context(), buyer, id, one, m); !errors.Is(err, surface.ErrAway) {
			t.Errorf("%s: %v", m.ID, err)
		}
		if got := s.talks.look(one).state; got != want {
			t.Errorf("%s: state %d, want %d", m.ID, got, want)
		}
	}
}
