package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sentLine is a line of pa send --json.
type sentLine struct {
	Event     string          `json:"event"`
	Text      string          `json:"text"`
	ContextID string          `json:"context_id"`
	MessageID string          `json:"message_id"`
	Missing   []string        `json:"missing_scopes"`
	Link      string          `json:"verification_uri_complete"`
	Receipt   json.RawMessage `json:"receipt"`
}

// send says something to the Brand's agent, as the agent that people run.
func (p *product) send(t *testing.T, b brand, user string, more ...string) []sentLine {
	t.Helper()
	args := append([]string{"pa", "send", "--json", "--card", b.InterfaceURL, "--sub", user, "--data", p.data}, more...)
	out, exit := p.run(t, "", args...)
	if exit != 0 {
		t.Fatalf("pa send: exit %d", exit)
	}
	var lines []sentLine
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var line sentLine
		if err := d.Decode(&line); err == io.EOF { //nolint:errorlint // the decoder's own end
			return lines
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
}

// verifyReceipt checks a receipt offline, with the keys that the Brand publishes.
func (p *product) verifyReceipt(t *testing.T, b brand, receipt json.RawMessage) int {
	t.Helper()
	resp, err := http.Get(b.Issuer + "/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	keys, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"jwks.json": keys, "receipt.json": receipt} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, exit := p.run(t, "", "verify", "receipt", filepath.Join(dir, "receipt.json"), "--jwks", filepath.Join(dir, "jwks.json"), "--audience", b.InterfaceURL)
	return exit
}

// M22–M24, P43–P46, wire.md §9: a whole conversation at a hosted Brand. The agent
// is let in, says something, and keeps the receipt; it needs more, the person
// allows that at the link, and the same message is served.
func TestAConversationWithAHostedBrand(t *testing.T) {
	p := theProduct(t)
	hotel, user := p.hotel(t), userOf(t)
	agent := p.login(t, hotel, user, "bookings:read")
	alex := newPerson(t, p)
	alex.open(agent.Link)
	alex.signIn("alex")
	alex.allow()
	alex.mustSee(allowedHeading)
	if got := agent.wait(); got.Event != "approved" {
		t.Fatalf("login ended %+v", got)
	}

	said := p.send(t, hotel, user, "--text", "What is my booking?")[0]
	if said.Event != "replied" || !strings.Contains(said.Text, "room 12") || said.Receipt == nil {
		t.Fatalf("%+v", said)
	}
	if exit := p.verifyReceipt(t, hotel, said.Receipt); exit != 0 {
		t.Errorf("the receipt: exit %d", exit)
	}
	if exit := p.verifyReceipt(t, hotel, bytes.Replace(said.Receipt, []byte("bookings:read"), []byte("extras:order"), 1)); exit != 1 {
		t.Errorf("an altered receipt: exit %d", exit)
	}
	// The same message is the same reply, and the same receipt.
	again := p.send(t, hotel, user, "--text", "What is my booking?", "--context", said.ContextID, "--message", said.MessageID)[0]
	if again.Text != said.Text || string(again.Receipt) != string(said.Receipt) {
		t.Errorf("again: %+v", again)
	}

	// It needs more.
	first := p.send(t, hotel, user, "--text", "Order champagne", "--context", said.ContextID)[0]
	if first.Event != "stepup" || strings.Join(first.Missing, " ") != "extras:order" || first.Link == "" || first.Receipt != nil {
		t.Fatalf("%+v", first)
	}
	code := first.Link[strings.LastIndex(first.Link, "=")+1:]
	p.secrets.keep("user code", code, strings.ReplaceAll(code, "-", ""))
	alex.open(first.Link)
	if alex.has(`input[name="username"]`) || !alex.has(`[name=scope]`) {
		alex.signIn("alex")
	}
	alex.mustRead("I can do that once you have allowed it.", "Already allowed")
	alex.allow()
	alex.mustSee(allowedHeading)
	began := time.Now()
	lines := p.send(t, hotel, user, "--follow", "--text", "Order champagne", "--context", said.ContextID, "--message", first.MessageID)
	done := lines[len(lines)-1]
	if done.Event != "replied" || !strings.Contains(done.Text, "champagne is on its way") || done.MessageID != first.MessageID || done.Receipt == nil {
		t.Fatalf("after %s: %+v", time.Since(began), done)
	}
	if exit := p.verifyReceipt(t, hotel, done.Receipt); exit != 0 {
		t.Errorf("the second receipt: exit %d", exit)
	}
}
