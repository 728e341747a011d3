package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
)

// process is the product, started as an operator starts it.
type process struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	log   bytes.Buffer
	ended chan error
}

// Write implements io.Writer for what the process prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asProduct+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // most have ended before
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(args[:1], ""), p.said())
		}
	})
	return p
}

// finish waits until the process ends, which it must do well.
func (p *process) finish(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
}

// replica is one instance of the service, at an address of its own.
type replica struct {
	*process
	url string
}

func serveAt(t *testing.T, w *authoritytest.World, master string, more ...string) *replica {
	t.Helper()
	addr := freeAddress(t)
	return &replica{launch(t, append([]string{
		"serve", "--addr", addr, "--public-url", authoritytest.PublicURL,
		"--database-url", w.DB.Pool().Config().ConnString(), "--master-key-file", master,
	}, more...)...), "http://" + addr}
}

// status is what the replica answers; 0: it does not.
func (r *replica) status(path string) int {
	resp, err := http.Get(r.url + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// await waits until the path is answered so.
func (r *replica) await(t *testing.T, path string, status int) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); r.status(path) != status; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s is answered %d, not %d", path, r.status(path), status)
		}
	}
}

// sealedWorld is a world of the real clock whose master key is in a file.
func sealedWorld(t *testing.T) (*authoritytest.World, string) {
	t.Helper()
	w := authoritytest.NewAt(t, time.Now())
	// The keys of the world are sealed under another master key than the file's; the
	// service makes its own.
	w.Exec(t, `DELETE FROM local_keys`)
	w.Exec(t, `DELETE FROM signing_keys`)
	return w, filepath.Join(t.TempDir(), "master.key")
}

// B111: while a migration is at work the instances of the version before go on, and
// those of this version wait: alive, unready, with one line in the log. When it is
// done they open, and none of them was started twice.
func TestReplicasWaitForAMigration(t *testing.T) {
	w, master := sealedWorld(t)
	before := serveAt(t, w, master)
	before.await(t, "/readyz", http.StatusOK)
	w.Exec(t, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	long, err := w.Owner.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer long.Release()
	if _, err := long.Exec(t.Context(), `SELECT pg_advisory_lock(4097083626)`); err != nil { // a migration of 20 minutes
		t.Fatal(err)
	}
	owner := w.Owner.Config().ConnString()
	migrators := []*process{launch(t, "migrate", "--database-url", owner), launch(t, "migrate", "--database-url", owner)}
	replicas := make([]*replica, 3)
	for i := range replicas {
		replicas[i] = serveAt(t, w, master)
	}
	for _, r := range replicas {
		r.await(t, "/readyz", http.StatusServiceUnavailable)
	}
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if got := before.status("/readyz"); got != http.StatusOK {
			t.Fatalf("the version before answers %d", got)
		}
		for _, r := range replicas {
			for path, want := range map[string]int{"/livez": 200, "/healthz": 200, "/readyz": 503, "/": 503, "/a2a/harbor-hotel/oauth/token": 503} {
				if got := r.status(path); got != want {
					t.Fatalf("%s is answered %d, not %d", path, got, want)
				}
			}
		}
	}
	if _, err := long.Exec(t.Context(), `SELECT pg_advisory_unlock(4097083626)`); err != nil {
		t.Fatal(err)
	}
	for _, m := range migrators {
		m.finish(t)
		if n := strings.Count(m.said(), "another migrator is at work"); n > 2 { // for our files, and the queue's
			t.Errorf("a migrator said %d times that it waits", n)
		}
	}
	if n := w.Count(t, `SELECT count(*) - count(DISTINCT version_id) FROM goose_db_version`); n != 0 {
		t.Errorf("%d steps were done twice", n)
	}
	for _, r := range replicas {
		r.await(t, "/readyz", http.StatusOK)
		if n := strings.Count(r.said(), "waiting, unready"); n != 1 {
			t.Errorf("it said %d times that it waits", n)
		}
	}
	for _, r := range append(replicas, before) {
		if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	for _, r := range append(replicas, before) {
		r.finish(t)
	}
}

// An instance that waits ends when it is told to.
func TestAWaitingReplicaStops(t *testing.T) {
	w, master := sealedWorld(t)
	w.Exec(t, `REVOKE SELECT ON goose_db_version FROM countersign_app`) // as before there was this question
	r := serveAt(t, w, master)
	r.await(t, "/readyz", http.StatusServiceUnavailable)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
}

// B113: who is told to stop says first that nobody is to be sent here, serves
// whoever comes all the same, and finishes what is under way: a Brand's question
// and a person's answer.
func TestSIGTERMFinishesWhatIsUnderWay(t *testing.T) {
	w, master := sealedWorld(t)
	r := serveAt(t, w, master, "--stop-after", "1500ms")
	r.await(t, "/readyz", http.StatusOK)
	code, key, errs := typed(t, "apikey", "create", "--brand", "harbor-hotel", "--rights", "introspect", "--as-operator", "--database-url", w.DB.Pool().Config().ConnString())
	if code != 0 {
		t.Fatal(errs)
	}
	key = strings.TrimSpace(key)
	held, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `LOCK TABLE api_keys, code_attempts IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	const each = 10
	answers := make(chan string, 2*each)
	send := func(path, authorization string, form url.Values) {
		req, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(form.Encode()))
		if err != nil {
			answers <- err.Error()
			return
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", authoritytest.PublicURL)
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		answers <- fmt.Sprint(path, " ", resp.StatusCode)
	}
	for range each {
		go send("/a2a/harbor-hotel/oauth/introspect", "Bearer "+key, url.Values{"token": {"x"}})
		go send("/b/harbor-hotel/device", "", url.Values{"user_code": {"BCDF-GHJK"}})
	}
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for late := time.Now().Add(2 * time.Second); w.Count(t, waiting) < 2*each-4 && time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
	}
	if n := w.Count(t, waiting); n < each {
		t.Errorf("only %d calls are under way", n)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.await(t, "/readyz", http.StatusServiceUnavailable)
	if got := r.status("/b/harbor-hotel/device"); got != http.StatusOK {
		t.Errorf("who came before the proxy knew was answered %d", got)
	}
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 * each {
		select {
		case a := <-answers:
			if a != "/a2a/harbor-hotel/oauth/introspect 200" && a != "/b/harbor-hotel/device 422" { // a code nobody was given
				t.Errorf("under way: %s", a)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a call under way was never answered")
		}
	}
	r.finish(t)
}

// freeAddress is one at which nobody listened a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
