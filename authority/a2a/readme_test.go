package a2a_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The agent in README.md is one: it builds with nothing but Go, knows our
// signature and no other, and serves a turn.
func TestTheAgentInTheREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(code, "```")
	if !found {
		t.Fatal("there is no agent in README.md")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": code, "go.mod": "module agent\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "agent", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	d := newDoor(t)
	secret := d.point("http://" + addr + "/turn")
	agent := exec.CommandContext(t.Context(), filepath.Join(dir, "agent"))
	agent.Env = append(os.Environ(), "AGENT_ADDR="+addr, "AGENT_SECRET="+secret)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	for range 100 {
		if tried, err := d.caller.Try(t.Context(), d.Hotel.ID); err == nil && tried.Wrong == "" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	if a := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "my bookings?")); a.status != http.StatusOK || !strings.Contains(a.body, "Room 12, for guest-1") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := d.send(d.pa, "alex", "", said("m2", "", "my bookings?")); a.json.Task == nil {
		t.Errorf("without a token: %d %s", a.status, a.body)
	}
	r, err := http.Post("http://"+addr+"/turn", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unsigned call: %d", r.StatusCode)
	}
}
