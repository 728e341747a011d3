package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// dev is a client that may talk to the servers of these tests.
func dev(t *testing.T, c Config) *Client {
	t.Helper()
	c.AllowLoopback = true
	client := New(c)
	t.Cleanup(client.HTTP().CloseIdleConnections)
	return client
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestGetJSONFetches(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("User-Agent"); got != "Countersign-Test" {
			t.Errorf("User-Agent %q", got)
		}
		if got := r.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("Accept-Encoding %q: nothing may be compressed", got)
		}
		_, _ = io.WriteString(w, `{"keys":[]}`)
	})
	got, err := dev(t, Config{UserAgent: "Countersign-Test"}).GetJSON(t.Context(), s.URL)
	if err != nil || string(got) != `{"keys":[]}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestProductionDoesNotTalkToLoopback(t *testing.T) { // R24
	var hits atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	client := New(Config{})
	if _, err := client.GetJSON(t.Context(), s.URL); !errors.Is(err, ErrForbiddenURL) {
		t.Errorf("plain http: %v, want ErrForbiddenURL", err)
	}
	_, err := client.GetJSON(t.Context(), "https://localhost/")
	if !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("https to localhost: %v, want ErrForbiddenAddress", err)
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived, want 0", hits.Load())
	}
}

// R24: the rules hold for requests that a library makes on its own.
func TestLibrariesMayFetchNoOtherURLs(t *testing.T) {
	client := New(Config{}).HTTP()
	for _, raw := range []string{
		"http://a.example/", "http://127.0.0.1/", "https://u:p@a.example/", "https://a.example:8443/", "https://10.0.0.1/", "ftp://a.example/",
	} {
		resp, err := client.Post(raw, "text/plain", strings.NewReader("x"))
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, ErrForbiddenURL) {
			t.Errorf("%s: %v, want ErrForbiddenURL", raw, err)
		}
	}
}

// R24: even if localhost resolves to another machine, nothing goes there in the
// clear.
func TestWithoutTLSNothingLeavesTheMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	b := New(Config{AllowLoopback: true}).HTTP().Transport.(*bounded)
	conn, err := b.plain.DialContext(ctx, "tcp", "8.8.8.8:443")
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("%v, want ErrForbiddenAddress", err)
	}
}

func TestErrorsDoNotTellWhatANameMeansInside(t *testing.T) { // R24
	client := New(Config{})
	_, inside := client.GetJSON(t.Context(), "https://localhost/secret?key=hidden")
	if !errors.Is(inside, ErrForbiddenAddress) {
		t.Fatalf("%v, want ErrForbiddenAddress", inside)
	}
	for _, leak := range []string{"127.0.0.1", "::1", "dial", "hidden"} {
		if strings.Contains(inside.Error(), leak) {
			t.Errorf("%q tells %q", inside, leak)
		}
	}
	if ErrForbiddenAddress.Error() != ErrUnreachable.Error() {
		t.Error("a name that exists inside can be told from one that does not")
	}
	_, err := dev(t, Config{}).GetJSON(t.Context(), "http://localhost:1/")
	if !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "refused") {
		t.Errorf("closed port: %v", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) { // R24
	var hits atomic.Int32
	target := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, status)
		})
		client := dev(t, Config{})
		if _, err := client.GetJSON(t.Context(), s.URL); !errors.Is(err, ErrRedirect) {
			t.Errorf("%d: %v, want ErrRedirect", status, err)
		}
		// Even for a library that takes the transport into a client of its own.
		lifted := &http.Client{Transport: client.HTTP().Transport}
		resp, err := lifted.Get(s.URL)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, ErrRedirect) {
			t.Errorf("%d, lifted transport: %v, want ErrRedirect", status, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached the target, want 0", hits.Load())
	}
}

func TestStatusIsNamed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	_, err := dev(t, Config{}).GetJSON(t.Context(), s.URL)
	if !errors.Is(err, ErrStatus) || !strings.Contains(err.Error(), "418") {
		t.Errorf("%v, want ErrStatus 418", err)
	}
}

func TestSlowHostsAreCutOff(t *testing.T) { // R25
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
	}{
		{"no headers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"one byte, then nothing", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		{"a byte now and then", func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-tick.C:
					_, _ = io.WriteString(w, " ")
					w.(http.Flusher).Flush()
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.h)
			start := time.Now()
			_, err := dev(t, Config{Timeout: 100 * time.Millisecond}).GetJSON(t.Context(), s.URL)
			if !errors.Is(err, ErrTimeout) {
				t.Errorf("%v, want ErrTimeout", err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("took %s with a deadline of 100 ms", took)
			}
		})
	}
}

func TestCallersEndIsTheirOwn(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := dev(t, Config{}).GetJSON(ctx, s.URL)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrTimeout) {
		t.Errorf("%v, want the caller's own deadline", err)
	}
}

func TestLargeAnswersAreCutOff(t *testing.T) { // R25
	zeros := make([]byte, 32<<10)
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for range (1 << 30) / len(zeros) {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}
	announced := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1073741824")
		_, _ = w.Write(zeros)
	}
	for name, h := range map[string]http.HandlerFunc{"chunked": endless, "announced": announced} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			client := dev(t, Config{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client.GetJSON(t.Context(), s.URL)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v, want ErrTooLarge", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
				t.Errorf("allocated %d bytes, want < 2 MiB", used)
			}
		})
	}
}

func TestLimitIsExactAndHoldsForLibrariesToo(t *testing.T) { // R25
	const limit = 1000
	for _, size := range []int{limit, limit + 1} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // no Content-Length
			_, _ = io.WriteString(w, strings.Repeat("1", size))
		})
		client := dev(t, Config{MaxBytes: limit})
		resp, err := client.HTTP().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if size == limit && (err != nil || len(body) != limit) {
			t.Errorf("%d bytes: read %d, %v; want all", size, len(body), err)
		}
		if size > limit && (!errors.Is(err, ErrTooLarge) || len(body) > limit) {
			t.Errorf("%d bytes: read %d, %v; want ErrTooLarge", size, len(body), err)
		}
	}
}

func TestBombsAreNotUnpacked(t *testing.T) { // R25
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"keys":[]}`))
	_, _ = z.Write(bytes.Repeat([]byte(" "), 8<<20))
	z.Close()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	if _, err := dev(t, Config{}).GetJSON(t.Context(), s.URL); !errors.Is(err, ErrNotJSON) {
		t.Errorf("%v, want ErrNotJSON", err)
	}
}

func TestHeadersAreBounded(t *testing.T) { // R25
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
	})
	if _, err := dev(t, Config{}).GetJSON(t.Context(), s.URL); !errors.Is(err, ErrBroken) {
		t.Errorf("%v, want ErrBroken", err)
	}
}

// A host that hangs holds so many connections and no more, but for callers who bound
// themselves otherwise.
func TestConnectionsToOneHostAreBounded(t *testing.T) {
	for asked, want := range map[int]int{0: 64, 7: 7, Unbounded: 0 /* to net/http: as many as come */} {
		b := dev(t, Config{ConnsPerHost: asked}).http.Transport.(*bounded)
		if b.secure.MaxConnsPerHost != want || b.plain.MaxConnsPerHost != want {
			t.Errorf("%d asked: %d with TLS, %d without; want %d", asked, b.secure.MaxConnsPerHost, b.plain.MaxConnsPerHost, want)
		}
	}
}

func TestWhatIsNotHTTPOrNotTLSIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = io.WriteString(conn, "220 mail ready\r\n")
			conn.Close()
		}
	}()
	client := dev(t, Config{})
	_, err = client.GetJSON(t.Context(), "http://"+l.Addr().String())
	if !errors.Is(err, ErrBroken) || strings.Contains(err.Error(), "mail") {
		t.Errorf("mail server: %v, want ErrBroken that does not quote it", err)
	}
	if _, err := client.GetJSON(t.Context(), "https://"+l.Addr().String()); !errors.Is(err, ErrTLS) {
		t.Errorf("mail server over TLS: %v, want ErrTLS", err)
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	s.Config.ErrorLog = nil
	if _, err := client.GetJSON(t.Context(), s.URL); !errors.Is(err, ErrTLS) {
		t.Errorf("certificate of nobody we know: %v, want ErrTLS", err)
	}
}

// R24: through a proxy, the proxy would resolve and connect out of sight.
func TestNoProxyIsUsed(t *testing.T) {
	b := New(Config{AllowLoopback: true}).HTTP().Transport.(*bounded)
	if b.secure.Proxy != nil || b.plain.Proxy != nil {
		t.Error("the environment may send our requests through a proxy")
	}
}
