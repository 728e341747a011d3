package signingtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"
)

// Vault is a real server of a test's own, on loopback, without TLS. It may be
// sealed, killed, stopped and restarted without losing anything.
type Vault struct {
	Addr       string // its URL
	RootToken  string
	UnsealKeys []string

	binary string
	config string
	log    string
	cmd    *exec.Cmd
	ended  <-chan struct{}
}

// startTimeout is generous: a start takes 0.2 s on an idle machine.
const startTimeout = 60 * time.Second

// StartVault starts a server, initialises and unseals it. It ends with the test.
func StartVault(t testing.TB) *Vault {
	t.Helper()
	v := newVault(t)
	v.Restart(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	answer, err := v.Client(t, "").Sys().InitWithContext(ctx, &api.InitRequest{SecretShares: 1, SecretThreshold: 1})
	if err != nil {
		t.Fatalf("initialise vault: %v\n%s", err, v.output())
	}
	v.RootToken, v.UnsealKeys = answer.RootToken, answer.Keys
	v.Unseal(t)
	return v
}

func newVault(t testing.TB) *Vault {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	addr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	v := &Vault{
		Addr: "http://" + addr, binary: path,
		config: filepath.Join(dir, "vault.hcl"), log: filepath.Join(dir, "vault.log"),
	}
	text := fmt.Sprintf(`
storage "file" { path = %q }
listener "tcp" {
  address     = %q
  tls_disable = true
}
api_addr      = %q
disable_mlock = true
`, filepath.Join(dir, "data"), addr, v.Addr)
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.stop)
	return v
}

// freeAddress finds a port that was free a moment ago. The server gets the same
// one at every restart.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Client returns a client that speaks to the server with the token.
func (v *Vault) Client(t testing.TB, token string) *api.Client {
	t.Helper()
	client, err := api.NewClient(&api.Config{Address: v.Addr, Timeout: startTimeout})
	if err != nil {
		t.Fatal(err)
	}
	client.ClearToken() // whatever VAULT_TOKEN says
	client.ClearNamespace()
	if token != "" {
		client.SetToken(token)
	}
	return client
}

// Restart starts the server, which is sealed then, and ends the one before.
func (v *Vault) Restart(t testing.TB) {
	t.Helper()
	v.stop()
	log, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	v.cmd = exec.Command(v.binary, "server", "-config", v.config)
	v.cmd.Stdout, v.cmd.Stderr = log, log
	v.ended, err = run(v.cmd)
	if err != nil {
		v.cmd = nil
		t.Fatalf("start vault: %v", err)
	}
	v.await(t, "answer", func(s *api.SealStatusResponse) bool { return true })
}

// Unseal opens the barrier and waits until requests are served.
func (v *Vault) Unseal(t testing.TB) {
	t.Helper()
	for _, key := range v.UnsealKeys {
		if _, err := v.Client(t, "").Sys().UnsealWithContext(t.Context(), key); err != nil {
			t.Fatalf("unseal vault: %v\n%s", err, v.output())
		}
	}
	v.await(t, "unseal", func(s *api.SealStatusResponse) bool { return !s.Sealed })
	v.await(t, "become active", func(*api.SealStatusResponse) bool {
		h, err := v.Client(t, "").Sys().HealthWithContext(t.Context())
		return err == nil && h.Initialized && !h.Sealed && !h.Standby
	})
}

// Seal closes the barrier: every request is answered 503.
func (v *Vault) Seal(t testing.TB) {
	t.Helper()
	if err := v.Client(t, v.RootToken).Sys().SealWithContext(t.Context()); err != nil {
		t.Fatalf("seal vault: %v", err)
	}
}

// Kill ends the server as kill -9 does; connections are refused from then on.
func (v *Vault) Kill() { v.stop() }

// Pause stops the process: connections are accepted, nothing is answered. It
// returns when every thread stands still; the signal alone would let one more
// answer slip out.
func (v *Vault) Pause(t testing.TB) {
	t.Helper()
	v.signal(t, syscall.SIGSTOP)
	deadline := time.Now().Add(startTimeout)
	for !stopped(v.cmd.Process.Pid) {
		if time.Now().After(deadline) {
			t.Fatal("vault does not stop")
		}
		runtime.Gosched()
	}
}

// Resume ends Pause.
func (v *Vault) Resume(t testing.TB) { v.signal(t, syscall.SIGCONT) }

func (v *Vault) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := v.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal vault: %v", err)
	}
}

func (v *Vault) stop() {
	if v.cmd == nil {
		return
	}
	_ = v.cmd.Process.Signal(syscall.SIGKILL)
	<-v.ended
	v.cmd = nil
}

// await asks until the server is as wanted. There is nobody to wait for but the
// server itself, so this one loop asks again and again.
func (v *Vault) await(t testing.TB, what string, done func(*api.SealStatusResponse) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		status, err := v.Client(t, "").Sys().SealStatusWithContext(ctx)
		if err == nil && done(status) {
			return
		}
		if err != nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-v.ended:
			t.Fatalf("vault ended before it could %s:\n%s", what, v.output())
		case <-ctx.Done():
			t.Fatalf("vault did not %s: %v\n%s", what, errors.Join(ctx.Err(), last), v.output())
		}
	}
}

func (v *Vault) output() string {
	out, err := os.ReadFile(v.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(out)
}
