package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/tenants"
)

// supportAgent is the demo hotel's own agent: it understands a few words, uses no
// language model, and shows what a Brand's engineer has to write.
type supportAgent struct {
	url string
	mu  sync.Mutex
	key []byte // of the calls' signatures
}

// skills are what the agent can do, by a word of the message, and what it needs.
var skills = []struct {
	word, scope, tool, says string
	euros                   float64 // what it charges
}{
	{"cancel", "bookings:change", "bookings.cancel", "Your booking of Friday is cancelled. Call the front desk within 24 hours to have it back.", 0},
	{"change", "bookings:change", "bookings.change", "Your booking is moved by a day: Saturday to Monday, room 12.", 0},
	{"order", "extras:order", "extras.order", "A bottle of champagne is on its way to room 12, and on your bill.", 95},
	{"breakfast", "extras:order", "extras.order", "Breakfast comes to room 12 at eight, and is on your bill.", 18},
	{"who am i", "profile:read", "profile.read", "You are a guest of ours since 2019, and your number is on file.", 0},
	{"book", "bookings:read", "bookings.list", "You have one booking: Friday to Sunday, room 12, 240 euros.", 0},
	{"room", "bookings:read", "bookings.list", "Your room is number 12, from Friday to Sunday.", 0},
}

func (s *supportAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const largest = 1 << 20
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largest))
	if err != nil || !s.signed(r.Header, body) {
		http.Error(w, "not signed by Countersign", http.StatusUnauthorized)
		return
	}
	var t a2a.Turn
	if err := json.Unmarshal(body, &t); err != nil {
		http.Error(w, "not a turn", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answerAs(t))
}

// answerAs is the whole wit of the agent. It asks before it acts.
func answerAs(t a2a.Turn) a2a.Answer {
	if t.Type == "test" {
		return a2a.Answer{Text: "Harbor Hotel's agent is here."}
	}
	said := strings.ToLower(t.Text)
	for _, can := range skills {
		if !strings.Contains(said, can.word) {
			continue
		}
		if !slices.Contains(t.Scopes, can.scope) {
			return a2a.Answer{Text: "I can do that once you have allowed it.", Missing: []string{can.scope}}
		}
		if !affordable(can.euros, t.Details) {
			return a2a.Answer{Text: fmt.Sprintf("That costs %.0f euros, and you allowed less. I have ordered nothing.", can.euros)}
		}
		args, _ := json.Marshal(map[string]string{"guest": t.User.Sub}) // a text
		return a2a.Answer{
			Text: can.says, ScopesUsed: []string{can.scope}, Actions: []a2a.Action{{Tool: can.tool, Args: args}},
		}
	}
	return a2a.Answer{Text: "Welcome to Harbor Hotel. Ask me about your booking, or to change, cancel or order something."}
}

// affordable keeps to what the person allowed more exactly. The demo remembers no
// bill: each charge is measured by itself.
func affordable(euros float64, details []json.RawMessage) bool {
	if euros == 0 {
		return true
	}
	for _, one := range details {
		var limit struct {
			Type     string
			Amount   float64
			Currency string
			Until    string
		}
		if json.Unmarshal(one, &limit) != nil || limit.Type != stayCharge.Type {
			return false // a bound that we do not know is none to pass over
		}
		late := limit.Until != "" && time.Now().UTC().Format(time.DateOnly) > limit.Until
		if late || limit.Currency != "EUR" || euros > limit.Amount {
			return false
		}
	}
	return true
}

// signed checks a call as Standard Webhooks says: a MAC of id, time and body,
// made a short while ago.
func (s *supportAgent) signed(h http.Header, body []byte) bool {
	const tolerance = 5 * time.Minute
	at, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > tolerance {
		return false
	}
	s.mu.Lock()
	mac := hmac.New(sha256.New, s.key)
	known := len(s.key) > 0
	s.mu.Unlock()
	_, _ = io.WriteString(mac, h.Get("Webhook-Id")+"."+h.Get("Webhook-Timestamp")+".")
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return known && slices.ContainsFunc(strings.Fields(h.Get("Webhook-Signature")), func(given string) bool {
		return hmac.Equal([]byte(given), []byte(want))
	})
}

// startSupportAgent serves the hotel's agent.
func (d *devServer) startSupportAgent(ctx context.Context, ports *ports) (*supportAgent, error) {
	l, err := ports.listen("support-" + string(demoHotel))
	if err != nil {
		return nil, err
	}
	s := &supportAgent{url: "http://127.0.0.1:" + portOf(l) + "/turn"}
	mux := http.NewServeMux()
	mux.Handle("POST /turn", s)
	d.serve(ctx, l, mux)
	return s, nil
}

// employ has the hotel's turns forwarded to the agent, which gets a secret of its
// own at every start.
func (p *parts) employ(ctx context.Context, s *supportAgent) error {
	edit := p.authority.Editor(authority.ByOperator())
	secret, err := tenants.SetAgentEndpoint(ctx, edit, p.sealer, p.site(), demoHotel, s.url)
	if err == nil && secret == "" {
		secret, err = tenants.RotateAgentSecret(ctx, p.db, edit, p.sealer, demoHotel, 0)
	}
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
	return nil
}
