package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority/events/eventstest"
)

// supporter is a Brand's agent that knows whether a call is signed.
type supporter struct {
	*httptest.Server
	mu      sync.Mutex
	answer  string
	calls   int
	checked func(secret string) bool
}

// says is what it answers from now on.
func (s *supporter) says(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *supporter) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// signed is whether the last call was signed with the secret.
func (s *supporter) signed(secret string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checked(secret)
}

func newSupporter(t *testing.T) *supporter {
	t.Helper()
	s := &supporter{answer: `{"text":"Hello."}`}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls++
		s.checked = func(secret string) bool { return eventstest.Verify(secret, r.Header, body, time.Now()) == nil }
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// Where a Brand's agent is, from the shell: it waits for an owner unless the
// operator does it, the secret is shown once, and a call shows whether it works.
func TestAnAgentsEndpointFromTheShell(t *testing.T) {
	b, agent := newBench(t), newSupporter(t)
	run := func(want int, line string) string {
		t.Helper()
		words := append([]string{"endpoint"}, strings.Fields(line)...)
		out, errs := b.run(want, append(words, "--brand", "harbor-hotel", "--master-key-file", b.keyFile)...)
		return out + errs
	}
	says := func(want int, line, text string) {
		t.Helper()
		if said := run(want, line); !strings.Contains(said, text) {
			t.Errorf("endpoint %s: %q, want %q", line, said, text)
		}
	}
	places := func() int { return b.Count(t, `SELECT count(*) FROM agent_endpoints`) }
	for _, line := range []string{"show", "check", "rotate", "rotate --as-operator"} {
		says(1, line, "has not said where its agent is")
	}
	for _, as := range []string{"", " --as-operator"} {
		says(1, "set --url "+agent.URL+as, "no address that we call")
	}
	says(0, "set --url https://hotel.example/turn", "(agent_endpoint.set) waits for an owner")
	if places() != 0 {
		t.Error("it did not wait")
	}

	secret := strings.TrimSpace(run(0, "set --as-operator --allow-loopback --url "+agent.URL))
	if !strings.HasPrefix(secret, "whsec_") || strings.ContainsAny(secret, " \n") {
		t.Fatalf("the secret: %q", secret)
	}
	if again := run(0, "set --as-operator --allow-loopback --url "+agent.URL); again != "" {
		t.Errorf("the same again: %q", again)
	}
	if shown := run(0, "show"); shown != agent.URL+"\n" {
		t.Errorf("shown: %q", shown)
	}
	says(1, "check", "could not be reached")
	if agent.called() != 0 {
		t.Error("a private address was called")
	}
	says(0, "check --allow-loopback", ": Hello.")
	if !agent.signed(secret) {
		t.Error("the call was not signed with the secret")
	}
	agent.says(`{"text":"Hello.","scopesUsed":["bookings:read"]}`)
	says(1, "check --allow-loopback", "the test gave it none")
	agent.says(`Hello.`)
	says(1, "check --allow-loopback", "no good answer")
	agent.says(`{"text":"Hello."}`)

	says(2, "rotate --at-once", "--at-once is for --as-operator")
	says(0, "rotate", "(agent_endpoint.rotate) waits for an owner")
	run(0, "check --allow-loopback")
	if !agent.signed(secret) {
		t.Error("the secret changed without an owner")
	}
	second := strings.TrimSpace(run(0, "rotate --as-operator"))
	says(0, "show", "the former secret signs too until")
	run(0, "check --allow-loopback")
	if second == secret || !agent.signed(secret) || !agent.signed(second) {
		t.Error("both secrets sign for a day")
	}
	third := strings.TrimSpace(run(0, "rotate --as-operator --at-once"))
	run(0, "check --allow-loopback")
	if shown := run(0, "show"); shown != agent.URL+"\n" || agent.signed(secret) || agent.signed(second) || !agent.signed(third) {
		t.Errorf("at once: %q", shown)
	}

	says(0, "remove", "waits for an owner")
	if places() != 1 {
		t.Error("taken away without an owner")
	}
	if said := run(0, "remove --as-operator"); said != "" || places() != 0 {
		t.Errorf("%q", said)
	}
	for event, want := range map[string]int{"agent_endpoint.set": 1, "agent_endpoint.secret_rotated": 2, "agent_endpoint.removed": 1} {
		if n := b.Count(t, `SELECT count(*) FROM audit_events WHERE event = $1 AND actor = 'operator' AND channel = 'cli'`, event); n != want {
			t.Errorf("%s stands %d times in the trail, want %d", event, n, want)
		}
	}
	for _, line := range []string{"show", "check", "rotate", "remove", "remove --as-operator", "set --url https://x.example/", "set --as-operator --url https://x.example/"} {
		words := append([]string{"endpoint"}, strings.Fields(line)...)
		if out, errs := b.run(1, append(words, "--brand", "nobody", "--master-key-file", b.keyFile)...); out != "" || !strings.Contains(errs, "no such brand") {
			t.Errorf("%s of nobody: %q, %q", line, out, errs)
		}
	}
}

// A Brand's file says where its agent is. What differs is shown first, an owner is
// asked, and an address that cannot be stops the whole file.
func TestAFileSaysWhereTheAgentIs(t *testing.T) {
	b := newBench(t)
	apply := func(want int, text string, flags ...string) string {
		t.Helper()
		line := append([]string{"brand", "apply", "-f", b.file("brand: harbor-hotel\n" + text), "--master-key-file", b.keyFile}, flags...)
		out, errs := b.run(want, line...)
		return out + errs
	}
	places := func(url string) int {
		return b.Count(t, `SELECT count(*) FROM agent_endpoints WHERE url = $1`, url)
	}
	const at = "https://hotel.example/turn"
	const there = "agent_endpoint: " + at + "\n"
	for _, bad := range []string{"http://hotel.example/turn", "https://10.0.0.1/", "https://u:p@hotel.example/", "hotel"} {
		for _, flags := range [][]string{nil, {"--yes"}, {"--yes", "--as-operator"}} {
			if said := apply(1, "settings: {name: Harbour}\nagent_endpoint: "+bad+"\n", flags...); !strings.Contains(said, "no address that we call") {
				t.Errorf("%s %v: %q", bad, flags, said)
			}
		}
	}
	if n := b.Count(t, `SELECT count(*) FROM audit_events`); n != 0 {
		t.Errorf("half of a file was made so: %d facts", n)
	}
	if said := apply(0, there); !strings.Contains(said, `url: "" → "`+at+`"`) || !strings.Contains(said, "with a new secret") || !strings.Contains(said, "nothing has changed") {
		t.Errorf("the difference: %q", said)
	}
	if said := apply(0, there, "--yes"); !strings.Contains(said, "waits for an owner") || strings.Contains(said, "whsec_") || places(at) != 0 {
		t.Errorf("%q", said)
	}
	if said := apply(0, there, "--yes", "--as-operator"); strings.Count(said, "whsec_") != 1 || places(at) != 1 {
		t.Errorf("%q", said)
	}
	for _, same := range []string{there, ""} { // what is left out stays
		if said := apply(0, same, "--yes", "--as-operator"); !strings.Contains(said, "as the file says") || places(at) != 1 {
			t.Errorf("%q: %q", same, said)
		}
	}
	shown, _ := b.run(0, "brand", "show", "--brand", "harbor-hotel")
	if !strings.Contains(shown, there) {
		t.Errorf("shown:\n%s", shown)
	}
	if said := apply(0, "agent_endpoint: \"\"\n", "--yes"); !strings.Contains(said, "waits for an owner") || places(at) != 1 {
		t.Errorf("%q", said)
	}
	if apply(0, "agent_endpoint: \"\"\n", "--yes", "--as-operator"); places(at) != 0 {
		t.Error("it was not taken away")
	}
}
