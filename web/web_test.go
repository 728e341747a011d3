package web_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"countersign.dev/migrations/pgtest"
	"countersign.dev/web"
)

// B95: only our own proxies are believed about who came before them; IPv6 counts
// by its /64.
func TestAddressComesFromTheTrustedHop(t *testing.T) {
	a := web.Addresses{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for _, tt := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "192.0.2.1:1000", nil, "192.0.2.1"},
		{"a stranger's header", "192.0.2.1:1000", []string{"198.51.100.7"}, "192.0.2.1"},
		{"behind our proxy", "10.1.1.1:1000", []string{"192.0.2.1"}, "192.0.2.1"},
		{"what the visitor wrote himself", "10.1.1.1:1000", []string{"198.51.100.7, 192.0.2.1"}, "192.0.2.1"},
		{"two of ours", "10.1.1.1:1000", []string{"198.51.100.7, 192.0.2.1, 10.2.2.2"}, "192.0.2.1"},
		{"two headers", "10.1.1.1:1000", []string{"198.51.100.7", "192.0.2.1"}, "192.0.2.1"},
		{"with a port", "10.1.1.1:1000", []string{"192.0.2.1:5678"}, "192.0.2.1"},
		{"garbage", "10.1.1.1:1000", []string{"nonsense"}, "10.1.1.1"},
		{"only ours", "10.1.1.1:1000", []string{"10.3.3.3"}, "10.3.3.3"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:1000", nil, "2001:db8:1:2::/64"},
		{"IPv6, other low bits", "[2001:db8:1:2:ffff::1]:1000", nil, "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]:1000", nil, "192.0.2.1"},
		{"unknown", "@", nil, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = tt.peer
		r.Header["X-Forwarded-For"] = tt.forwarded
		if got := a.Of(r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// R40, P48: one record per request, with the route's pattern; the path, the
// query and what was thrown are not in it.
func TestRecordTellsNoSecret(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /x/{code}", func(http.ResponseWriter, *http.Request) { panic("thrown-secret") })
	var id string
	h := web.Chain(mux, web.Deadline, web.Record(logger, time.Now), web.Recover(logger, func(w http.ResponseWriter, r *http.Request) {
		id = web.RequestID(r.Context())
		w.WriteHeader(http.StatusInternalServerError)
	}))
	r := httptest.NewRequest(http.MethodGet, "/x/path-secret?q=query-secret", nil)
	r.Header.Set("Authorization", "Bearer header-secret")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || id == "" || w.Header().Get("X-Request-Id") != id {
		t.Fatalf("%d, id %q, header %q", w.Code, id, w.Header().Get("X-Request-Id"))
	}
	text := log.String()
	if !strings.Contains(text, `route="GET /x/{code}"`) || !strings.Contains(text, "status=500") || strings.Count(text, "msg=request") != 1 {
		t.Error(text)
	}
	if strings.Contains(text, "secret") {
		t.Error(text)
	}
	log.Reset()
	weird := httptest.NewRequest("EYJSECRET", "/", nil)
	h.ServeHTTP(httptest.NewRecorder(), weird)
	if strings.Contains(log.String(), "EYJ") {
		t.Error(log.String())
	}
}

// B46, B49, decision 4: the cookie holds a random id alone, the database its
// hash alone; an unknown id is never adopted; an ended session is gone.
func TestSessions(t *testing.T) {
	db := pgtest.New(t)
	pool := db.App(t)
	now := time.Now()
	store := web.NewStore(pool, func() time.Time { return now })
	const name = "__Host-test"
	request := func(cookie string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if cookie != "" {
			r.AddCookie(&http.Cookie{Name: name, Value: cookie})
		}
		return r
	}
	r, w := request("planted"), httptest.NewRecorder()
	s, err := store.Get(r, name)
	if err != nil || !s.IsNew || s.ID != "" {
		t.Fatalf("a planted id: %+v, %v", s, err)
	}
	s.Values["k"] = strings.Repeat("v", 10_000)
	if err := store.Save(r, w, s); err != nil {
		t.Fatal(err)
	}
	first := w.Result().Cookies()[0]
	if len(first.Value) > 64 || !first.Secure || !first.HttpOnly || first.SameSite != http.SameSiteLaxMode || first.Path != "/" || first.Domain != "" || first.MaxAge != 3600 {
		t.Errorf("%+v", first)
	}
	var hits int
	if err := db.Owner(t).QueryRow(t.Context(), `SELECT count(*) FROM browser_sessions WHERE encode(id_hash, 'escape') LIKE '%' || $1 || '%' OR encode(data, 'escape') LIKE '%' || $1 || '%'`, first.Value).Scan(&hits); err != nil || hits != 0 {
		t.Errorf("the id stands in the table: %d, %v", hits, err)
	}
	again, err := store.Get(request(first.Value), name)
	if err != nil || again.IsNew || again.Values["k"] != s.Values["k"] {
		t.Fatal("not found again")
	}
	// Saved again, the cookie is not set again.
	w = httptest.NewRecorder()
	if err := store.Save(request(first.Value), w, again); err != nil || len(w.Result().Cookies()) != 0 {
		t.Error("a second cookie")
	}
	w = httptest.NewRecorder()
	if err := store.Renew(request(first.Value), w, again); err != nil {
		t.Fatal(err)
	}
	second := w.Result().Cookies()[0].Value
	if second == first.Value {
		t.Fatal("not renewed")
	}
	if old, _ := store.Get(request(first.Value), name); !old.IsNew {
		t.Error("the old id still opens")
	}
	now = now.Add(web.SessionLife)
	if late, _ := store.Get(request(second), name); !late.IsNew {
		t.Error("a session lives for ever")
	}
	if n, err := store.Purge(t.Context()); err != nil || n != 1 {
		t.Errorf("purged %d, %v", n, err)
	}
	pool.Close()
	if _, err := store.New(request(second), name); err == nil {
		t.Error("an outage looks like a visitor without a session")
	}
	bad, _ := store.New(request(""), name)
	bad.Values[1] = "x"
	if err := store.Save(request(""), httptest.NewRecorder(), bad); err == nil {
		t.Error("a value that is not text was saved")
	}
}

// B113, B104, R98: slow and oversized visitors are cut off, and a stop lets the
// calls under way finish.
func TestServerBoundsAndDrains(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log bytes.Buffer
	go func() { ended <- web.Serve(ctx, l, mux, slog.New(slog.NewTextHandler(&log, nil))) }()
	url := "http://" + l.Addr().String()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("a", 64<<10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("64 KiB of header: %v %v", resp, err)
	}
	resp.Body.Close()
	// Headers that never end cost a connection for five seconds.
	drip, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer drip.Close()
	if _, err := io.WriteString(drip, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if err := drip.SetReadDeadline(time.Now().Add(8 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(drip); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("headers that do not end are waited for")
	}
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get(url + "/slow")
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-begun
	cancel()
	close(finish)
	if got := <-answer; got != "done" {
		t.Errorf("a call under way ended with %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// R90 (in part): every request has an end that the database and the signer see.
func TestEveryRequestEnds(t *testing.T) {
	var left time.Duration
	h := web.Deadline(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if end, ok := r.Context().Deadline(); ok {
			left = time.Until(end)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if left <= 0 || left > 10*time.Second {
		t.Fatalf("%v left", left)
	}
}
