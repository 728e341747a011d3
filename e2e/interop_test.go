package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/verify"
	"countersign.dev/e2e/conformance"
	"golang.org/x/oauth2"
)

// answers has the hotel's first person allow, or refuse, what the link asks.
func answers(t *testing.T, b brand, link string) {
	t.Helper()
	who := b.Users[0]
	people := &conformance.Forms{People: []conformance.Person{{Username: who.Username, Password: "demo", Subject: who.Subject}}}
	if err := people.Decide(t.Context(), link, 0, conformance.Decision{}); err != nil {
		t.Fatal(err)
	}
}

// nodeScript runs a script of e2e/interop to its end.
func nodeScript(t *testing.T, into any, stdin any, args ...string) {
	t.Helper()
	raw, err := json.Marshal(stdin)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "node", args...)
	c.Dir, c.Stdin = "interop", strings.NewReader(string(raw))
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("node %s (npm ci --prefix e2e): %v\n%s", args[0], err, complaint.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// P28, P38: an agent made of oauth4webapi and jose, which know nothing of us, gets
// a token through our metadata, refreshes it and gives it back.
func TestAJavaScriptAgent(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	agent := p.registers(t, hotel.Audience)
	raw, err := json.Marshal(agent)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "node", "agent.mjs", hotel.Issuer, "bookings:read", "profile:read")
	c.Dir = "interop"
	var complaint strings.Builder
	c.Stderr = &complaint
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(bufio.NewReader(out))
	read := func(v any) {
		t.Helper()
		if err := lines.Decode(v); err != nil {
			_ = c.Wait() // its complaint says more
			t.Fatalf("node agent.mjs (npm ci --prefix e2e): %v\n%s", err, complaint.String())
		}
	}
	if _, err := io.WriteString(in, string(raw)+"\n"); err != nil {
		t.Fatal(err)
	}
	var started struct {
		Link     string
		UserCode string `json:"user_code"`
	}
	read(&started)
	p.secrets.keep("user code", started.UserCode)
	answers(t, hotel, started.Link)
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	type claims struct {
		Aud, Sub, Scope, JTI string
		Client               string `json:"client_id"`
		Grant                string `json:"grant_id"`
	}
	var done struct {
		Errors        []string
		First, Second claims
		Scope         string
		TokenType     string `json:"token_type"`
	}
	read(&done)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, complaint.String())
	}
	if want := []string{"authorization_pending", "invalid_grant", "invalid_grant"}; !slices.Equal(done.Errors, want) {
		t.Errorf("refused with %q, not %q", done.Errors, want)
	}
	first := done.First
	if first.Aud != hotel.InterfaceURL || first.Sub != hotel.Users[0].Subject || first.Client != agent.Issuer || first.Scope != "bookings:read profile:read" {
		t.Errorf("the token says %+v", first)
	}
	if second := done.Second; second.JTI == first.JTI || second.Grant != first.Grant || second.Scope != first.Scope || done.Scope != first.Scope {
		t.Errorf("after the refresh it says %+v", second)
	}
	if !strings.EqualFold(done.TokenType, "Bearer") {
		t.Errorf("token_type %q", done.TokenType)
	}
}

// bearing puts a pa-jwt into every call of a library that has never heard of one.
type bearing struct {
	t     *testing.T
	agent *conformance.Agent
	sub   string
}

// RoundTrip implements http.RoundTripper.
func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.agent.PAJWT(b.sub))
	return http.DefaultTransport.RoundTrip(r)
}

// P28: golang.org/x/oauth2 gets a token by the device grant and refreshes it; its
// only help is an HTTP client that bears the pa-jwt.
func TestAGoAgentOfOthers(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	agent := p.registers(t, hotel.Audience)
	client := &http.Client{Transport: bearing{t, agent, "interop-go"}}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, client)
	config := &oauth2.Config{
		ClientID: agent.Issuer, Scopes: []string{"bookings:read"},
		Endpoint: oauth2.Endpoint{
			DeviceAuthURL: hotel.Issuer + "/device_authorization", TokenURL: hotel.Issuer + "/token", AuthStyle: oauth2.AuthStyleInParams,
		},
	}
	started, err := config.DeviceAuth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.secrets.keep("user code", started.UserCode)
	p.secrets.keep("device code", started.DeviceCode)
	answers(t, hotel, started.VerificationURIComplete)
	token, err := config.DeviceAccessToken(ctx, started)
	if err != nil {
		t.Fatal(err)
	}
	first := p.holds(t, hotel, agent, token)
	token.Expiry = time.Now().Add(-time.Minute) // so that the library refreshes
	next, err := config.TokenSource(ctx, token).Token()
	if err != nil {
		t.Fatal(err)
	}
	second := p.holds(t, hotel, agent, next)
	if next.RefreshToken == token.RefreshToken || first.ID == second.ID || first.Grant != second.Grant {
		t.Error("the refresh brought nothing new, or another grant")
	}
	if _, err := config.DeviceAccessToken(ctx, started); err == nil {
		t.Error("the code was paid twice")
	}
}

// holds verifies a token that a library of others brought.
func (p *product) holds(t *testing.T, b brand, agent *conformance.Agent, token *oauth2.Token) verify.Delegation {
	t.Helper()
	p.secrets.keep("token", token.AccessToken, token.RefreshToken)
	d, _, err := verify.Token(keysOf(t, b), token.AccessToken, verify.Options{Issuer: b.Issuer, Audience: b.InterfaceURL, Agent: agent.Issuer})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// keysOf is what the Brand's tokens and receipts are verified with.
func keysOf(t *testing.T, b brand) verify.Keys {
	t.Helper()
	resp, err := http.Get(b.Issuer + "/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := verify.ParseKeys(raw)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// receipt is what a turn under the token leaves.
func (p *product) receipt(t *testing.T, b brand, token, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"message": map[string]any{
		"messageId": text, "role": "ROLE_USER", "parts": []any{map[string]string{"text": text}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.InterfaceURL+"/message:send", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.proof(t, b, userOf(t)))
	req.Header.Set("X-A2A-User-Delegation", "Bearer "+token)
	req.Header.Set("Content-Type", "application/a2a+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Message struct {
			Metadata struct {
				Receipt struct{ JWS string } `json:"pact.receipt"`
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || said.Message.Metadata.Receipt.JWS == "" {
		t.Fatalf("%s: no receipt: %v", resp.Status, err)
	}
	return said.Message.Metadata.Receipt.JWS
}

// P28, P43: jose, which is not ours, verifies what we sign with the keys we
// publish, and refuses it when a single character is another.
func TestJoseVerifiesWhatWeSign(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	asked := p.ask(t, hotel, userOf(t), "bookings:read")
	answers(t, hotel, asked.Link)
	token := asked.poll().AccessToken
	var said struct {
		Payload  struct{ Sub, Scope string }
		Keys     int
		Receipts []struct {
			User, Brand string
			ScopesUsed  []string
		}
		List    struct{ TTL int }
		Refused map[string]string
	}
	in := struct {
		Token    string   `json:"token"`
		Receipts []string `json:"receipts"`
	}{token, []string{p.receipt(t, hotel, token, "Which room is mine?"), p.receipt(t, hotel, token, "Hello")}}
	nodeScript(t, &said, in, "verify.mjs", hotel.Issuer, hotel.InterfaceURL)
	if said.Payload.Sub != hotel.Users[0].Subject || said.Payload.Scope != "bookings:read" || said.Keys == 0 || said.List.TTL == 0 {
		t.Errorf("%+v", said)
	}
	if len(said.Receipts) != 2 || said.Receipts[0].User != said.Payload.Sub || said.Receipts[1].Brand != hotel.InterfaceURL ||
		!slices.Equal(said.Receipts[0].ScopesUsed, []string{"bookings:read"}) {
		t.Errorf("the receipts say %+v", said.Receipts)
	}
	for what, code := range map[string]string{
		"receipt 0": "ERR_JWT_CLAIM_VALIDATION_FAILED", "tampered receipt 1": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
		"other claims": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED", "another signature": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
		"another audience": "ERR_JWT_CLAIM_VALIDATION_FAILED", "too late": "ERR_JWT_EXPIRED",
	} {
		if said.Refused[what] != code {
			t.Errorf("%s: refused as %q", what, said.Refused[what])
		}
	}
}
