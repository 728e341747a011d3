package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/deploy/proxy"
)

// echo is a Brand's own agent, which believes its proxy.
type echo struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.seen = append(e.seen, r)
		e.mu.Unlock()
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(body)
	}))
	t.Cleanup(e.Close)
	return e
}

// last is the call that reached the agent; nil: none did.
func (e *echo) last() *http.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen
	e.seen = nil
	if len(seen) == 0 {
		return nil
	}
	return seen[len(seen)-1]
}

// identity is what the agent believes of the caller.
var identity = []string{"Agent", "Agent-Subject", "User", "Scopes", "Grant", "Token", "Expires", "Details"}

// forged are headers of somebody who would like to be believed: every name, in
// every spelling that some agent takes for it.
func forged() string {
	var all strings.Builder
	for _, name := range append(identity, "Authorization") {
		for _, spelt := range []string{
			"Countersign-" + name, "countersign-" + strings.ToLower(name), "COUNTERSIGN-" + strings.ToUpper(name),
			"Countersign_" + strings.ReplaceAll(name, "-", "_"), "countersign-" + strings.ReplaceAll(strings.ToLower(name), "-", "_"),
			"Countersign." + strings.ReplaceAll(name, "-", "."), "Countersign~" + strings.ReplaceAll(name, "-", "_"),
		} {
			fmt.Fprintf(&all, "%s: mallory\r\n%[1]s: mallory again\r\n", spelt)
		}
	}
	return all.String()
}

// hopByHop are headers by which a caller would have a proxy take out what it has set
// itself (RFC 9110 §7.6.1), or leave HTTP.
func hopByHop() map[string]string {
	all := map[string]string{
		"an upgrade":                 "Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"every other hop-by-hop one": "",
	}
	names := []string{"Authorization", "X-A2A-User-Delegation"}
	for _, name := range identity {
		names = append(names, "Countersign-"+name)
	}
	list := strings.Join(names, ", ")
	for _, name := range append(names, list) {
		all["Connection: "+name] = "Connection: close, " + name + "\r\n"
		all["connection: "+name] = "connection: " + strings.ToLower(name) + "\r\n"
		all["Connection: "+name+", behind another"] = "Connection: close\r\nConnection: " + name + "\r\n"
	}
	for _, other := range []string{"Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade"} {
		all["every other hop-by-hop one"] += other + ": " + list + "\r\n"
	}
	return all
}

// send sends a call byte for byte, as no client library would.
func send(t *testing.T, front, path, heads string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", front)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const body = `{"message":"hello"}`
	if !strings.Contains(heads, "Connection: close") {
		heads += "Connection: close\r\n"
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/a2a+json\r\nContent-Length: %d\r\n%s\r\n%s",
		path, front, len(body), heads, body)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return answer
}

// P41, M7, M18 and M21 through a real nginx, a real Caddy, and a real Traefik where
// there is one, configured as the dashboard says, in front of a Brand's agent and
// with the real service behind: the agent hears who calls from the service alone,
// whatever the caller says.
func TestAProxyBelievesTheServiceAlone(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	// With everything that an agent can be told of a caller.
	const scopes, details = "bookings:read bookings:change extras:order", `[{"type":"stay_charge","amount":200,"currency":"EUR"}]`
	asked := &request{t: t, product: p, brand: hotel, user: userOf(t)}
	if status := asked.post("/device_authorization", url.Values{"scope": {scopes}, "authorization_details": {details}}, asked); status != http.StatusOK {
		t.Fatalf("asked: %d", status)
	}
	p.secrets.keep("user code", asked.UserCode, strings.ReplaceAll(asked.UserCode, "-", ""))
	p.secrets.keep("device code", asked.DeviceCode)
	alex := newPerson(t, p)
	alex.reachQuestion(asked.Link, "alex")
	alex.allow()
	alex.mustSee(allowedHeading)
	got := asked.poll()
	agent := newEcho(t)
	closed := closedPort(t)
	for _, guard := range []struct {
		name  string
		begin func(t *testing.T, service, key string, agent *echo) string
		away  int  // what the proxy says where nobody can be asked
		first bool // what Connection names is gone before the service is asked, and it judges what is left
	}{
		{"nginx", nginxGuard, http.StatusServiceUnavailable, false},
		{"Caddy", caddyGuard, http.StatusBadGateway, false},
		{"Traefik", traefikGuard, http.StatusInternalServerError, true},
	} {
		t.Run(guard.name, func(t *testing.T) {
			front := guard.begin(t, p.PublicURL, hotel.APIKey, agent)
			g := guarded{t: t, front: front, agent: agent, issuer: p.Agent.Issuer, user: asked.user}
			proof := g.bearer("Authorization", asked.proof())
			token := g.bearer("X-A2A-User-Delegation", got.AccessToken)
			for what, heads := range map[string]string{"honest": "", "forged before": forged()} {
				g.isSeen(what+", with a token", heads+proof+token, "guest-1001", scopes)
				g.isSeen(what+", without", heads+proof, "", "")
			}
			for what, heads := range hopByHop() {
				if low := strings.ToLower(heads); guard.first && (strings.Contains(low, "authorization") || strings.Contains(low, "x-a2a-user-delegation")) {
					send(t, front, "/a2a/harbor-hotel/message:send", proof+token+heads)
					if r := agent.last(); r != nil && (r.Header.Get("Countersign-User") == "") != (r.Header.Get("X-A2A-User-Delegation") == "") {
						t.Errorf("%s: the agent sees another call than was judged: %v", what, r.Header)
					}
					continue
				}
				g.isSeen(what, proof+token+heads, "guest-1001", scopes)
			}
			for what, heads := range map[string]string{"honest": "", "forged behind": forged()} {
				g.isSeen(what+", with a token", proof+token+heads, "guest-1001", scopes)
				g.isSeen(what+", without", proof+heads, "", "")
				g.isRefused(what+", nobody", heads, `Bearer realm="a2a"`)
				g.isRefused(what+", nobody with a token", token+heads, `Bearer realm="a2a"`)
				g.isRefused(what+", a bad pa-jwt", g.bearer("Authorization", "x.y.z")+heads, `Bearer realm="a2a"`)
				g.isRefused(what+", the proxy's own key", g.bearer("Authorization", hotel.APIKey)+heads, `Bearer realm="a2a"`)
				g.isRefused(what+", a bad token", proof+g.bearer("X-A2A-User-Delegation", "x.y.z")+heads, `Bearer realm="a2a", error="invalid_token"`)
				g.isRefused(what+", tampered", proof+g.bearer("X-A2A-User-Delegation", got.AccessToken+"x")+heads, `Bearer realm="a2a", error="invalid_token"`)
			}
			// Whatever the proxy makes of two tokens, the agent sees none that was not judged.
			two := send(t, front, "/a2a/harbor-hotel/message:send", proof+token+g.bearer("X-A2A-User-Delegation", "x.y.z"))
			if r := agent.last(); r != nil && !slices.Equal(r.Header.Values("X-A2A-User-Delegation"), []string{"Bearer " + got.AccessToken}) {
				t.Errorf("%d; the agent sees %d tokens", two.StatusCode, len(r.Header.Values("X-A2A-User-Delegation")))
			}
			for _, path := range []string{"/countersign-verify", "/a2a/harbor-hotel/../other", "/a2a/harbor-hotel/%2e%2e/other", "/"} {
				if send(t, front, path, proof+token); agent.last() != nil {
					t.Errorf("%s reaches the agent", path)
				}
			}
			// Nobody to ask, or a key that is not good: nobody is let through, and nobody
			// takes that for a word about what he came with.
			for what, other := range map[string]string{
				"nobody to ask":   guard.begin(t, "http://"+closed, hotel.APIKey, agent),
				"a key of others": guard.begin(t, p.PublicURL, p.outfitter(t).APIKey, agent),
				"no key":          guard.begin(t, p.PublicURL, "", agent),
			} {
				answer := send(t, other, "/a2a/harbor-hotel/message:send", proof+token)
				body, _ := io.ReadAll(answer.Body)
				if agent.last() != nil || answer.StatusCode < 500 || answer.Header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s: %d %v %q", what, answer.StatusCode, answer.Header, body)
				}
				if !strings.Contains(what, "key") {
					if answer.StatusCode != guard.away || len(body) > 0 {
						t.Errorf("%s: %d %q, want %d", what, answer.StatusCode, body, guard.away)
					}
					continue
				}
				if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || len(body) > 0 && !strings.Contains(string(body), "Countersign-Authorization") {
					t.Errorf("%s: %d %v %q", what, answer.StatusCode, answer.Header, body)
				}
			}
		})
	}
	// What the person ends is over at the next call.
	front := nginxGuard(t, p.PublicURL, hotel.APIKey, agent)
	g := guarded{t: t, front: front, agent: agent}
	heads := g.bearer("Authorization", asked.proof()) + g.bearer("X-A2A-User-Delegation", got.AccessToken)
	if status := asked.post("/revoke", url.Values{"token": {got.RefreshToken}}, &struct{}{}); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	g.isRefused("revoked", heads, `Bearer realm="a2a", error="invalid_token"`)
}

// guarded is an agent behind its proxy.
type guarded struct {
	t            *testing.T
	front        string
	agent        *echo
	issuer, user string
}

func (g guarded) bearer(header, token string) string { return header + ": Bearer " + token + "\r\n" }

// isSeen expects the agent to hear this and nothing else about the caller.
func (g guarded) isSeen(what, heads, user, scopes string) {
	g.t.Helper()
	answer := send(g.t, g.front, "/a2a/harbor-hotel/message:send", heads)
	body, _ := io.ReadAll(answer.Body)
	r := g.agent.last()
	if r == nil || answer.StatusCode != http.StatusTeapot || string(body) != `{"message":"hello"}` || r.URL.Path != "/a2a/harbor-hotel/message:send" {
		g.t.Errorf("%s: %d %q, reached: %v", what, answer.StatusCode, body, r != nil)
		return
	}
	for name, values := range r.Header {
		if !strings.HasPrefix(strings.ToLower(name), "countersign") {
			continue
		}
		i := slices.IndexFunc(identity, func(n string) bool { return name == "Countersign-"+n })
		if i < 0 || len(values) != 1 || strings.Contains(values[0], "mallory") {
			g.t.Errorf("%s: the agent sees %s: %q", what, name, values)
		}
	}
	// What the caller proved himself with is still there, and only HTTP/1.1 is spoken.
	for _, name := range []string{"Authorization", "X-A2A-User-Delegation"} {
		if got := r.Header.Get(name); got == "" && strings.Contains(heads, name+": Bearer") {
			g.t.Errorf("%s: the agent sees no %s", what, name)
		}
	}
	if got := r.Header.Get("Connection"); strings.Contains(strings.ToLower(got), "upgrade") {
		g.t.Errorf("%s: the agent sees Connection: %s", what, got)
	}
	for name, want := range map[string]string{"Agent": g.issuer, "Agent-Subject": g.user, "User": user, "Scopes": scopes} {
		if got := r.Header.Get("Countersign-" + name); got != want {
			g.t.Errorf("%s: Countersign-%s is %q, want %q", what, name, got, want)
		}
	}
	for _, name := range []string{"Grant", "Token", "Expires", "Details"} {
		if got := r.Header.Get("Countersign-" + name); (got == "") != (user == "") {
			g.t.Errorf("%s: Countersign-%s is %q", what, name, got)
		}
	}
}

// isRefused expects the exact 401, and nothing to reach the agent.
func (g guarded) isRefused(what, heads, challenge string) {
	g.t.Helper()
	answer := send(g.t, g.front, "/a2a/harbor-hotel/message:send", heads)
	body, _ := io.ReadAll(answer.Body)
	if g.agent.last() != nil || answer.StatusCode != http.StatusUnauthorized || len(body) > 0 ||
		!slices.Equal(answer.Header.Values("WWW-Authenticate"), []string{challenge}) {
		g.t.Errorf("%s: %d %q %q", what, answer.StatusCode, answer.Header.Values("WWW-Authenticate"), body)
	}
}

func guards(t *testing.T, service string, agent *echo) map[string]string {
	t.Helper()
	all, err := proxy.Guards(service, "harbor-hotel", "https://agents.lake.example/a2a/harbor-hotel")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, s := range all {
		texts[s.Name] = strings.ReplaceAll(s.Text, "127.0.0.1:8080", agent.Listener.Addr().String())
	}
	return texts
}

func nginxGuard(t *testing.T, service, key string, agent *echo) string {
	t.Helper()
	texts, folder := guards(t, service, agent), t.TempDir()
	file := filepath.Join(folder, "countersign-key.conf")
	if err := os.WriteFile(file, []byte(strings.Replace(texts["nginx: countersign-key.conf"], "cs_KEY", key, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return runNginx(t, folder, strings.ReplaceAll(texts["nginx"], "/etc/nginx/countersign-key.conf", file))
}

func caddyGuard(t *testing.T, service, key string, agent *echo) string {
	t.Helper()
	return runCaddy(t, guards(t, service, agent)["Caddy"], "COUNTERSIGN_KEY="+key)
}

// traefikVariable names a Traefik 3; otherwise it is the one on PATH. No Debian
// package has it, and few machines do.
const traefikVariable = "TRAEFIK_BIN"

func traefikGuard(t *testing.T, service, key string, agent *echo) string {
	t.Helper()
	bin := os.Getenv(traefikVariable)
	if bin == "" {
		var err error
		if bin, err = exec.LookPath("traefik"); err != nil {
			t.Skip("there is no Traefik here, and nothing was tried with it: put a traefik on PATH or name one in " + traefikVariable)
		}
	}
	text := strings.NewReplacer("cs_KEY", key, "agents.lake.example", "127.0.0.1").Replace(guards(t, service, agent)["Traefik"])
	return runTraefik(t, bin, text)
}

// runTraefik has a real Traefik serve what its file provider reads, and returns where.
func runTraefik(t *testing.T, bin, routes string) string {
	t.Helper()
	const patience, pause = time.Minute, 50 * time.Millisecond
	folder, front := t.TempDir(), closedPort(t)
	main, provided, log := filepath.Join(folder, "traefik.yaml"), filepath.Join(folder, "routes.yaml"), filepath.Join(folder, "log")
	for file, text := range map[string]string{
		provided: routes,
		main: fmt.Sprintf("global: {checkNewVersion: false, sendAnonymousUsage: false}\nlog: {filePath: %q}\nentryPoints: {agent: {address: %q}}\nproviders: {file: {filename: %q}}\n",
			log, front, provided),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	traefik := exec.Command(bin, "--configFile="+main)
	traefik.Env = append(quietEnvironment(), "HOME="+folder)
	begin(t, traefik, front)
	// It listens before it has read where calls go.
	for began := time.Now(); send(t, front, "/a2a/harbor-hotel/", "").StatusCode == http.StatusNotFound; time.Sleep(pause) {
		if time.Since(began) > patience {
			said, _ := os.ReadFile(log)
			t.Fatalf("Traefik does not take what it was given\n%s", said)
		}
	}
	return front
}

// runCaddy has a real Caddy serve what is in the block of a site, and returns where.
func runCaddy(t *testing.T, block string, settings ...string) string {
	t.Helper()
	return runCaddyAround(t, "", block, settings...)
}

// runCaddyAround is runCaddy with something before the site.
func runCaddyAround(t *testing.T, before, block string, settings ...string) string {
	t.Helper()
	bin, err := exec.LookPath("caddy")
	if err != nil {
		t.Fatal("caddy is missing. As root: apt-get install --no-install-recommends caddy")
	}
	folder, front := t.TempDir(), closedPort(t)
	file := filepath.Join(folder, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\n%s\nhttp://%s {\n%s\n}\n", before, front, block)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	caddy := exec.Command(bin, "run", "--config", file, "--adapter", "caddyfile")
	caddy.Env = append(quietEnvironment(), append(settings, "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)...)
	begin(t, caddy, front)
	return front
}

// closedPort is an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
