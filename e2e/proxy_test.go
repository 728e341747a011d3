package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign.dev/deploy/proxy"
)

// What the dashboard gives for nginx is read by a real nginx and forwards what it
// should: three paths, with the headers that are needed and no other.
func TestNginxForwardsWhatBelongsToTheAuthority(t *testing.T) {
	behind := newBehind(httptest.NewTLSServer)
	defer behind.Close()
	folder := t.TempDir()
	behind.isForwardedTo(t, runNginx(t, folder, forwarding(t, folder, behind)))
}

// And what it gives for Caddy, by a real Caddy.
func TestCaddyForwardsWhatBelongsToTheAuthority(t *testing.T) {
	behind := newBehind(httptest.NewServer)
	defer behind.Close()
	// The one site is in the block; here it listens elsewhere, and without TLS.
	before, block, found := strings.Cut(behind.snippets(t)[2].Text, "a2a.lake.example {\n")
	if !found {
		t.Fatal("no block for the site")
	}
	front := runCaddyAround(t, before, strings.TrimSuffix(strings.TrimSpace(block), "}"))
	behind.isForwardedTo(t, front, "User-Agent", "Accept-Encoding")
}

// behind plays the service behind a proxy, and remembers what came.
type behind struct {
	*httptest.Server
	mu   sync.Mutex
	came []*http.Request
}

func newBehind(start func(http.Handler) *httptest.Server) *behind {
	b := &behind{}
	b.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Set("Body", string(body))
		b.mu.Lock()
		b.came = append(b.came, r)
		b.mu.Unlock()
		w.WriteHeader(http.StatusTeapot)
	}))
	return b
}

// isForwardedTo: harmless are headers that may come, too.
func (b *behind) isForwardedTo(t *testing.T, front string, harmless ...string) {
	t.Helper()
	last := func(method, path, body string) (int, *http.Request) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+front+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer proof", "Content-Type": "application/x-www-form-urlencoded", "Last-Event-ID": "7", "If-None-Match": `"x"`,
			"Countersign-Subject": "guest-1", "countersign-Anything": "x", "Cookie": "a=b", "X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1",
		} {
			r.Header.Set(name, value)
		}
		b.mu.Lock()
		b.came = nil
		b.mu.Unlock()
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.came) == 0 {
			return resp.StatusCode, nil
		}
		return resp.StatusCode, b.came[0]
	}
	// As large as a batch of turns may be: what is too large, the service says.
	batch := strings.Repeat("x", 4<<20)
	status, got := last(http.MethodPost, "/help/oauth/receipts/batch", batch)
	if status != http.StatusTeapot || got == nil || got.Header.Get("Body") != batch {
		t.Errorf("a batch of 4 MiB: %d", status)
	}
	for path, want := range map[string]string{
		"/help/oauth/token":                                  "/a2a/lake/oauth/token",
		"/help/oauth/events?last=7":                          "/a2a/lake/oauth/events?last=7",
		"/help/oauth/.well-known/oauth-authorization-server": "/a2a/lake/oauth/.well-known/oauth-authorization-server",
		"/.well-known/oauth-authorization-server/help/oauth": "/.well-known/oauth-authorization-server/a2a/lake/oauth",
		"/help/.well-known/agent-card.json":                  "/a2a/lake/.well-known/agent-card.json",
		"/help/oauthother":                                   "",
		"/":                                                  "",
		"/help/messages":                                     "",
		"/.well-known/oauth-authorization-server/help/oauthmore": "",
	} {
		status, got := last(http.MethodPost, path, "device_code=1")
		if want == "" {
			if got != nil {
				t.Errorf("%s was forwarded to %s", path, got.URL)
			}
			continue
		}
		if got == nil || got.URL.String() != want || status != http.StatusTeapot {
			t.Errorf("%s: %d, %v, want %s", path, status, got, want)
			continue
		}
		if got.Host != b.Listener.Addr().String() || got.Header.Get("Body") != "device_code=1" {
			t.Errorf("%s: Host %q with body %q", path, got.Host, got.Header.Get("Body"))
		}
		for name := range got.Header {
			switch name {
			case "Authorization", "Content-Type", "Content-Length", "Last-Event-Id", "If-None-Match", "Accept", "Body":
			default:
				if !slices.Contains(harmless, name) {
					t.Errorf("%s: the header %s was passed on", path, name)
				}
			}
		}
		for _, name := range []string{"Authorization", "Content-Type", "Last-Event-Id", "If-None-Match"} {
			if got.Header.Get(name) == "" {
				t.Errorf("%s: the header %s was lost", path, name)
			}
		}
	}
}

func (b *behind) snippets(t *testing.T) []proxy.Snippet {
	t.Helper()
	all, err := proxy.Snippets(b.URL, "lake", "https://a2a.lake.example/help")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// forwarding is what an operator would put into the server block, with the file
// that it includes written into the folder.
func forwarding(t *testing.T, folder string, b *behind) string {
	t.Helper()
	all := b.snippets(t)
	headers := filepath.Join(folder, "countersign-headers.conf")
	// The one certificate that this test's service has is for another name.
	common := strings.Replace(all[1].Text, "proxy_ssl_verify on;", "proxy_ssl_verify off;", 1)
	if err := os.WriteFile(headers, []byte(common), 0o644); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(all[0].Text, "/etc/nginx/countersign-headers.conf", headers)
}

// runNginx has a real nginx serve what is in a server block, and returns where.
func runNginx(t *testing.T, folder, server string) string {
	t.Helper()
	bin, err := exec.LookPath("nginx")
	if err != nil {
		bin = "/usr/sbin/nginx" // Debian keeps it off an ordinary user's path
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatal("nginx is missing. As root: apt-get install --no-install-recommends nginx-light")
	}
	front, file := closedPort(t), filepath.Join(folder, "nginx.conf")
	main := fmt.Sprintf(`worker_processes 1; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_buffer_size 5m; # root's worker is nobody, whom the folder does not let in
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen %[2]s;
		location / { return 404; }
		%[3]s
	}
}
`, folder, front, server)
	if err := os.WriteFile(file, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin, "-t", "-p", folder, "-c", file).CombinedOutput(); err != nil {
		t.Fatalf("nginx does not understand it: %v\n%s", err, out)
	}
	begin(t, exec.Command(bin, "-p", folder, "-c", file, "-g", "daemon off;"), front)
	return front
}

// begin starts a proxy, waits until it listens, and ends it with the test.
func begin(t *testing.T, proxy *exec.Cmd, front string) {
	t.Helper()
	var said strings.Builder
	proxy.Stderr = &said
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Process.Signal(syscall.SIGTERM); _ = proxy.Wait() })
	awaitPort(t, front, &said)
}

func awaitPort(t *testing.T, at string, said *strings.Builder) {
	t.Helper()
	const patience, pause = time.Minute, 50 * time.Millisecond
	for began := time.Now(); time.Since(began) < patience; time.Sleep(pause) {
		c, err := net.DialTimeout("tcp", at, 100*time.Millisecond)
		if err == nil {
			_ = c.Close()
			return
		}
	}
	t.Fatalf("the proxy does not listen\n%s", said)
}
